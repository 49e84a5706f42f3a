// Possible sizes of the trainer under one-by-one switching (placement.switching: one_by_one;
// orchestrator/scheduler/sharing/card_shares.hpp), counted in engines whose cards it holds. A size
// is possible if trainer and reference divide it and every phase of a switch fits the memory of its
// cards, including gradients that are kept (stragglers.prepare). Checking this before the run means
// that no switch fails for memory during it.
//
// Every function requires simulated hardware; share_parts() and kv_slots() also that the trainer
// has a share and that actors::check_lengths() succeeds for prompts and responses.
#pragma once

#include "orchestrator/pipeline/resolve.hpp"

namespace temper::orchestrator {

/// Ascending. Empty if all cards switch together, or if no size fits: then the trainer would never
/// get cards. Without prepared gradients, all cards together always fit if check_memory() accepts
/// the placement.
std::vector<std::int32_t> card_shares(const ResolvedPipeline& pipeline);

/// For each of the shares, the groups that fill the trainer's pipeline on it: with as many
/// micro-batches per replica that its stages wait at most 5 % of the time to fill and drain.
std::vector<std::int32_t> share_parts(const ResolvedPipeline& pipeline,
                                      const std::vector<std::int32_t>& shares);

/// actors::kv_slots() of an engine.
std::int64_t kv_slots(const ResolvedPipeline& pipeline);

}  // namespace temper::orchestrator
