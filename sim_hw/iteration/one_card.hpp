// One synchronous GRPO iteration with all roles on one device, as it was measured (`rl_iteration`).
// Phases in order; each is a sum of steps of sim_hw/steps/steps.hpp:
//
//   prefill     every response's prompt, 64 sequences at a time (no prefix sharing)
//   decode      all responses together; at step i the live ones, rounded up to a multiple of 8
//               (64 above 32), attend over prompt + the next multiple of 256 of i; captured graphs
//   reference   log-probs of micro-batches filled in ascending length up to 16384 padded tokens
//   update      forward + backward with full recompute per micro-batch, then one AdamW step
//   weight sync a copy of all weights to the inference copy on the same device
// Reward and advantage cost nothing here.
#pragma once

#include "sim_hw/steps/steps.hpp"

#include <vector>

namespace temper::sim_hw {

struct IterationWork {
  double prompt = 0;            ///< Tokens of each prompt.
  std::vector<double> lengths;  ///< Tokens of every response, ascending.
};

inline constexpr double kPrefillSequences = 64;
inline constexpr double kContextBlock = 256;
inline constexpr double kMicroBatchTokens = 16384;

/// A micro-batch of `sequences` padded to `seq` tokens.
struct MicroBatch {
  double sequences = 0;
  double seq = 0;
};
/// Fills micro-batches in ascending length, up to `limit` padded tokens; at least one sequence
/// each.
std::vector<MicroBatch> fill_micro_batches(const IterationWork& work, double limit);

struct OneCardIteration {
  double response_tokens = 0;
  double longest = 0;
  double decode_steps = 0;
  double micro_batches = 0;
  double padded_tokens = 0;
  double prefill = 0;  ///< Seconds, like all members below.
  double decode = 0;
  double reference = 0;
  double update = 0;
  double weight_sync = 0;

  double total() const { return prefill + decode + reference + update + weight_sync; }
};

OneCardIteration one_card_iteration(const Device& d, const StepModel& m, const IterationWork& work);

}  // namespace temper::sim_hw
