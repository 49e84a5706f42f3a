#include "study/search/tune_objective.hpp"

#include "orchestrator/pipeline/clusters.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::study {
namespace {

/// Quarters of all cards.
constexpr std::int64_t kQuarters[] = {1, 2, 3, 4};

/// More is better; nullopt: the objective does not cover these rates.
std::optional<double> worth_of(const TuneOptions& options, const Rates& rates) {
  switch (options.objective) {
    case TuneObjective::Throughput:
      break;
    case TuneObjective::Steps:
      return 1 / rates.seconds_per_update;
    case TuneObjective::Reward: {
      const auto updates = options.curve->updates(rates.staleness_mean);
      return updates ? std::optional(1 / (*updates * rates.seconds_per_update)) : std::nullopt;
    }
    case TuneObjective::Price:
      return rates.cost ? rates.cost->tokens_per_price : std::nullopt;
    case TuneObjective::Energy:
      return rates.cost ? rates.cost->tokens_per_kwh : std::nullopt;
  }
  return rates.sustained_per_s;
}

}  // namespace

std::string_view unit_of(TuneObjective objective) {
  switch (objective) {
    case TuneObjective::Throughput:
      return "tokens/s";
    case TuneObjective::Price:
      return "tokens per unit of price";
    case TuneObjective::Energy:
      return "tokens per kWh";
    case TuneObjective::Steps:
    case TuneObjective::Reward:
      break;
  }
  return "";
}

Score score_of(const TuneOptions& options) {
  return [&options](const Rates& rates) {
    std::optional<double> score = worth_of(options, rates);
    const auto least = options.constraints.min_tokens_per_s;
    if (score && least && counts_costs(options.objective))
      *score *= std::pow(std::min(1.0, rates.sustained_per_s / *least), 2);
    return score;
  };
}

std::optional<double> in_unit(const TuneOptions& options,
                              const orchestrator::PipelineConfig& config,
                              const Rates& rates) {
  const std::optional<double> worth = worth_of(options, rates);
  if (!worth || more_is_better(options.objective))
    return worth;
  const bool all = options.objective == TuneObjective::Steps;
  return (all ? static_cast<double>(config.steps) : 1.0) / *worth;
}

std::string_view not_covered(TuneObjective objective) {
  return counts_costs(objective) ? "its cards have no price or power"
                                 : "the recorded curve does not cover its staleness";
}

Status check_batches(const TuneOptions& options) {
  if (more_is_better(options.objective))
    return {};
  for (const SweepAxis& axis : options.vary) {
    for (const std::string& key : axis.keys) {
      if (key == "algorithm.groups_per_update" || key == "algorithm.responses_per_group") {
        return invalid_input(
            fmt::format("--vary {}: only tokens/s are comparable between batches; use --objective "
                        "throughput, or tune each batch alone",
                        key));
      }
    }
  }
  return {};
}

Status check_costs(TuneObjective objective, const orchestrator::CostSection& cost) {
  if (objective == TuneObjective::Price && cost.card_hour <= 0) {
    return invalid_input(
        "--objective price: expected the price of a card, found `cost.card_hour: 0`; set it, and "
        "`cost.rollout_card_hour` if cards that only rollout engines have are cheaper");
  }
  if (objective == TuneObjective::Energy && cost.idle_watts <= 0 && cost.busy_watts <= 0 &&
      cost.train_watts.value_or(0) <= 0 && cost.decode_watts.value_or(0) <= 0) {
    return invalid_input(
        "--objective energy: expected the power of a card, found 0; set `cost.idle_watts` and "
        "`cost.busy_watts`, and `cost.train_watts` and `cost.decode_watts` if they differ");
  }
  return {};
}

Status check_total_cards(const TuneOptions& options) {
  if (!counts_costs(options.objective) &&
      std::ranges::find(options.only, "total_cards", &Space::Axis::name) != options.only.end()) {
    return invalid_input(
        "--only total_cards: found an objective that always uses all cards; expected --objective "
        "price or energy, or another number with --set placement.cards");
  }
  return {};
}

std::vector<std::int64_t> total_cards_to_try(TuneObjective objective,
                                             const orchestrator::PipelineConfig& config) {
  std::vector<std::int64_t> out;
  if (!counts_costs(objective) || orchestrator::has_several_clusters(config))
    return out;
  for (const std::int64_t quarters : kQuarters) {
    const std::int64_t cards = config.placement.cards * quarters / 4;
    if (cards > 0 && (out.empty() || out.back() != cards))
      out.push_back(cards);
  }
  return out;
}

}  // namespace temper::study
