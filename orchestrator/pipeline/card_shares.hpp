// Possible sizes of the trainer under one-by-one switching (placement.switching: one_by_one;
// orchestrator/scheduler/sharing/card_shares.hpp), counted in engines whose cards it holds. A size
// is possible if trainer and reference divide it and every phase of a switch fits the memory of its
// cards, including gradients that are kept (stragglers.prepare). Checking this before the run means
// that no switch fails for memory during it.
//
// Every function requires simulated hardware; share_parts() and kv_slots() also that the trainer
// has a share and that actors::check_lengths() succeeds for prompts and responses.
#pragma once

#include "actors/simulation/memory_phases.hpp"
#include "orchestrator/pipeline/resolve.hpp"

namespace temper::orchestrator {

/// Ascending. Empty if all cards switch together, or if no size fits: then the trainer would never
/// get cards. Without prepared gradients, all cards together always fit if check_memory() accepts
/// the placement.
std::vector<std::int32_t> card_shares(const ResolvedPipeline& pipeline);

/// Every phase on all cards, and on each of the shares, largest first. Empty: a phase is
/// impossible. Requires: pipeline.shares are known.
std::vector<actors::PhaseLedger> memory_ledger(const ResolvedPipeline& pipeline);

/// Bytes of a device's share of host memory in which engines may park caches: what no role needs in
/// any phase. A version arrives only at engines that stay on their cards, whose hosts hold nothing
/// of a trainer on a share, so that phase counts once, on all cards; none if a phase does not fit.
/// Requires: pipeline.shares are known.
std::optional<double> room_for_caches(const ResolvedPipeline& pipeline);

/// For each of the shares, the groups that fill the trainer's pipeline on it: with as many
/// micro-batches per replica that its stages wait at most 5 % of the time to fill and drain.
std::vector<std::int32_t> share_parts(const ResolvedPipeline& pipeline,
                                      const std::vector<std::int32_t>& shares);

/// actors::kv_slots() of an engine.
std::int64_t kv_slots(const ResolvedPipeline& pipeline);

}  // namespace temper::orchestrator
