// The parameters in which algorithms differ: the columns of the table in algorithm_table.hpp. A key
// of the `algorithm` section overrides each of them.
#pragma once

#include "core/describe.hpp"
#include "trainer/critic_config.hpp"

namespace temper {
namespace trainer {

enum class AlgorithmName {
  Grpo,
  Ppo,
  DecoupledPpo,
  Tis,
  Gspo,
  Cispo,
  Dapo,
  Rloo,
  ReinforcePp,
  DrGrpo,
  IcePop,
  SeqMis,
  GeoRs,
  Opd,
  PpoCritic,
  A3po
};

/// Baseline that is subtracted from a reward: none, the mean of the group, of the batch, or of the
/// other responses of the group; or the values of a critic, for advantages per token (gae.hpp).
enum class AdvantageMean { None, Group, Batch, LeaveOneOut, Critic };
/// Divisor of the result: none, or the standard deviation within the group or over the batch.
enum class AdvantageStd { None, Group, Batch };
/// Importance ratio: per token, or the geometric mean over the response.
enum class RatioLevel { Token, Sequence };
/// Per-token loss (policy_loss.hpp).
enum class Objective { Clip, Naive, Decoupled, Tis, Cispo, Reinforce };
/// Log-probs of the proximal policy: from a forward pass of their own, or between those of the
/// sampler and the current weights (interpolated_proximal()).
enum class Proximal { Recomputed, Interpolated };
/// Loss of a minibatch: mean over its tokens; mean over its responses of the mean over their
/// tokens; or sum over tokens, divided by a constant, the number of responses times the largest
/// response length.
enum class Averaging { Token, Sequence, Constant };
/// Behaviour weight: per token, or one for the response: the geometric mean of its token ratios, or
/// their product.
enum class WeightLevel { Token, Geometric, Sequence };
/// Treatment of a behaviour weight outside its range: it becomes the nearer end, or its tokens are
/// masked.
enum class WeightMode { Clamp, Mask };

/// One algorithm, resolved: all parameters of advantages and losses.
struct Algorithm {
  AdvantageMean advantage_mean = AdvantageMean::Group;
  AdvantageStd advantage_std = AdvantageStd::Group;
  RatioLevel ratio = RatioLevel::Token;
  Objective objective = Objective::Clip;
  Proximal proximal = Proximal::Recomputed;
  Averaging average = Averaging::Token;
  double clip_low = 0.2;
  double clip_high = 0.28;
  double behaviour_weight_floor = 0;  ///< Smallest weight; 0: none.
  double behaviour_weight_cap = 5;    ///< Largest weight.
  WeightMode behaviour_weight_mode = WeightMode::Mask;
  WeightLevel behaviour_weight_level = WeightLevel::Token;
  bool filter_equal_rewards = false;
  double distillation = 0;    ///< Weight of the teacher's reverse KL in a token's advantage.
  double reward_weight = 1;   ///< Weight of the reward's advantage in it.
  Tokens overlong_buffer{0};  ///< Length penalty over the last this many tokens; 0: none.
  double overlong_penalty = 1;

  // Common to all algorithms.
  double advantage_epsilon = 1e-4;
  double kl = 0;
  std::int32_t distillation_top_k = 0;  ///< Most likely tokens of the teacher; 0: the sampled one.
  CriticConfig critic{};                ///< Without effect unless has_critic().
  Tokens longest_response{1};

