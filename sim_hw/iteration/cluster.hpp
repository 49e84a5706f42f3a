// One synchronous RL iteration on many cards. The same devices roll out, score and train in turn,
// or rollout and training (with the reference) have separate cards. Phases in order, seconds:
//
//   reshard    every training weight reaches its place in the rollout layout: each tensor is
//              gathered over all devices, each keeps its slice (as verl's per-tensor export does),
//              so every device receives the model once; bytes / all-gather bandwidth
//   prefill    the prompts of a replica in one pass, in the rollout layout
//   decode     longest response x (decode step + engine overhead of an untuned host)
//   reference  forward pass of every micro-batch through the training pipeline, then log-softmax
//   reward     tokens x cost of the verifier per token on the host
//   update     train_iteration_time()
//   offload    the training weights to host memory and back, over the host links; none on separate
//              cards
//
// Assumed: responses of equal length, experts equally loaded, MTP modules not trained, bf16
// gradients, optimizer states in host memory where they do not fit the device. A micro-batch holds
// one sequence and every layer is recomputed, as in the published MindSpeed recipe of the same
// model (PT019: MBS1, full recompute, optimizer swapped); without recompute the ledger exceeds 64
// GB. Offload counts link time only: pinning and staging on the host, which dominate in practice,
// are not modeled. Sources of constants: configs/hardware and configs/calibration.
#pragma once

#include "sim_hw/parallel/train_iteration.hpp"
#include "sim_hw/steps/parallel_decode.hpp"

#include <algorithm>

namespace temper::sim_hw {

struct ClusterWork {
  double prompts = 0;
  double group = 0;
  double prompt = 0;    ///< Tokens.
  double response = 0;  ///< Tokens of every response.
  double sequences() const { return prompts * group; }
  double tokens() const { return sequences() * (prompt + response); }
};

enum class HostTuning { None, Tuned };

/// Shared: the same cards are time-shared. Separate: rollout and training have exclusive cards.
enum class Cards { Shared, Separate };

struct ClusterPlan {
  RolloutLayout rollout;  ///< Over the rollout devices.
  Layout training;        ///< Over the trainer devices, which also run the reference.
  Cards cards = Cards::Shared;
  HostTuning tuning = HostTuning::None;
};

struct ClusterIteration {
  double reshard = 0;
  double prefill = 0;
  double decode = 0;
  double reference = 0;
  double reward = 0;
  double update = 0;
  double offload = 0;

  double rollout() const { return reshard + prefill + decode; }
  /// All phases in sequence, as a synchronous iteration runs them.
  double total() const { return rollout() + reference + reward + update + offload; }
  /// Separate cards, one step off-policy: the longer of the two sides.
  double one_step_off() const { return std::max(rollout() + reward, reference + update); }
};

/// Requires: check_layout() accepts `layout` for the sequences; the rollout layout fits its
/// devices.
ClusterIteration cluster_iteration(const ModelSpec& model,
                                   const HardwareSpec& hardware,
                                   const ClusterPlan& plan,
                                   const ClusterWork& work);

/// The training shape that the iteration assumes.
TrainShape rl_train_shape(const ModelSpec& model, const ClusterWork& work, const Layout& layout);

/// Forward pass of a whole batch through the pipeline, with log-probs of every token.
double forward_iteration_seconds(const ModelSpec& model,
                                 const Device& device,
                                 const Fabric& fabric,
                                 const Layout& layout,
                                 const TrainShape& shape);

}  // namespace temper::sim_hw
