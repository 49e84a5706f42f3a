#include "actors/simulation/expert_imbalance.hpp"

#include "actors/simulation/lengths.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "sim_hw/model/adapter.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/model/parameters.hpp"
#include "sim_hw/network/collectives.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

namespace temper::actors {
namespace {

using sim_hw::as_double;

/// The group of `devices` in as few nodes as hold it evenly.
sim_hw::ExpertGroup group_of(std::int64_t devices, const sim_hw::HardwareSpec& hardware) {
  std::int64_t nodes = std::max<std::int64_t>(1, devices / hardware.devices_per_node());
  while (devices % nodes != 0)
    --nodes;
  return {devices, nodes};
}

}  // namespace

ExpertImbalance::ExpertImbalance(const SimulatedRun& run,
                                 const sim_hw::ExpertGroup& group,
                                 double expert_seconds,
                                 const sim_hw::ExchangeShape& exchange)
    : exchange_(exchange),
      migrates_(run.config.experts.placement == ExpertPlacing::Predicted),
      placed_once_(group.redundant > 0) {
  const ExpertConfig& c = run.config.experts;
  const bool balanced = c.loads == ExpertLoadKind::Balanced;
  const bool equal = balanced && exchange.spread == 0 && group.redundant == 0;
  if (!run.model.moe || equal || group.devices < 2)
    return;
  const std::int64_t experts = run.model.moe->experts;
  experts_ = static_cast<std::size_t>(experts);
  rule_.memory = c.memory;
  rule_.horizon = c.horizon;
  rule_.expert_seconds = expert_seconds;
  trace_ = run.expert_trace;
  if (trace_.empty()) {
    sim_hw::LoadTraceShape shape{experts, 0, balanced ? 0 : c.spread, c.drift};
    if (c.loads == ExpertLoadKind::Zipf)
      shape.exponent = c.exponent;
    const auto drawn = static_cast<std::size_t>(run.model.moe_layers());
    for (std::size_t layer = 0; layer < std::min(kLayers, drawn); ++layer) {
      walks_.emplace_back(shape, Random(c.seed, fmt::format("expert loads of layer {}", layer)));
    }
  }
  layers_.assign(std::max<std::size_t>(1, walks_.size()), sim_hw::ExpertMigration(experts, group));
  for (std::size_t layer = 0; layer < layers_.size(); ++layer)
    exchanges_.emplace_back(c.seed, fmt::format("expert exchanges of layer {}", layer));
}

sim_hw::ExpertLoads ExpertImbalance::loads_of(std::size_t layer, std::size_t version) {
  if (!walks_.empty())
    return walks_[layer].next();
  const std::size_t row = version % (trace_.size() / experts_);
  const auto from = trace_.begin() + static_cast<std::ptrdiff_t>(row * experts_);
  return {from, from + static_cast<std::ptrdiff_t>(experts_)};
}

sim_hw::MigrationOutcome ExpertImbalance::next(std::size_t layer) {
  sim_hw::ExpertMigration& experts = layers_[layer];
  const sim_hw::ExpertLoads loads = loads_of(layer, steps_.size());
  sim_hw::MigrationOutcome step = experts.step(loads, rule_);
  if (exchange_.spread == 0)
    return step;
  Random same = exchanges_[layer];  // Both placements see the same exchanges.
  const auto busiest = [&](const sim_hw::ExpertPlacement& placement, Random& random) {
    return sim_hw::exchange_imbalance(loads, placement, experts.group(), exchange_, random);
  };
  step.imbalance = busiest(experts.placement(), exchanges_[layer]);
  step.without_migration = migrates_ ? busiest(experts.original(), same) : step.imbalance;
  return step;
}

const sim_hw::MigrationOutcome& ExpertImbalance::at(PolicyVersion version,
                                                    double balanced_seconds) {
  const auto index = static_cast<std::size_t>(any() ? version.value() : 0);
  while (steps_.size() <= index) {
    const bool may_move = migrates_ || (placed_once_ && steps_.size() == 1);
    rule_.balanced_seconds = may_move ? balanced_seconds : 0;  // Then no migration pays.
    if (!any()) {
      steps_.emplace_back();
      continue;
    }
    sim_hw::MigrationOutcome mean{0, 0, 0, 0, 0};
    const auto count = static_cast<double>(layers_.size());
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      const sim_hw::MigrationOutcome one = next(layer);
      mean.without_migration += one.without_migration / count;
      mean.imbalance += one.imbalance / count;
      mean.prediction_error += one.prediction_error / count;
      mean.migrations += one.migrations;
      mean.seconds += one.seconds / count;
    }
    steps_.push_back(mean);
  }
  return steps_[index];
}