  bool operator==(const Algorithm&) const = default;
};

/// Whether a critic is trained beside the policy.
constexpr bool has_critic(const Algorithm& a) {
  return a.advantage_mean == AdvantageMean::Critic;
}

/// Whether losses or rewards need the log-probs of the reference.
constexpr bool needs_reference(const Algorithm& a) {
  return a.kl > 0 || a.distillation > 0 || (has_critic(a) && a.critic.kl > 0);
}

/// Whether losses need the log-probs under the weights before the first minibatch of the step.
constexpr bool needs_proximal(Objective objective) {
  return objective == Objective::Naive || objective == Objective::Decoupled ||
         objective == Objective::Tis;
}

/// Whether the advantage of a response depends on other groups of its batch. Then no gradient can
/// be computed before the batch is complete: a mean over the batch decides the sign of the
/// advantage, and so what is clipped. A deviation over the batch is only a factor, but one that the
/// KL term does not have. A critic is trained in the same step as its values are used.
constexpr bool needs_whole_batch(const Algorithm& a) {
  return a.advantage_mean == AdvantageMean::Batch || a.advantage_std == AdvantageStd::Batch ||
         has_critic(a);
}

}  // namespace trainer

template <>
struct EnumNames<trainer::AlgorithmName> {
  using A = trainer::AlgorithmName;
  static constexpr std::array<std::pair<A, std::string_view>, 16> value{
      {{A::Grpo, "grpo"},
       {A::Ppo, "ppo"},
       {A::DecoupledPpo, "decoupled_ppo"},
       {A::Tis, "tis"},
       {A::Gspo, "gspo"},
       {A::Cispo, "cispo"},
       {A::Dapo, "dapo"},
       {A::Rloo, "rloo"},
       {A::ReinforcePp, "reinforce_pp"},
       {A::DrGrpo, "dr_grpo"},
       {A::IcePop, "icepop"},
       {A::SeqMis, "seq_mis"},
       {A::GeoRs, "geo_rs"},
       {A::Opd, "opd"},
       {A::PpoCritic, "ppo_critic"},
       {A::A3po, "a3po"}}};
};
template <>
struct EnumNames<trainer::AdvantageMean> {
  using A = trainer::AdvantageMean;
  static constexpr std::array<std::pair<A, std::string_view>, 5> value{
      {{A::None, "none"},
       {A::Group, "group"},
       {A::Batch, "batch"},
       {A::LeaveOneOut, "leave_one_out"},
       {A::Critic, "critic"}}};
};
template <>
struct EnumNames<trainer::AdvantageStd> {
  using A = trainer::AdvantageStd;
  static constexpr std::array<std::pair<A, std::string_view>, 3> value{
      {{A::None, "none"}, {A::Group, "group"}, {A::Batch, "batch"}}};
};
template <>
struct EnumNames<trainer::RatioLevel> {
  using R = trainer::RatioLevel;
  static constexpr std::array<std::pair<R, std::string_view>, 2> value{
      {{R::Token, "token"}, {R::Sequence, "sequence"}}};
};
template <>
struct EnumNames<trainer::Objective> {
  using O = trainer::Objective;
  static constexpr std::array<std::pair<O, std::string_view>, 6> value{
      {{O::Clip, "clip"},
       {O::Naive, "naive"},
       {O::Decoupled, "decoupled"},
       {O::Tis, "tis"},
       {O::Cispo, "cispo"},
       {O::Reinforce, "reinforce"}}};
};
template <>
struct EnumNames<trainer::Proximal> {
  using P = trainer::Proximal;
  static constexpr std::array<std::pair<P, std::string_view>, 2> value{
      {{P::Recomputed, "recomputed"}, {P::Interpolated, "interpolated"}}};
};
template <>
struct EnumNames<trainer::Averaging> {
  using A = trainer::Averaging;
  static constexpr std::array<std::pair<A, std::string_view>, 3> value{
      {{A::Token, "token"}, {A::Sequence, "sequence"}, {A::Constant, "constant"}}};
};
template <>
struct EnumNames<trainer::WeightLevel> {
  using W = trainer::WeightLevel;
  static constexpr std::array<std::pair<W, std::string_view>, 3> value{
      {{W::Token, "token"}, {W::Geometric, "geometric"}, {W::Sequence, "sequence"}}};
};
template <>
struct EnumNames<trainer::WeightMode> {
  using W = trainer::WeightMode;
  static constexpr std::array<std::pair<W, std::string_view>, 2> value{
      {{W::Clamp, "clamp"}, {W::Mask, "mask"}}};
};

}  // namespace temper
