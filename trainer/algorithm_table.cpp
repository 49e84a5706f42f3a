#include "trainer/algorithm_table.hpp"

#include "core/check.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace temper::trainer {
namespace {

using Mean = AdvantageMean;
using Std = AdvantageStd;

constexpr Algorithm of(Mean mean, Std std, Objective objective, Averaging average) {
  Algorithm a;
  a.advantage_mean = mean;
  a.advantage_std = std;
  a.objective = objective;
  a.average = average;
  return a;
}

constexpr Algorithm with_clip(Algorithm a, double low, double high) {
  a.clip_low = low;
  a.clip_high = high;
  return a;
}

constexpr Algorithm with_cap(Algorithm a, double cap, WeightMode mode) {
  a.behaviour_weight_cap = cap;
  a.behaviour_weight_mode = mode;
  return a;
}

constexpr Algorithm with_mask(Algorithm a, double floor, double cap, WeightLevel level) {
  a.behaviour_weight_floor = floor;
  a.behaviour_weight_level = level;
  return with_cap(a, cap, WeightMode::Mask);
}

constexpr Algorithm with_teacher(Algorithm a) {
  a.distillation = 1;
  a.reward_weight = 0;
  return a;
}

constexpr Algorithm with_sequence_ratio(Algorithm a) {
  a.ratio = RatioLevel::Sequence;
  return a;
}

constexpr Algorithm with_interpolation(Algorithm a) {
  a.proximal = Proximal::Interpolated;
  return a;
}

constexpr Algorithm with_filter(Algorithm a) {
  a.filter_equal_rewards = true;
  return a;
}

constexpr Algorithm kGrpo = of(Mean::Group, Std::Group, Objective::Clip, Averaging::Token);

constexpr Algorithm kDecoupled =
    of(Mean::Group, Std::Group, Objective::Decoupled, Averaging::Token);

constexpr std::array<AlgorithmRow, 16> kTable{{
    {.name = AlgorithmName::Grpo,
     .columns = kGrpo,
     .source = "2402.03300",
     .note = "Clip and token mean as in DAPO; the source clips at 0.2 on both sides and "
             "averages over each response first (`clip_high: 0.2`, `average: sequence`)."},
    {.name = AlgorithmName::Ppo,
     .columns = with_clip(of(Mean::Batch, Std::Batch, Objective::Clip, Averaging::Token), 0.2, 0.2),
     .source = "1707.06347",
     .note = "Without a critic: baseline and standard deviation "
             "are those of the rewards of the batch. `ppo_critic` has a critic."},
    {.name = AlgorithmName::DecoupledPpo,
     .columns = with_clip(kDecoupled, 0.2, 0.2),
     .source = "2110.00641, 2505.24298",
     .note = "Advantages as in `grpo`. AReaL masks tokens above its cap of 5."},
    {.name = AlgorithmName::Tis,
     .columns = with_cap(
         of(Mean::Group, Std::Group, Objective::Tis, Averaging::Token), 2, WeightMode::Clamp),
     .source = "fengyao.notion.site/off-policy-rl",
     .note = "Truncated importance sampling: the decoupled objective with a clamped weight, "
             "whatever `behaviour_weight_mode` says."},
    {.name = AlgorithmName::Gspo,
     .columns = with_sequence_ratio(
         with_clip(of(Mean::Group, Std::Group, Objective::Clip, Averaging::Sequence), 3e-4, 4e-4)),
     .source = "2507.18071",
     .note = "One ratio per response, the geometric mean over its tokens."},
    {.name = AlgorithmName::Cispo,
     .columns = with_clip(of(Mean::Group, Std::Group, Objective::Cispo, Averaging::Token), 1, 0.28),
     .source = "2506.13585",
     .note = "No lower clip. The source does not state its upper clip; this one is DAPO's."},
    {.name = AlgorithmName::Dapo,
     .columns = with_filter(kGrpo),
     .overlong_share = 0.2,
     .source = "2503.14476",
     .note = "Filters groups with equal rewards, and penalizes length over the last fifth of the "
             "largest length (4096 of 20480 tokens)."},
    {.name = AlgorithmName::Rloo,
     .columns = of(Mean::LeaveOneOut, Std::None, Objective::Reinforce, Averaging::Constant),
     .source = "2402.14740",
     .note =
         "A response is one action: the sum over its tokens, divided by a constant. No ratio, so "
         "staleness is not corrected; use `objective: clip` for that."},
    {.name = AlgorithmName::ReinforcePp,
     .columns = with_clip(of(Mean::Group, Std::Batch, Objective::Clip, Averaging::Token), 0.2, 0.2),
     .source = "2501.03262",
     .note = "REINFORCE++-baseline, the variant for several responses per prompt."},
    {.name = AlgorithmName::DrGrpo,
     .columns =
         with_clip(of(Mean::Group, Std::None, Objective::Clip, Averaging::Constant), 0.2, 0.2),
     .source = "2503.20783",
     .note = "GRPO without the two divisions that weight prompts and lengths unequally."},
    {.name = AlgorithmName::IcePop,
     .columns = with_mask(kDecoupled, 0.5, 5, WeightLevel::Token),
     .source = "2510.18855",
     .note = "Masks a token whose trainer and sampler disagree, in either direction."},
    {.name = AlgorithmName::SeqMis,
     .columns = with_mask(kDecoupled, 0, 2, WeightLevel::Sequence),
     .source = "richardli.xyz/rl-collapse",
     .note = "Masked importance sampling: one weight per response, the product of its token "
             "ratios, and no loss for a response above the cap. The longer it is, the further a "
             "product is from 1."},
    {.name = AlgorithmName::GeoRs,
     .columns = with_mask(kDecoupled, 0.999, 1.001, WeightLevel::Geometric),
     .source = "richardli.xyz/rl-collapse",
     .note = "Geometric rejection sampling: a response counts only if its tokens agree on average. "
             "The range is that of the source, for engines that differ; a stale sampler needs a "
             "wider one. The source has no weight; this one is within 0.1 % of 1."},
    {.name = AlgorithmName::Opd,
     .columns = with_teacher(kGrpo),
     .source = "thinkingmachines.ai/blog/on-policy-distillation",
     .note = "On-policy distillation: the advantage of a token is log(teacher / sampler). The "
             "source does not clip. `reward_weight: 1` adds the advantage of `grpo`."},
    {.name = AlgorithmName::PpoCritic,
     .columns =
         with_clip(of(Mean::Critic, Std::Batch, Objective::Clip, Averaging::Token), 0.2, 0.2),
     .source = "1707.06347, 1506.02438",
     .note = "Advantages per token from the values of a critic (GAE), whitened over the batch. "
             "One response per prompt is enough."},
    {.name = AlgorithmName::A3po,
     .columns = with_interpolation(with_clip(kDecoupled, 0.2, 0.2)),
     .source = "2512.06547",
     .note = "`decoupled_ppo` without the forward pass for the proximal policy."},
}};

/// Calls visit(key, column) for each column that a key of the section overrides.
template <class Config, class Visit>
void for_each_column(Config& c, Algorithm& a, const Visit& visit) {
  visit(c.objective, a.objective);
  visit(c.proximal, a.proximal);
  visit(c.advantage_mean, a.advantage_mean);
  visit(c.advantage_std, a.advantage_std);
  visit(c.ratio, a.ratio);
  visit(c.average, a.average);
  visit(c.clip_low, a.clip_low);
  visit(c.clip_high, a.clip_high);
  visit(c.behaviour_weight_floor, a.behaviour_weight_floor);
  visit(c.behaviour_weight_cap, a.behaviour_weight_cap);
  visit(c.behaviour_weight_mode, a.behaviour_weight_mode);
  visit(c.behaviour_weight_level, a.behaviour_weight_level);
  visit(c.distillation, a.distillation);
  visit(c.reward_weight, a.reward_weight);
  visit(c.filter_equal_rewards, a.filter_equal_rewards);
  visit(c.overlong_buffer, a.overlong_buffer);
}

std::string overlong(const AlgorithmRow& row) {
  return row.overlong_share > 0 ? fmt::format("last {:g} of the longest", row.overlong_share) : "-";
}

std::string weight(const Algorithm& a) {
  if (a.objective != Objective::Decoupled && a.objective != Objective::Tis)
    return "-";
  const std::string range =
      a.behaviour_weight_floor > 0
          ? fmt::format("outside {:g} to {:g}", a.behaviour_weight_floor, a.behaviour_weight_cap)
          : fmt::format("at {:g}", a.behaviour_weight_cap);
  const std::string level = a.behaviour_weight_level == WeightLevel::Token
                                ? ""
                                : fmt::format("{}, ", name_of(a.behaviour_weight_level));
  return fmt::format("{}{} {}", level, name_of(a.behaviour_weight_mode), range);
}

std::string objective(const Algorithm& a) {
  const bool interpolated = a.proximal == Proximal::Interpolated;
  return fmt::format("{}{}", name_of(a.objective), interpolated ? ", interpolated" : "");
}

std::string teacher(const Algorithm& a) {
  return a.distillation > 0 ? fmt::format("{:g}, reward {:g}", a.distillation, a.reward_weight)
                            : "-";
}

std::string clip(const Algorithm& a) {
  if (a.objective == Objective::Reinforce)
    return "-";
  return fmt::format("{:g} / {:g}", a.clip_low, a.clip_high);
}

}  // namespace

