// Predicted peak memory of the processes of a run on this machine, by card and by phase. The limit
// `placement.card_memory` is checked against it before the run.
//
// W: bytes of the weights (float32). In addition to the program itself, each process holds:
//   rollout    generating  weights; KV cache (every position of every slot); buffers of a step; if
//                          versions arrive during generation, also the staged one and its image;
//                          with `on_new_weights: finish` as many older versions as the bound
//              otherwise   buffers of a step
//   trainer    training    weights; gradients; optimizer (2 W); activations of a micro-batch
//              otherwise   weights; its optimizer is in host memory
//   reference  scoring     weights; buffers of a micro-batch; always, if it has exclusive cards
//              otherwise   nothing
//   reward                 nothing
// In host memory, counted for no process and no card: the optimizer while the trainer does not
// train, and the images of the versions that are kept.
// An actor on several cards counts evenly on each. All figures are upper bounds: a KV cache grows
// as it is written, and a micro-batch may have fewer rows. Not counted: messages, and the memory of
// a verifier's programs.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

/// One item that an actor holds on a card: the card's share of it.
struct LocalBytes {
  std::string actor;
  std::string_view what;
  double bytes = 0;
};

/// A card in one phase.
struct CardLedger {
  CardId card;
  std::string_view phase;  ///< `separate`, or the phase of time-shared cards.
  std::vector<LocalBytes> parts;

  double bytes() const;
  /// "rollout-0 412.5 MiB (process 80.0, weights 9.5, ...), reference-0 ..."
  std::string text() const;
};

struct LocalLedger {
  std::vector<CardLedger> cards;
  double host = 0;  ///< Largest over the phases.

  /// The phase with the largest sum over all cards.
  double most() const;
};

/// Whether all engines are native; the memory of others cannot be predicted.
bool has_local_ledger(const PipelineConfig& config);
/// Requires: has_local_ledger(). Error: the model is invalid.
Result<LocalLedger> local_ledger(const PipelineConfig& config);

/// Reports a card that may exceed `placement.card_memory`, with the nearest change that fits.
void check_local_memory(const PipelineConfig& config, Rules& rules);

}  // namespace temper::orchestrator
