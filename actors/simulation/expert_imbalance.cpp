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
#include <numeric>

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

double sum_of(const sim_hw::ExpertLoads& loads) {
  return std::accumulate(loads.begin(), loads.end(), 0.0);
}

/// Of a trainer's ranks: those that cut a micro-batch route a part each.
std::optional<sim_hw::ExpertCapacity> capacity_of(const SimulatedRun& s,
                                                  const sim_hw::Layout& layout) {
  const TrainerEngineConfig& c = s.config.trainer;
  if (!c.capacity_factor)
    return std::nullopt;
  return sim_hw::ExpertCapacity{
      *c.capacity_factor,
      std::max<std::int64_t>(1, c.micro_batch_tokens / (layout.tp * layout.cp)),
      s.model.moe->top_k};
}

}  // namespace

RoleLoads loads_of(const SimulatedRun& run, RoleKind role) {
  const auto& own = run.config.trainer.experts;
  if (role == RoleKind::Trainer && own)
    return {*own, run.trainer_expert_trace};
  return {run.config.experts, run.expert_trace};
}

ExpertImbalance::ExpertImbalance(const sim_hw::ModelSpec& model,
                                 const RoleLoads& loads,
                                 const sim_hw::ExpertGroup& group,
                                 const ExpertTreatment& treatment)
    : exchange_(treatment.exchange),
      capacity_(treatment.capacity),
      migrates_(loads.config.placement == ExpertPlacing::Predicted),
      placed_once_(group.redundant > 0) {
  const ExpertConfig& c = loads.config;
  const bool balanced = c.loads == ExpertLoadKind::Balanced;
  const bool equal = balanced && exchange_.spread == 0 && group.redundant == 0;
  if (!model.moe || (!capacity_ && (equal || group.devices < 2)))
    return;
  const std::int64_t experts = model.moe->experts;
  experts_ = static_cast<std::size_t>(experts);
  rule_.memory = c.memory;
  rule_.horizon = c.horizon;
  rule_.expert_seconds = treatment.expert_seconds;
  trace_ = loads.trace;
  if (trace_.empty()) {
    sim_hw::LoadTraceShape shape{experts, 0, balanced ? 0 : c.spread, c.drift};
    if (c.loads == ExpertLoadKind::Zipf)
      shape.exponent = c.exponent;
    const auto drawn = static_cast<std::size_t>(model.moe_layers());
    for (std::size_t layer = 0; layer < std::min(kLayers, drawn); ++layer) {
      walks_.emplace_back(shape, Random(c.seed, fmt::format("expert loads of layer {}", layer)));
    }
  }
  layers_.assign(std::max<std::size_t>(1, walks_.size()), sim_hw::ExpertMigration(experts, group));
  for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
    exchanges_.emplace_back(c.seed, fmt::format("expert exchanges of layer {}", layer));
    replicas_.emplace_back(c.seed, fmt::format("replicas of exchanges of layer {}", layer));
  }
}

sim_hw::ExpertLoads ExpertImbalance::next_loads(std::size_t layer) {
  if (!walks_.empty())
    return walks_[layer].next();
  const std::size_t row = steps_.size() % (trace_.size() / experts_);
  const auto from = trace_.begin() + static_cast<std::ptrdiff_t>(row * experts_);
  return {from, from + static_cast<std::ptrdiff_t>(experts_)};
}