std::span<const AlgorithmRow> algorithm_table() {
  return kTable;
}

const AlgorithmRow& algorithm_row(AlgorithmName name) {
  const auto row = std::ranges::find(kTable, name, &AlgorithmRow::name);
  TEMPER_CHECK(row != kTable.end(), "every algorithm has a row");
  return *row;
}

Algorithm resolve(const AlgorithmConfig& c, Tokens longest_response) {
  const AlgorithmRow& row = algorithm_row(c.name);
  Algorithm a = row.columns;
  const auto last =
      static_cast<std::int64_t>(row.overlong_share * static_cast<double>(longest_response.count()));
  a.overlong_buffer = Tokens(row.overlong_share > 0 ? std::max<std::int64_t>(1, last) : 0);
  for_each_column(c, a, [](const auto& key, auto& column) { column = key.value_or(column); });
  if (!c.behaviour_weight_level && a.ratio == RatioLevel::Sequence &&
      a.behaviour_weight_level == WeightLevel::Token)
    a.behaviour_weight_level = WeightLevel::Geometric;
  a.overlong_penalty = c.overlong_penalty;
  a.advantage_epsilon = c.advantage_epsilon;
  a.kl = c.kl;
  a.distillation_top_k = c.distillation_top_k;
  a.critic = c.critic;
  a.longest_response = longest_response;
  return a;
}

