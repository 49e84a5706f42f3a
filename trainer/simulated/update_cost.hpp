// Time and resource use of one training step on simulated hardware.
//
//   update = pipeline over the packed micro-batches + data parallel + optimizer + host transfer
//            + migration of experts + critic
// The first three are sim_hw::train_iteration_time() of m micro-batches per replica, each one
// sequence of the mean packed tokens of the busiest replica, plus the attention correction of
// actors/simulation/packing.hpp: with D = real - packed attention of one layer, forward; it runs a
// times forward (2 with full recompute; the layers' mean where some recompute it) and the backward
// pass costs attention_backward of it, so that
//   correction = (a + attention_backward) D (m L_s + (L - L_s) / vpp)
// with L_s layers on the slowest stage of L in all, MTP modules included: the others' share is in
// the bubble. Experts: the busiest device has the imbalance of the policy version; between two
// steps experts migrate in all layers of the fullest stage
// (actors/simulation/expert_imbalance.hpp). Dropped copies are neither exchanged nor computed, and
// are no training FLOP. Host transfer, with optimizer_on_host: the optimizer
// states move to the device and back in buckets, through the space that activations released, one
// direction after the other, with the optimizer step between them. Critic: a network of the model's
// shape, so its values take sim_hw::forward_iteration_seconds() and its step as long as the
// policy's; its optimizer states are a part of the host transfer. Its head, a scalar, is counted as
// the policy's. Use: the training FLOP of complete
// sequences (sim_hw/model/flops.hpp), the exchanges of sim_hw::train_traffic(), and memory by the
// longest micro-batch. Constants: those of the hardware. Range: fused attention; micro-batches of a
// replica about equally full, as pack() makes them.
#pragma once

#include "actors/simulation/expert_imbalance.hpp"
#include "actors/simulation/packing.hpp"
#include "actors/simulation/role_memory.hpp"
#include "sim_hw/model/flops.hpp"
#include "sim_hw/operators/device.hpp"
#include "sim_hw/parallel/train_iteration.hpp"

#include <cstdint>
#include <vector>

namespace temper::trainer {

struct UpdateCost {
  std::int64_t micro_batches = 0;  ///< Over all replicas.
  double pipeline = 0;             ///< Seconds, as the rest: slowest stage and bubble.
  double attention_correction = 0;
  double data_parallel = 0;
  double optimizer = 0;
  double host_transfer = 0;
  double expert_migration = 0;
  double critic = 0;
  sim_hw::MigrationOutcome experts;  ///< Balance of the experts in this step.
  sim_hw::TrainTime time;            ///< Parts of pipeline, data_parallel and optimizer.

  double flops = 0;
  sim_hw::LevelBytes sent;  ///< By all devices.
  /// Bytes of one device to its host, and as many back: optimizer states, and activations.
  double swapped_optimizer = 0, swapped_activations = 0;
  actors::ActorMemory memory;  ///< Of one device.

  double total() const {
    return pipeline + attention_correction + data_parallel + optimizer + host_transfer +
           expert_migration + critic;
  }
};

/// Inputs of the equation, computed once from settings that check_trainer() accepts.
class UpdateModel {
 public:
  explicit UpdateModel(const actors::SimulatedRun& run);

  /// Cost of a batch of sequences (prompt and response together) that updates this version.
  /// Requires: at least one sequence.
  UpdateCost operator()(std::vector<Tokens> lengths, PolicyVersion version = {});
  /// How a batch is packed, and the time of its step under typical loads of the experts; the rest
  /// of its cost is not computed.
  actors::PackingLimits limits() const;
  double seconds(const actors::Packing& packing) const;

 private:
  /// Micro-batches that the schedule needs of each replica.
  std::int64_t multiple_of_micro_batches() const;
  sim_hw::TrainShape shape(const actors::Packing& packing) const;
  /// Cost of a squared length in an expert layer, in tokens.
  double cost_per_square() const;
  /// Seconds of a layer's experts and their exchange in a step, at balance.
  double balanced_seconds(const actors::Packing& packing, const sim_hw::TrainShape& shape) const;
  UpdateCost times(const actors::Packing& packing,
                   sim_hw::TrainShape shape,
                   const sim_hw::MigrationOutcome& experts) const;

  actors::SimulatedRun run_;
  sim_hw::ModelSpec model_;
  sim_hw::Device device_;
  sim_hw::Fabric fabric_;
  sim_hw::Layout layout_;
  sim_hw::ModelFlops flops_, flops_without_experts_;
  actors::ExpertImbalance experts_;
  double per_square_ = 0;
  double parked_ = 0;  ///< Bytes of optimizer states in host memory per device.
  double optimizer_transfer_ = 0;
};

}  // namespace temper::trainer
