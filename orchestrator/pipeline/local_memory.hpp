// What the processes of a run on this machine hold at most, by card and by what the card is at,
// before the run: the ledger that `placement.card_memory` is held against.
//
// W: bytes of the weights (float32). Of each process, besides the program itself:
//   rollout    generates  weights, KV cache (every position of every slot), rows of a step; where
//                         versions come while it generates, the staged one and its image too
//              else       rows of a step
//   trainer    trains     weights, gradients, optimizer (2 W), what an update that fails goes back
//                         to (3 W), activations of a micro-batch
//              else       weights; its optimizer is in host memory
//   reference  scores     weights, rows of a micro-batch; where it is always there, always
//              else       nothing
//   reward                nothing
// In host memory (memory of no process and no card): the optimizer while the trainer does not
// train, and the images of the versions that are kept.
// An actor of several cards counts evenly on each. Upper limits: a KV cache is there as far as it
// was written, and a micro-batch may have fewer rows. Not counted: messages, and what a verifier's
// programs take.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

/// One thing that one actor holds on a card: its share of it.
struct LocalBytes {
  std::string actor;
  std::string_view what;
  double bytes = 0;
};

/// A card while it is at one thing.
struct CardLedger {
  CardId card;
  std::string_view phase;  ///< `separate`, or what the shared cards are at.
  std::vector<LocalBytes> parts;

  double bytes() const;
  /// "rollout-0 412.5 MiB (process 80.0, weights 9.5, ...), reference-0 ..."
  std::string text() const;
};

struct LocalLedger {
  std::vector<CardLedger> cards;
  double host = 0;  ///< At its fullest.

  /// Of all cards together, while they are at what takes the most.
  double most() const;
};

/// Whether every process is ours: of others' nobody knows beforehand what they hold.
bool has_local_ledger(const PipelineConfig& config);
/// Requires: has_local_ledger(). Error: a model that cannot be.
Result<LocalLedger> local_ledger(const PipelineConfig& config);

/// Notes where a card may not hold what it needs (`placement.card_memory`), with the nearest
/// change that fits.
void check_local_memory(const PipelineConfig& config, Rules& rules);

}  // namespace temper::orchestrator