AlgorithmConfig written_out(AlgorithmConfig c, Tokens longest_response, std::uint64_t steps) {
  Algorithm a = resolve(c, longest_response);
  for_each_column(c, a, [](auto& key, const auto& column) { key = column; });
  LearningRateSchedule& schedule = c.learning_rate_schedule;
  if (schedule.decay != Decay::None && !schedule.decay_steps)
    schedule.decay_steps = static_cast<std::int64_t>(steps);
  return c;
}

std::string write_algorithm_table() {
  std::string out =
      "| name | mean | deviation | teacher | ratio | objective | average | clip "
      "| behaviour weight | equal rewards | overlong | source "
      "|\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";
  for (const AlgorithmRow& row : kTable) {
    const Algorithm& a = row.columns;
    out += fmt::format("| `{}` | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} | {} |\n",
                       name_of(row.name),
                       name_of(a.advantage_mean),
                       name_of(a.advantage_std),
                       teacher(a),
                       a.objective == Objective::Reinforce ? "-" : name_of(a.ratio),
                       objective(a),
                       name_of(a.average),
                       clip(a),
                       weight(a),
                       a.filter_equal_rewards ? "filtered" : "kept",
                       overlong(row),
                       row.source);
  }
  out += '\n';
  for (const AlgorithmRow& row : kTable)
    out += fmt::format("- `{}`: {}\n", name_of(row.name), row.note);
  return out;
}

}  // namespace temper::trainer
