// One synchronous RL iteration over many cards: the same devices roll out, score and train in turn,
// or rollout and training (with the reference) have their own. Phases in order, seconds:
//
//   reshard    every training weight reaches its place in the rollout layout. Gathered whole: each
//              tensor is gathered over all devices, each keeps its slice (what verl's per-tensor
//              export does), so every device receives the model once; bytes / all-gather bandwidth
//   prefill    the prompts of a replica in one pass, layout of the rollout
//   decode     longest response x (decode step + engine overhead of an untuned host)
//   reference  forward of every micro-batch through the training pipeline, log-softmax at its end
//   reward     tokens x cost of the verifier per token on the host
//   update     train_iteration_time()
//   offload    the training weights to host memory and back, over the host links; none on own cards
//
// Assumed: responses of equal length, experts equally loaded, MTP modules not trained, bf16
// gradients, optimizer states in host memory where they do not fit. Micro-batches hold one sequence
// and every layer is recomputed, as the published MindSpeed recipe of the same model has it (PT019:
// MBS1, full recompute, optimizer swapped); without recompute the ledger exceeds 64 GB. Offload is
// the time of the links alone: pinning and staging on the host, which dominate in practice, are not
// modelled. Sources of constants: configs/hardware and configs/calibration.
#pragma once

#include "sim_hw/parallel/train_iteration.hpp"
#include "sim_hw/steps/parallel_decode.hpp"

#include <algorithm>

namespace temper::sim_hw {

struct ClusterWork {
  double prompts = 0;
  double group = 0;
  double prompt = 0;    ///< Tokens.
  double response = 0;  ///< Tokens, every response.
  double sequences() const { return prompts * group; }
  double tokens() const { return sequences() * (prompt + response); }
};

enum class HostTuning { None, Tuned };

/// Whether the same cards take turns, or rollout and training have their own.
enum class Cards { Shared, Separate };

struct ClusterPlan {
  RolloutLayout rollout;  ///< Over the rollout's devices.
  Layout training;        ///< Over the trainer's devices, which also run the reference.
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
  /// One after the other, as a synchronous iteration runs them.
  double total() const { return rollout() + reference + reward + update + offload; }
  /// On separate cards with updates one step behind: the longer side.
  double one_step_off() const { return std::max(rollout() + reward, reference + update); }
};

/// Requires: check_layout() accepts `layout` for the sequences, and the rollout layout its devices.
ClusterIteration cluster_iteration(const ModelSpec& model,
                                   const HardwareSpec& hardware,
                                   const ClusterPlan& plan,
                                   const ClusterWork& work);

/// The training shape that the iteration assumes.
TrainShape rl_train_shape(const ModelSpec& model, const ClusterWork& work, const Layout& layout);

/// Forward of a whole batch through the pipeline, with log-probs of every token.
double forward_iteration_seconds(const ModelSpec& model,
                                 const Device& device,
                                 const Fabric& fabric,
                                 const Layout& layout,
                                 const TrainShape& shape);

}  // namespace temper::sim_hw
