// Request kind of a whole RL iteration.
#include "sim_hw/iteration/cluster.hpp"
#include "sim_hw/iteration/lengths.hpp"
#include "sim_hw/iteration/one_card.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/request/choice.hpp"
#include "sim_hw/steps/rollout_layout.hpp"

#include <fmt/format.h>

#include <array>

namespace temper::sim_hw {
namespace {

/// Bounds that keep length lists in memory and walks over steps short.
constexpr double kMostTokens = 10'000'000;
constexpr double kMostListed = 1'000'000;
constexpr std::int64_t kMostRanks = 1'000'000;

/// Bound of tokens, prompts and responses.
Result<double> amount(const Params& p, std::string_view key) {
  TEMPER_TRY(const double value, p.number(key));
  if (!(value >= 1) || value > kMostTokens)
    return invalid_input(fmt::format("{}={}: must be 1 to {}", key, value, kMostTokens));
  return value;
}

Result<double> counted(const Params& p, std::string_view key) {
  TEMPER_TRY_STATUS(p.integer(key));
  return amount(p, key);
}

Result<std::int64_t> ranks(const Params& p, std::string_view key) {
  TEMPER_TRY(const std::int64_t value, p.integer(key, 1));
  if (value < 1 || value > kMostRanks)
    return invalid_input(fmt::format("{}={}: must be 1 to {}", key, value, kMostRanks));
  return value;
}

/// `lengths=FILE`, or `mean_out` with a spread, or `max_new` tokens for every response.
Result<std::vector<double>> response_lengths(const CostContext& context,
                                             const Params& p,
                                             double count,
                                             double max_new) {
  std::vector<double> lengths;
  if (count > kMostListed) {
    return invalid_input(
        fmt::format("prompts x group: expected at most {1} responses on one card, found {0}",
                    count,
                    kMostListed));
  }
  if (p.has("lengths")) {
    TEMPER_TRY(const std::string file, p.text("lengths"));
    TEMPER_TRY(lengths, read_lengths(context.folder / file));
  } else {
    TEMPER_TRY(const double mean, p.number("mean_out", max_new));
    TEMPER_TRY(const double spread, p.number("p99_over_median", 1));
    TEMPER_TRY(lengths, lognormal_lengths(static_cast<std::size_t>(count), mean, max_new, spread));
  }
  if (static_cast<double>(lengths.size()) != count) {
    return invalid_input(fmt::format(
        "lengths: found {} responses, expected prompts x group = {}", lengths.size(), count));
  }
  if (lengths.back() > max_new) {
    return invalid_input(fmt::format(
        "lengths: the longest response has {} tokens, above max_new={}", lengths.back(), max_new));
  }
  return lengths;
}

Result<Layout> train_layout(const Params& p, const HardwareSpec& hardware, std::int64_t cards) {
  Layout layout;
  TEMPER_TRY(layout.tp, ranks(p, "train_tp"));
  TEMPER_TRY(layout.pp, ranks(p, "train_pp"));
  TEMPER_TRY(layout.ep, ranks(p, "train_ep"));
  TEMPER_TRY(layout.cp, ranks(p, "train_cp"));
  const std::int64_t devices = cards * hardware.dies_per_card;
  const std::int64_t cut = layout.tp * layout.pp * layout.cp;
  if (devices % cut != 0) {
    return invalid_input(fmt::format(
        "train_tp x train_pp x train_cp = {} does not divide the {} devices", cut, devices));
  }
  layout.dp = devices / cut;
  layout.zero = Zero::Optimizer;
  layout.sequence_parallel = layout.tp > 1 ? SequenceParallel::On : SequenceParallel::Off;
  return layout;
}

Result<ClusterWork> cluster_work(const Params& params) {
  ClusterWork work;
  TEMPER_TRY(work.prompts, counted(params, "prompts"));
  TEMPER_TRY(work.group, counted(params, "group"));
  TEMPER_TRY(work.prompt, amount(params, "prompt_len"));
  TEMPER_TRY(work.response, amount(params, "response_len"));
  return work;
}

/// An iteration on `cards` cards with responses of one length.
Result<Cost> cost_of_cluster_iteration(const CostContext& context, const Request& r) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(const ModelSpec* model, model_of(context, r.params));
  TEMPER_TRY(const ClusterWork work, cluster_work(r.params));
  TEMPER_TRY(const std::int64_t tp, ranks(r.params, "rollout_tp"));
  TEMPER_TRY(const std::int64_t dp, ranks(r.params, "rollout_dp"));
  TEMPER_TRY(const std::int64_t ep, ranks(r.params, "rollout_ep"));
  ClusterPlan plan;
  TEMPER_TRY(
      plan.cards,
      one_of<Cards>(
          r.params, "placement", {{"colocated", Cards::Shared}, {"separate", Cards::Separate}}));
  TEMPER_TRY(plan.tuning,
             one_of<HostTuning>(
                 r.params, "host", {{"untuned", HostTuning::None}, {"tuned", HostTuning::Tuned}}));
  std::int64_t rollout_cards = r.cards;
  std::int64_t train_cards = r.cards;
  if (plan.cards == Cards::Separate) {
    TEMPER_TRY(rollout_cards, r.params.integer("rollout_cards"));
    train_cards = r.cards - rollout_cards;
    if (rollout_cards < 1 || train_cards < 1) {
      return invalid_input(fmt::format(
          "rollout_cards={}: expected fewer than the {} cards, to leave some for training",
          rollout_cards,
          r.cards));
    }
  }
  TEMPER_TRY_STATUS(check_rollout_layout(*model, *hardware, rollout_cards, {tp, dp, ep}));
  plan.rollout = {static_cast<double>(tp), static_cast<double>(dp), static_cast<double>(ep)};
  TEMPER_TRY(plan.training, train_layout(r.params, *hardware, train_cards));
  TEMPER_TRY_STATUS(check_layout(
      *model, plan.training.devices(), plan.training, rl_train_shape(*model, work, plan.training)));
  const ClusterIteration it = cluster_iteration(*model, *hardware, plan, work);
  Cost out;
  out.metrics = {{"time",
                  "s",
                  it.total(),
                  {{"reshard", 1, it.reshard, "every weight gathered once by every device"},
                   {"prefill", 1, it.prefill, ""},
                   {"decode", 1, it.decode, "response length x (decode step + host)"},
                   {"reference log-probs", 1, it.reference, "micro-batches x slowest stage + fill"},
                   {"reward", 1, it.reward, "tokens x host seconds per token"},
                   {"update", 1, it.update, "see train_iteration"},
                   {"offload", 1, it.offload, "weights and optimizer over the host links"}}},
                 {"rollout",
                  "s",
                  it.rollout(),
                  {{"reshard", 1, it.reshard, ""},
                   {"prefill", 1, it.prefill, ""},
                   {"decode", 1, it.decode, ""}}},
                 {"reference_logprobs", "s", it.reference, {}},
                 {"reward", "s", it.reward, {}},
                 {"update", "s", it.update, {}},
                 {"offload", "s", it.offload, {}},
                 {"tokens_per_second", "count", work.tokens() / it.total(), {}}};
  if (plan.cards == Cards::Separate)
    out.metrics.push_back({"time_one_step_off", "s", it.one_step_off(), {}});
  return out;
}

Result<Cost> cost_of_iteration(const CostContext& context, const Request& r) {
  if (r.params.has("response_len"))
    return cost_of_cluster_iteration(context, r);
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(const ModelSpec* model, model_of(context, r.params));
  TEMPER_TRY(const double prompts, counted(r.params, "prompts"));
  TEMPER_TRY(const double group, counted(r.params, "group"));
  TEMPER_TRY(const double max_new, counted(r.params, "max_new"));
  IterationWork work;
  TEMPER_TRY(work.prompt, counted(r.params, "prompt_len"));
  TEMPER_TRY(work.lengths, response_lengths(context, r.params, prompts * group, max_new));
  const OneCardIteration it =
      one_card_iteration(make_device(*hardware), make_step_model(*model), work);
  Cost out;
  out.metrics = {{"time",
                  "s",
                  it.total(),
                  {{"prefill", 1, it.prefill, ""},
                   {"decode", 1, it.decode, ""},
                   {"reference log-probs", 1, it.reference, ""},
                   {"update", 1, it.update, ""},
                   {"weight sync", 1, it.weight_sync, ""}}},
                 {"prefill", "s", it.prefill, {}},
                 {"decode_total", "s", it.decode, {}},
                 {"reference_logprobs", "s", it.reference, {}},
                 {"update", "s", it.update, {}},
                 {"weight_sync", "s", it.weight_sync, {}},
                 {"response_tokens", "count", it.response_tokens, {}},
                 {"longest", "count", it.longest, {}},
                 {"decode_steps", "count", it.decode_steps, {}},
                 {"micro_batches", "count", it.micro_batches, {}},
                 {"padded_tokens", "count", it.padded_tokens, {}}};
  return out;
}

constexpr std::array kIterationKinds{
    Kind{"rl_iteration",
         "One synchronous GRPO iteration: all roles on one device, or co-located on many cards.",
         "model; prompts; group; prompt_len; max_new; lengths=FILE | mean_out; p99_over_median=1, "
         "or: model; prompts; group; prompt_len; response_len; rollout_tp; rollout_dp; rollout_ep; "
         "train_tp; train_pp; train_ep; train_cp; host=untuned|tuned; "
         "placement=colocated|separate; rollout_cards",
         cost_of_iteration},
};

}  // namespace

std::span<const Kind> iteration_kinds() {
  return kIterationKinds;
}

}  // namespace temper::sim_hw
