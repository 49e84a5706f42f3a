#include "study/search/deployments.hpp"

#include "actors/simulation/lengths.hpp"
#include "core/scalar_text.hpp"
#include "core/text/numbers.hpp"

#include <fmt/format.h>

namespace temper::study {
namespace {

actors::LengthConfig lengths_of(const LengthSpread& spread) {
  actors::LengthConfig c;
  c.kind = actors::LengthKind::Lognormal;
  c.mean = spread.mean;
  c.p99_over_median = spread.p99_over_median;
  c.cap = spread.cap;
  return c;
}

enum class OptionalMechanisms { AsConfigured, On };

/// Applies the optional mechanisms as configured, as far as the placement allows them.
TuneRegion region_of(orchestrator::PipelineConfig c,
                     orchestrator::PlacementMode mode,
                     OptionalMechanisms mechanisms) {
  using orchestrator::Switching;
  const bool turns = traits_of(mode).alternates();
  if (mechanisms == OptionalMechanisms::On) {
    c.stragglers.prepare = true;
    c.placement.switching = turns ? Switching::OneByOne : Switching::Together;
    c.placement.crowding = 1;
  } else if (!turns) {
    c.placement.switching = Switching::Together;
  } else if (c.placement.switching == Switching::Together) {
    c.stragglers.prepare = false;
  }
  return {std::move(c), mode};
}

Result<TunedDeployment> tuned(const DeploymentOptions& options,
                              const Deployment& deployment,
                              const orchestrator::PipelineConfig& like,
                              OptionalMechanisms mechanisms) {
  TuneOptions search;
  search.etas = {static_cast<double>(deployment.bound)};
  search.runs = options.runs;
  search.finalists = options.finalists;
  search.final_updates = options.steady_updates;
  search.threads = options.threads;
  for (const orchestrator::PlacementMode mode : deployment.modes)
    search.regions.push_back(region_of(like, mode, mechanisms));
  TEMPER_TRY(const TuneResult found, tune(search));
  const Candidate& fastest = found.tried[found.fastest];
  TunedDeployment out{fastest.config, *fastest.figures, found.runs};
  out.config.steps = steps_for(options.steady_updates,
                               deployment.bound);  // Updates of the run that gives the figures.
  return out;
}

DeploymentCell climb(const DeploymentOptions& options,
                     const Deployment& deployment,
                     const LengthSpread& spread,
                     std::int32_t groups) {
  orchestrator::PipelineConfig like = options.config;
  like.algorithm.groups_per_update = groups;
  like.name = fmt::format("comparison-{}", deployment.id);
  like.staleness.bound = deployment.bound;
  like.simulation.response = lengths_of(spread);
  DeploymentCell cell{deployment.id, spread, std::nullopt, std::nullopt, {}, {}, groups};
  if (auto plain = tuned(options, deployment, like, OptionalMechanisms::AsConfigured))
    cell.tuned = *std::move(plain);
  else
    cell.reason = plain.error().context;
  if (auto with = tuned(options, deployment, like, OptionalMechanisms::On))
    cell.with_mechanisms = *std::move(with);
  else
    cell.mechanisms_reason = with.error().context;
  return cell;
}

}  // namespace

const std::vector<Deployment>& known_deployments() {
  using enum orchestrator::PlacementMode;
  static const std::vector<Deployment> deployments{
      {"separate", "synchronous, separate cards", {Separate}, 0},
      {"colocated", "synchronous, co-located", {Colocated}, 0},
      {"one-step-off", "one step off, separate cards", {Separate}, 1},
      {"fusion", "RL Fusion", {Fused, Hybrid}, 0},
      {"fusion-eta1", "RL Fusion + StaleSync, eta 1", {Fused, Hybrid}, 1},
      {"fusion-eta2", "RL Fusion + StaleSync, eta 2", {Fused, Hybrid}, 2},
      {"fusion-eta3", "RL Fusion + StaleSync, eta 3", {Fused, Hybrid}, 3},
      {"fusion-eta4", "RL Fusion + StaleSync, eta 4", {Fused, Hybrid}, 4},
      {"separate-eta2", "StaleSync alone, separate, eta 2", {Separate}, 2},
      {"separate-eta4", "StaleSync alone, separate, eta 4", {Separate}, 4},
  };
  return deployments;
}

const std::vector<PublishedDeployment>& published_deployments() {
  static const std::vector<PublishedDeployment> published{
      {"separate", 384, 14.0e3},
      {"fusion", 384, 25.0e3},
      {"fusion-eta*", 384, 35.0e3},
      {"fusion-eta*", 1536, 127e3},
  };
  return published;
}

std::string LengthSpread::text() const {
  return fmt::format("{}:{}:{}", mean, cap.count(), p99_over_median);
}

Result<LengthSpread> parse_spread(std::string_view text) {
  const auto wrong = [&](std::string_view why) {
    return invalid_input(fmt::format(
        "lengths `{}`: {}; the format is mean:cap:p99/median in tokens, for example 8000:32768:8",
        text,
        why));
  };
  const std::size_t first = text.find(':');
  const std::size_t second = first == std::string_view::npos ? first : text.find(':', first + 1);
  if (second == std::string_view::npos)
    return wrong("expected three numbers");
  const auto mean = parse_number<double>(text.substr(0, first));
  const auto cap = parse_number<std::int64_t>(text.substr(first + 1, second - first - 1));
  const auto tail = parse_number<double>(text.substr(second + 1));
  if (!mean || !cap || !tail)
    return wrong("expected three numbers");
  LengthSpread spread;
  spread.mean = *mean;
  spread.cap = Tokens(*cap);
  spread.p99_over_median = *tail;
  if (spread.p99_over_median < 1 || *cap < 1)
    return wrong("p99/median and the cap must be 1 or more");
  if (const Status status = actors::check_lengths(lengths_of(spread)); !status)
    return wrong(status.error().context);
  return spread;
}

const std::vector<LengthSpread>& default_spreads() {
  static const std::vector<LengthSpread> spreads{
      {1500, Tokens(3072), 3},
      {4000, Tokens(16384), 5},
      {8000, Tokens(32768), 3},
      {8000, Tokens(32768), 10},
      {16000, Tokens(65536), 5},
  };
  return spreads;
}

Result<DeploymentComparison> compare_deployments(const DeploymentOptions& options) {
  if (options.config.hardware != orchestrator::HardwareKind::Simulated)
    return invalid_input(
        "hardware: found local, expected `simulated` for a comparison of deployments");
  DeploymentComparison out;
  out.cards = options.config.placement.cards;
  out.deployments = options.deployments;
  out.spreads = options.spreads;
  out.batches = options.batches;
  if (out.batches.empty())
    out.batches = {options.config.algorithm.groups_per_update};
  out.responses_per_group = options.config.algorithm.responses_per_group;
  out.runs = options.runs;
  out.model = options.config.simulation.model;
  for (const std::int32_t groups : out.batches) {
    for (const LengthSpread& spread : options.spreads) {
      for (const Deployment& deployment : options.deployments) {
        out.cells.push_back(climb(options, deployment, spread, groups));
        if (options.on_cell)
          TEMPER_TRY_STATUS(options.on_cell(out));
      }
    }
  }
  return out;
}

}  // namespace temper::study