void ExpertImbalance::vary(sim_hw::MigrationOutcome& step,
                           std::size_t layer,
                           const sim_hw::ExpertLoads& routed) {
  const sim_hw::ExpertMigration& experts = layers_[layer];
  step.imbalance = step.without_migration = step.dropped = 0;
  for (int i = 0; i < sim_hw::kDrawnExchanges; ++i) {
    sim_hw::ExpertLoads loads = sim_hw::draw_exchange(routed, exchange_, exchanges_[layer]);
    double processed = 1;
    if (capacity_) {
      const double all = sum_of(loads);
      loads = sim_hw::processed_in_exchange(loads, exchange_, *capacity_, replicas_[layer]);
      processed = sum_of(loads) / all;
    }
    const auto busiest = [&](const sim_hw::ExpertPlacement& placement) {
      return sim_hw::imbalance_of(loads, placement, experts.group()) * processed /
             sim_hw::kDrawnExchanges;
    };
    step.imbalance += busiest(experts.placement());
    step.without_migration += busiest(experts.original());
    step.dropped += (1 - processed) / sim_hw::kDrawnExchanges;
  }
  if (!migrates_)
    step.without_migration = step.imbalance;
}

sim_hw::MigrationOutcome ExpertImbalance::next(std::size_t layer) {
  const sim_hw::ExpertLoads routed = next_loads(layer);
  sim_hw::MigrationRule rule = rule_;
  sim_hw::MigrationOutcome step;
  if (capacity_) {
    const sim_hw::ExpertLoads loads = sim_hw::processed_loads(routed, *capacity_);
    const double processed = sum_of(loads) / sum_of(routed);
    rule.balanced_seconds *= processed;
    step = layers_[layer].step(loads, rule);
    step.imbalance *= processed;
    step.without_migration *= processed;
    step.dropped = 1 - processed;
  } else {
    step = layers_[layer].step(routed, rule);
  }
  if (exchange_.spread != 0)
    vary(step, layer, routed);
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
    sim_hw::MigrationOutcome mean = sim_hw::kNoOutcome;
    const auto count = static_cast<double>(layers_.size());
    double most = 0;
    for (std::size_t layer = 0; layer < layers_.size(); ++layer) {
      const sim_hw::MigrationOutcome one = next(layer);
      mean.add(one, count);
      most = std::max(most, one.dropped);
    }
    mean.dropped_most = most;
    steps_.push_back(mean);
  }
  return steps_[index];
}

sim_hw::MigrationOutcome typical(ExpertImbalance experts, double balanced_seconds) {
  if (!experts.any())
    return {};
  sim_hw::MigrationOutcome mean = sim_hw::kNoOutcome;
  for (std::int64_t version = 0; version < kTypicalVersions; ++version) {
    mean.add(experts.at(PolicyVersion(static_cast<std::uint64_t>(version)), balanced_seconds),
             as_double(kTypicalVersions));
  }
  return mean;
}

sim_hw::ExchangeShape trainer_exchange(const SimulatedRun& s, const sim_hw::Layout& layout) {
  const ExpertConfig c = loads_of(s, RoleKind::Trainer).config;
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
  const RoleLoads loads = loads_of(s, RoleKind::Trainer);
  const bool equal = loads.config.loads == ExpertLoadKind::Balanced && exchange.spread == 0;
  if (!s.model.moe || (equal && !s.config.trainer.capacity_factor))
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
  return {
      s.model, loads, group_of(layout.ep, hardware), {seconds, exchange, capacity_of(s, layout)}};
}

ExpertImbalance engine_experts(const SimulationSettings& s) {
  sim_hw::ExpertGroup group = group_of(s.config.rollout.ep, s.cluster);
  group.redundant = s.config.rollout.redundant_experts;
  return {s.model, loads_of(s, RoleKind::Rollout), group};
}

double reference_imbalance(const SimulatedRun& s, const sim_hw::Layout& layout) {
  if (!s.model.moe || s.config.experts.loads == ExpertLoadKind::Balanced)
    return 1;
  RoleLoads frozen = loads_of(s, RoleKind::Reference);
  frozen.config.drift = 0;
  if (!frozen.trace.empty())
    frozen.trace.resize(static_cast<std::size_t>(s.model.moe->experts));
  const sim_hw::ExpertGroup group = group_of(layout.ep, hardware_of(s, RoleKind::Reference));
  ExpertImbalance experts(s.model, frozen, group);
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
