// What a search maximizes (TuneObjective), the checks of its configuration, and its unit.
#pragma once

#include "study/search/tune.hpp"
#include "study/search/tune_screen.hpp"

#include <optional>
#include <string_view>
#include <vector>

namespace temper::study {

/// Whether it counts trained tokens per price or energy. These plans may use fewer cards.
constexpr bool counts_costs(TuneObjective objective) {
  return objective == TuneObjective::Price || objective == TuneObjective::Energy;
}
/// Whether more is better in the unit of the report; otherwise it is a time.
constexpr bool more_is_better(TuneObjective objective) {
  return objective == TuneObjective::Throughput || counts_costs(objective);
}
/// "tokens per unit of price", "tokens/s"; for a time, empty.
std::string_view unit_of(TuneObjective objective);

/// More is better. A plan below --min-tokens-per-s has a lower score by price and energy, since
/// these favor slow plans on few cards: it is multiplied by the square of the share that it
/// reaches. Requires: options.curve, if the objective is a reward. Borrows the options.
Score score_of(const TuneOptions& options);
/// The objective in the unit of the report: tokens/s, tokens per price or kWh, or seconds. nullopt:
/// not_covered().
std::optional<double> in_unit(const TuneOptions& options,
                              const orchestrator::PipelineConfig& config,
                              const Rates& rates);
/// Why these rates have no score.
std::string_view not_covered(TuneObjective objective);

/// Error: batches are varied for an objective that depends on them. Steps of different batches
/// train different numbers of responses, and a reward curve is that of one batch.
Status check_batches(const TuneOptions& options);
/// Error: the objective needs prices or power that the configuration lacks.
Status check_costs(TuneObjective objective, const orchestrator::CostSection& cost);
/// Error: --only total_cards, for an objective that always uses all cards.
Status check_total_cards(const TuneOptions& options);

/// Numbers of cards to try: all of them, and fewer if the objective counts costs and the roles
/// share one cluster. Empty: only all.
std::vector<std::int64_t> total_cards_to_try(TuneObjective objective,
                                             const orchestrator::PipelineConfig& config);

}  // namespace temper::study
