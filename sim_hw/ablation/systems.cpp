#include "sim_hw/ablation/systems.hpp"

#include "sim_hw/memory/weights.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/model/parameters.hpp"
#include "sim_hw/parallel/data_balance.hpp"
#include "sim_hw/parallel/expert_balance.hpp"
#include "sim_hw/parallel/layout_check.hpp"

#include <string_view>

namespace temper::sim_hw {
namespace {

Result<MoeSystem> system_of(Catalog& catalog,
                            std::string_view model,
                            const Layout& layout,
                            const TrainShape& shape) {
  MoeSystem system;
  TEMPER_TRY(system.model, catalog.model(model));
  TEMPER_TRY(system.hardware, catalog.hardware("ascend-910b"));
  system.device = make_device(*system.hardware);
  system.fabric = make_fabric(*system.hardware);
  system.layout = layout;
  system.shape = shape;
  TEMPER_TRY_STATUS(check_layout(*system.model, layout.devices(), layout, shape));
  return system;
}

/// Bytes that move with one expert: its weights and its shard of the optimizer states.
double expert_bytes(const MoeSystem& system) {
  const StateBytes& states = system.shape.states;
  const double share =
      system.layout.zero >= Zero::Optimizer ? as_double(system.layout.expert_dp()) : 1;
  return as_double(expert_parameters(*system.model)) * (states.weight + states.optimizer() / share);
}

}  // namespace

LayerCost MoeSystem::expert_layer() const {
  const Device used = device_under(shape.mechanisms, device);
  return layer_cost({*model, used, fabric, layout, shape}, LayerKind::Experts);
}

double MoeSystem::tokens() const {
  return as_double(shape.global_batch * shape.seq);
}

double MoeSystem::mfu() const {
  return model_flops(*model, shape) / time().total() /
         (as_double(layout.devices()) * device.matrix_peak);
}

Result<MoeSystem> pangu_ultra_moe(Catalog& catalog) {
  Layout layout;
  layout.tp = 8;
  layout.pp = 16;
  layout.vpp = 2;
  layout.ep = 32;
  layout.dp = 48;
  layout.zero = Zero::Optimizer;
  layout.sequence_parallel = SequenceParallel::On;
  TrainShape shape;
  shape.micro_batch = 2;
  shape.global_batch = 64 * shape.micro_batch * layout.dp;
  shape.seq = 8192;
  shape.recompute = Recompute::Full;
  return system_of(catalog, "pangu-ultra-moe-718b", layout, shape);
}

Result<MoeSystem> deepseek_v3_ep16(Catalog& catalog) {
  Layout layout;
  layout.tp = 4;
  layout.pp = 16;
  layout.vpp = 2;
  layout.ep = 16;
  layout.dp = 8;
  layout.zero = Zero::Optimizer;
  layout.sequence_parallel = SequenceParallel::On;
  TrainShape shape;
  shape.global_batch = 32 * layout.dp;
  shape.seq = 4096;
  shape.recompute = Recompute::Full;
  return system_of(catalog, "deepseek-v3", layout, shape);
}

TraceFigures trace_figures(const MoeSystem& system, const TraceInput& input) {
  const Layout& layout = system.layout;
  TraceFigures out;
  Random random(input.seed, "expert loads");
  const std::vector<ExpertLoads> trace =
      !input.loads.empty()
          ? input.loads
          : generate_loads(
                {system.model->moe->experts, input.steps, input.load_spread, input.load_drift},
                random);
  const std::int64_t nodes =
      std::max<std::int64_t>(1, layout.ep / system.hardware->devices_per_node());
  const LayerCost layer = system.expert_layer();
  MigrationRule rule;
  rule.balanced_seconds = as_double(system.shape.micro_batches(layout)) *
                          (layer.time.experts + layer.time.expert_parallel);
  rule.expert_seconds =
      p2p_seconds(system.fabric, system.hardware->devices_per_node(), expert_bytes(system));
  const MigrationOutcome moved = migrate(trace, {layout.ep, nodes}, rule);
  out.experts_original = moved.without_migration;
  out.experts_migrated = moved.imbalance;
  out.steps = std::ssize(trace);
  out.migrations = moved.migrations;
  out.migration_seconds = moved.seconds;

  Random lengths(input.seed, "documents");
  const std::int64_t seq = system.shape.seq;
  std::vector<double> costs = input.samples;
  if (costs.empty()) {
    costs = pack_documents(
        {input.document_median, input.document_spread}, system.shape.global_batch, seq, lengths);
  }
  const std::int64_t row = layout.dp * system.shape.micro_batch;
  costs.resize(costs.size() - costs.size() % static_cast<std::size_t>(row));
  const SampleReplicas replicas{
      layout.dp, std::max<std::int64_t>(1, layout.ep / layout.tp), system.shape.micro_batch};
  out.samples_original = attention_imbalance(costs, original_order(costs.size()), replicas, seq);
  out.samples_balanced = attention_imbalance(costs, balanced_order(costs, replicas), replicas, seq);
  return out;
}

}  // namespace temper::sim_hw
