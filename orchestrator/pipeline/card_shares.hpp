// The layouts of the trainer where engines give up their cards one by one (placement.switching:
// one_by_one; orchestrator/scheduler/sharing/card_shares.hpp): of how many engines it may have the cards.
// A share is taken if trainer and reference divide it and every state of a switch fits its cards,
// with the gradients that are kept besides (stragglers.prepare); so nothing is refused for memory
// during the run.
#pragma once

#include "orchestrator/pipeline/resolve.hpp"

namespace temper::orchestrator {

/// Ascending. Empty where cards switch together, and where no share fits: the trainer would never
/// get cards. Without prepared gradients all cards are a share of any placement whose memory is in
/// order. Requires: simulated hardware.
std::vector<std::int32_t> card_shares(const ResolvedPipeline& pipeline);

}  // namespace temper::orchestrator