sim_hw::MigrationOutcome typical(ExpertImbalance experts, double balanced_seconds) {
  if (!experts.any())
    return {};
  sim_hw::MigrationOutcome mean{0, 0, 0, 0, 0};
  for (std::int64_t version = 0; version < kTypicalVersions; ++version) {
    const sim_hw::MigrationOutcome& one =
        experts.at(PolicyVersion(static_cast<std::uint64_t>(version)), balanced_seconds);
    mean.without_migration += one.without_migration / as_double(kTypicalVersions);
    mean.imbalance += one.imbalance / as_double(kTypicalVersions);
    mean.prediction_error += one.prediction_error / as_double(kTypicalVersions);
    mean.migrations += one.migrations;
    mean.seconds += one.seconds / as_double(kTypicalVersions);
  }
  return mean;
}

sim_hw::ExchangeShape trainer_exchange(const SimulatedRun& s, const sim_hw::Layout& layout) {
  const ExpertConfig& c = s.config.experts;
  if (c.sequence_spread == 0)
    return {};
  const sim_hw::RolloutLengths mean = drawn_lengths(s.config.prompt, s.config.response);
  const double tokens = as_double(s.config.trainer.micro_batch_tokens);
  const double own = std::max(1.0, tokens / (mean.prompt + mean.response));
  const auto coupled = std::clamp<std::int64_t>(layout.ep / (layout.tp * layout.cp), 1, layout.dp);
  return sim_hw::exchange_under_loss({own, coupled, layout.dp},
                                     s.config.trainer.mechanisms.balance_loss,
                                     c.sequence_spread,
                                     c.loss_strength);
}

ExpertImbalance trainer_experts(const SimulatedRun& s, const sim_hw::Layout& layout) {
  const sim_hw::ExchangeShape exchange = trainer_exchange(s, layout);
  if (!s.model.moe || (s.config.experts.loads == ExpertLoadKind::Balanced && exchange.spread == 0))
    return {};
  const sim_hw::HardwareSpec& hardware = hardware_of(s, RoleKind::Trainer);
  const sim_hw::Fabric fabric = sim_hw::make_fabric(hardware);
  const sim_hw::StateBytes states = packed_shape(s, layout, 1, Tokens(1)).states;
  const double parameters = as_double(sim_hw::expert_parameters(s.model));
  double trained = parameters;
  double weights = parameters * states.weight;
  if (s.adapter) {
    const sim_hw::AdapterShapes adapter = sim_hw::adapter_shapes(s.model, *s.adapter);
    trained = adapter.rank * adapter.expert.width();
    weights += trained * states.weight;
  }
  const double state = trained * states.optimizer() / as_double(layout.expert_dp());
  double seconds = sim_hw::p2p_seconds(fabric, hardware.devices_per_node(), weights + state);
  if (s.config.trainer.optimizer_on_host)
    seconds +=
        sim_hw::to_device_seconds(fabric, state) + sim_hw::from_device_seconds(fabric, state);
  return {s, group_of(layout.ep, hardware), seconds, exchange};
}

ExpertImbalance engine_experts(const SimulationSettings& s) {
  sim_hw::ExpertGroup group = group_of(s.config.rollout.ep, s.cluster);
  group.redundant = s.config.rollout.redundant_experts;
  return {s, group, 0};
}

double reference_imbalance(const SimulatedRun& s, const sim_hw::Layout& layout) {
  if (!s.model.moe || s.config.experts.loads == ExpertLoadKind::Balanced)
    return 1;
  SimulatedRun frozen = s;
  frozen.config.experts.drift = 0;
  if (!frozen.expert_trace.empty())
    frozen.expert_trace.resize(static_cast<std::size_t>(s.model.moe->experts));
  const sim_hw::ExpertGroup group = group_of(layout.ep, hardware_of(s, RoleKind::Reference));
  ExpertImbalance experts(frozen, group, 0);
  return experts.any() ? experts.at(PolicyVersion(1), 1).imbalance : 1;
}

double largest_imbalance(const SimulatedRun& s, const sim_hw::Layout& layout) {
  ExpertImbalance experts = trainer_experts(s, layout);
  double most = 1;
  for (std::int64_t version = 0; experts.any() && version < kTypicalVersions; ++version) {
    const auto& step = experts.at(PolicyVersion(static_cast<std::uint64_t>(version)),
                                  std::numeric_limits<double>::infinity());
    most = std::max(most, step.imbalance);
  }
  return most;
}

}  // namespace temper::actors
