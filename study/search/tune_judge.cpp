#include "study/search/tune_judge.hpp"

#include "actors/simulation/memory_phases.hpp"
#include "core/statistics.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "study/search/tune_objective.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <optional>
#include <utility>

namespace temper::study {
namespace {

/// Smaller differences of the mean staleness are ties.
constexpr double kSameAge = 0.05;

/// Memory of the device and phase that need the most.
std::optional<double> most_memory(const orchestrator::PipelineConfig& config) {
  const auto pipeline = orchestrator::resolve(config);
  if (!pipeline)
    return std::nullopt;
  const auto phases = actors::memory_phases(orchestrator::simulated_placement(*pipeline));
  if (!phases || phases->empty())
    return std::nullopt;
  return std::ranges::max(*phases, {}, &actors::PhaseLedger::device).device();
}

std::string engine_text(const actors::RolloutEngineConfig& r) {
  return fmt::format("tp{} ep{} kv{:.2f}", r.tp, r.ep, r.kv_share);
}

std::string engine_text(const actors::TrainerEngineConfig& t) {
  return fmt::format("tp{} pp{}{} ep{} cp{} mb{}",
                     t.tp,
                     t.pp,
                     t.vpp > 1 ? fmt::format(" vpp{}", t.vpp) : "",
                     t.ep,
                     t.cp,
                     t.micro_batch_tokens);
}

/// The keys that are set.
std::string engine_text(const actors::ReferenceEngineConfig& c) {
  std::string out;
  const std::pair<const char*, std::optional<std::int64_t>> cuts[] = {
      {"tp", c.tp}, {"pp", c.pp}, {"ep", c.ep}, {"cp", c.cp}};
  for (const auto& [name, cut] : cuts) {
    if (cut)
      out += fmt::format("{}{}{}", out.empty() ? "" : " ", name, *cut);
  }
  return out;
}

}  // namespace

TuneRow tune_row(const orchestrator::PipelineConfig& c,
                 const orchestrator::PlacementConfig& cards,
                 std::string found_by,
                 std::string vary) {
  const auto count = [](const std::vector<CardId>& list) {
    return static_cast<std::int32_t>(list.size());
  };
  TuneRow row;
  row.found_by = std::move(found_by);
  row.mode = name_of(cards.mode);
  row.eta = c.staleness.bound;
  row.vary = std::move(vary);
  row.total_cards = c.placement.cards;
  row.rollout_cards = count(cards.rollout);
  row.reference_cards = c.reference.replicas > 0 ? count(cards.reference) : 0;
  row.trainer_cards = count(cards.trainer);
  row.engines = c.rollout.replicas;
  row.slots = c.rollout.concurrency;
  row.return_share = cards.return_share;
  row.lending = name_of(cards.lending);
  if (c.hardware == orchestrator::HardwareKind::Simulated) {
    row.rollout_layout = engine_text(c.simulation.rollout);
    row.trainer_layout = engine_text(c.simulation.trainer);
    row.reference_layout =
        c.reference.replicas > 0 ? engine_text(c.simulation.reference) : std::string();
  }
  return row;
}

TuneJudge::TuneJudge(const TuneOptions& options)
    : options_(options), score_(study::score_of(options)) {}

std::optional<double> TuneJudge::score_of(const Rates& r) const {
  return score_(r);
}

std::optional<double> TuneJudge::hours_to_reward(const Rates& r) const {
  const auto updates = options_.curve ? options_.curve->updates(r.staleness_mean) : std::nullopt;
  return updates ? std::optional(*updates * r.seconds_per_update / 3600) : std::nullopt;
}

void TuneJudge::fill_closed(Candidate& c, const Rates& r) const {
  c.row.closed_tokens_per_s = r.sustained_per_s;
  c.row.closed_staleness = r.staleness_mean;
  if (counts_costs(options_.objective))
    c.row.closed_objective = in_unit(options_, c.config, r);
}

void TuneJudge::fill_sampled(Candidate& c, const Rates& r) const {
  c.row.sampled_tokens_per_s = r.sustained_per_s;
  c.row.sampled_staleness = r.staleness_mean;
  c.row.hours_to_reward = hours_to_reward(r);
  if (counts_costs(options_.objective))
    c.row.sampled_objective = in_unit(options_, c.config, r);
}

std::string TuneJudge::text_of(const TuneRow& row) const {
  const bool costs = counts_costs(options_.objective);
  return fmt::format("{:.1f}k {} ({}, eta {:g})",
                     (costs ? *row.sampled_objective : *row.sampled_tokens_per_s) / 1e3,
                     costs ? unit_of(options_.objective) : "tokens/s",
                     row.mode,
                     row.eta);
}

void TuneJudge::fill(Candidate& c,
                     const Result<Figures>& result,
                     const Rates Figures::*rates) const {
  if (!result) {
    c.row.reason = result.error().context;
    return;
  }
  const Rates& r = (*result).*rates;
  c.figures = *result;
  c.row.tokens_per_s = r.sustained_per_s;
  c.row.seconds_per_update = r.seconds_per_update;
  c.row.staleness = r.staleness_mean;
  c.row.staleness_max = result->whole.staleness_max;
  c.row.busy = r.busy;
  c.row.hours_to_reward = hours_to_reward(r);
  c.row.objective = in_unit(options_, c.config, r);
  if (r.cost) {
    c.row.tokens_per_price = r.cost->tokens_per_price;
    c.row.tokens_per_kwh = r.cost->tokens_per_kwh;
  }
  if (!c.row.objective)
    c.row.reason = not_covered(options_.objective);
  note_violations(c);
}

void TuneJudge::note_violations(Candidate& c) const {
  const TuneConstraints& limits = options_.constraints;
  const auto break_off = [&](std::string why) {
    if (c.row.reason.empty())
      c.row.reason = std::move(why);
  };
  if (const auto bytes = limits.max_memory ? most_memory(c.config) : std::nullopt;
      bytes && *bytes > static_cast<double>(limits.max_memory->count())) {
    break_off(fmt::format("needs {:.1f} GB per device, {:.1f} GB above --max-memory",
                          *bytes / 1e9,
                          (*bytes - static_cast<double>(limits.max_memory->count())) / 1e9));
  }
  if (limits.max_staleness && static_cast<double>(*c.row.staleness_max) > *limits.max_staleness) {
    break_off(fmt::format("trains staleness {}, above --max-staleness {:g}",
                          *c.row.staleness_max,
                          *limits.max_staleness));
  }
  if (limits.min_tokens_per_s && *c.row.tokens_per_s < *limits.min_tokens_per_s) {
    break_off(fmt::format("{:.0f} tokens/s: {:.0f} ({:.1f} %) below --min-tokens-per-s",
                          *c.row.tokens_per_s,
                          *limits.min_tokens_per_s - *c.row.tokens_per_s,
                          100 * (1 - *c.row.tokens_per_s / *limits.min_tokens_per_s)));
  }
}

double TuneJudge::worth(const Candidate& c) const {
  if (!c.row.objective)
    return 0;
  return more_is_better(options_.objective) ? *c.row.objective : 1 / *c.row.objective;
}

void TuneJudge::advise(TuneResult& tuned) const {
  const double least = worth(tuned.tried[tuned.fastest]) * (1 - tuned.error);
  const auto age = [&](std::size_t i) {
    return std::round(*tuned.tried[i].row.staleness / kSameAge);
  };
  tuned.best = tuned.fastest;
  for (std::size_t i = tuned.fastest; i < tuned.tried.size(); ++i) {
    TuneRow& row = tuned.tried[i].row;
    if (!row.objective || !row.reason.empty() || worth(tuned.tried[i]) < least)
      continue;
    tuned.ties.push_back(i);
    row.verdict = "tie";
    if (age(i) < age(tuned.best))
      tuned.best = i;
  }
  tuned.tried[tuned.best].row.verdict = "advised";
}

Status TuneJudge::choose(TuneResult& tuned) const {
  std::ranges::stable_sort(
      tuned.tried, [&](const Candidate& a, const Candidate& b) { return worth(a) > worth(b); });
  const auto is_given = [](const Candidate& c) { return c.row.found_by == "as given"; };
  tuned.given =
      static_cast<std::size_t>(std::ranges::find_if(tuned.tried, is_given) - tuned.tried.begin());
  const auto best = std::ranges::find_if(
      tuned.tried, [](const Candidate& c) { return c.row.objective && c.row.reason.empty(); });
  if (best == tuned.tried.end()) {
    const auto rate = [](const Candidate& c) { return c.row.tokens_per_s; };
    const Candidate& nearest = counts_costs(options_.objective)
                                   ? *std::ranges::max_element(tuned.tried, {}, rate)
                                   : tuned.tried.front();
    return invalid_input(
        fmt::format("no plan meets the constraints; the nearest, {} at eta {:g} "
                    "with {} engines on {} cards: {}",
                    nearest.row.mode,
                    nearest.row.eta,
                    nearest.row.engines,
                    nearest.row.rollout_cards,
                    nearest.row.reason));
  }
  tuned.fastest = static_cast<std::size_t>(best - tuned.tried.begin());
  tuned.curve = options_.curve;
  advise(tuned);
  return {};
}

std::optional<TuneResult::Agreement> agreement_of(const std::vector<const TuneRow*>& rows) {
  std::vector<double> closed, sampled, differences;
  for (const TuneRow* row : rows) {
    if (!row->sampled_tokens_per_s)
      continue;
    const bool costs = row->closed_objective && row->sampled_objective;
    closed.push_back(costs ? *row->closed_objective : *row->closed_tokens_per_s);
    sampled.push_back(costs ? *row->sampled_objective : *row->sampled_tokens_per_s);
    differences.push_back(std::abs(*row->closed_staleness - *row->sampled_staleness));
  }
  if (closed.size() < 2)
    return std::nullopt;
  TuneResult::Agreement a;
  for (std::size_t i = 0; i < closed.size(); ++i) {
    a.error += std::abs(closed[i] / sampled[i] - 1) / static_cast<double>(closed.size());
    a.staleness += differences[i] / static_cast<double>(closed.size());
  }
  a.ranks = rank_correlation(closed, sampled).value_or(0);
  return a;
}

Result<std::vector<double>> allowed_etas(const TuneOptions& options) {
  if (options.etas.empty())
    return invalid_input("--eta: expected at least one bound, for example --eta 0,1,2,4");
  std::vector<double> out;
  for (const double eta : options.etas) {
    if (eta <= options.constraints.max_staleness.value_or(eta))
      out.push_back(eta);
  }
  if (out.empty()) {
    const double least = std::ranges::min(options.etas);
    return invalid_input(
        fmt::format("--eta {:g}: no bound is within --max-staleness {:g}; the smallest is {:g} "
                    "above it; nearest: --eta {:g}",
                    fmt::join(options.etas, ","),
                    *options.constraints.max_staleness,
                    least - *options.constraints.max_staleness,
                    std::floor(*options.constraints.max_staleness)));
  }
  return out;
}

}  // namespace temper::study
