// What distinguishes one algorithm from another, as data: the columns of the table of
// algorithm_table.hpp. A key of the `algorithm` section overrides each of them.
#pragma once

#include "core/describe.hpp"

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
  DrGrpo
};

/// What is subtracted from a reward: nothing, the mean of its group, of the batch, or of the rest
/// of its group.
enum class AdvantageMean { None, Group, Batch, LeaveOneOut };
/// What that is divided by: nothing, or the deviation within the group or over the batch.
enum class AdvantageStd { None, Group, Batch };
/// A ratio of probabilities is of each token, or the geometric mean over its response.
enum class RatioLevel { Token, Sequence };
/// The loss of a token (policy_loss.hpp).
enum class Objective { Clip, Naive, Decoupled, Tis, Cispo, Reinforce };
/// What a minibatch's loss is: the mean over its tokens; over its responses, of the mean over each
/// one's tokens; or the sum over tokens by a constant, responses times the longest a response may
/// be.
enum class Averaging { Token, Sequence, Constant };
/// A behaviour weight above the cap becomes the cap, or its token is left out.
enum class WeightMode { Clamp, Mask };

/// One algorithm, resolved: all that advantages and losses are made of.
struct Algorithm {
  AdvantageMean advantage_mean = AdvantageMean::Group;
  AdvantageStd advantage_std = AdvantageStd::Group;
  RatioLevel ratio = RatioLevel::Token;
  Objective objective = Objective::Clip;
  Averaging average = Averaging::Token;
  double clip_low = 0.2;
  double clip_high = 0.28;
  double behaviour_weight_cap = 5;
  WeightMode behaviour_weight_mode = WeightMode::Mask;
  bool filter_equal_rewards = false;
  Tokens overlong_buffer{0};  ///< The last so many tokens of a response are punished; 0: none.
  double overlong_penalty = 1;

  // These do not differ between algorithms.
  double advantage_epsilon = 1e-4;
  double kl = 0;
  Tokens longest_response{1};

  bool operator==(const Algorithm&) const = default;
};

/// Whether losses need the log-probs under the weights before the update's first minibatch.
constexpr bool needs_proximal(Objective objective) {
  return objective == Objective::Naive || objective == Objective::Decoupled ||
         objective == Objective::Tis;
}

/// Whether the advantage of a response depends on other groups of its batch. Then no gradient can
/// be computed before the batch is whole: a mean over the batch decides the advantage's sign, and
/// so what is clipped. A deviation over the batch is a factor, but one that the KL term does not
/// have.
constexpr bool needs_whole_batch(const Algorithm& a) {
  return a.advantage_mean == AdvantageMean::Batch || a.advantage_std == AdvantageStd::Batch;
}

}  // namespace trainer

template <>
struct EnumNames<trainer::AlgorithmName> {
  using A = trainer::AlgorithmName;
  static constexpr std::array<std::pair<A, std::string_view>, 10> value{
      {{A::Grpo, "grpo"},
       {A::Ppo, "ppo"},
       {A::DecoupledPpo, "decoupled_ppo"},
       {A::Tis, "tis"},
       {A::Gspo, "gspo"},
       {A::Cispo, "cispo"},
       {A::Dapo, "dapo"},
       {A::Rloo, "rloo"},
       {A::ReinforcePp, "reinforce_pp"},
       {A::DrGrpo, "dr_grpo"}}};
};
template <>
struct EnumNames<trainer::AdvantageMean> {
  using A = trainer::AdvantageMean;
  static constexpr std::array<std::pair<A, std::string_view>, 4> value{
      {{A::None, "none"},
       {A::Group, "group"},
       {A::Batch, "batch"},
       {A::LeaveOneOut, "leave_one_out"}}};
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
struct EnumNames<trainer::Averaging> {
  using A = trainer::Averaging;
  static constexpr std::array<std::pair<A, std::string_view>, 3> value{
      {{A::Token, "token"}, {A::Sequence, "sequence"}, {A::Constant, "constant"}}};
};
template <>
struct EnumNames<trainer::WeightMode> {
  using W = trainer::WeightMode;
  static constexpr std::array<std::pair<W, std::string_view>, 2> value{
      {{W::Clamp, "clamp"}, {W::Mask, "mask"}}};
};

}  // namespace temper
