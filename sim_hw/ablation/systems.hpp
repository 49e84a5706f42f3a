// The training systems whose mechanisms the ablation switches off and on, under the published
// conditions. Where none were published, the assumptions are stated. Values; no threads.
#pragma once

#include "core/result.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/parallel/expert_balance.hpp"
#include "sim_hw/parallel/layer_cost.hpp"
#include "sim_hw/parallel/train_iteration.hpp"

#include <cstdint>
#include <vector>

namespace temper::sim_hw {

/// Borrows its model; the catalog must outlive it.
struct MoeSystem {
  const ModelSpec* model = nullptr;
  const HardwareSpec* hardware = nullptr;
  Device device;
  Fabric fabric;
  Layout layout;
  TrainShape shape;

  TrainTime time() const { return train_iteration_time(*model, device, fabric, layout, shape); }
  /// Cost of one layer with experts.
  LayerCost expert_layer() const;
  double tokens() const;
  double tokens_per_second() const { return tokens() / time().total(); }
  double mfu() const;
};

/// Pangu Ultra MoE 718B on 6144 Atlas A2 devices in the published layout: TP8 PP16 VPP2 EP32, two
/// sequences of 8192 tokens per micro-batch. Assumed: 64 micro-batches per step, ZeRO 1, full
/// recompute.
Result<MoeSystem> pangu_ultra_moe(Catalog& catalog);
/// DeepSeek-V3 671B with EP16 on 512 Atlas A2 devices. Everything else is assumed: TP4 PP16 VPP2,
/// one sequence of 4096 tokens per micro-batch, 32 micro-batches, ZeRO 1, full recompute.
Result<MoeSystem> deepseek_v3_ep16(Catalog& catalog);
/// Input traces of EDPB: recorded ones if there are any, else parameters of generated ones.
struct TraceInput {
  std::vector<ExpertLoads> loads;  ///< Recorded, of one layer; one entry per step.
  std::vector<double> samples;     ///< Recorded: sum of squared document lengths per sample.
  double load_spread = 0.5;        ///< Standard deviation of the log of an expert's popularity.
  double load_drift = 0.02;        ///< Share of the popularity renewed per step.
  std::int64_t steps = 200;
  double document_median = 1000;  ///< Tokens.
  double document_spread = 1.2;   ///< Standard deviation of the log length.
  std::uint64_t seed = 1;
};
/// Imbalances of these traces without and with EDPB (expert_balance.hpp, data_balance.hpp).
struct TraceFigures {
  double experts_original = 1;
  double experts_migrated = 1;
  std::int64_t steps = 0;
  std::int64_t migrations = 0;
  double migration_seconds = 0;  ///< Per step and layer.
  double samples_original = 1;
  double samples_balanced = 1;
};
/// Requires: the number of recorded samples, if any, is one micro-batch per replica or a multiple.
TraceFigures trace_figures(const MoeSystem& system, const TraceInput& input);

}  // namespace temper::sim_hw
