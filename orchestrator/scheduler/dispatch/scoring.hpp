// Sends generated responses to references and verifiers, in batches that grow while they are busy.
// In a run with several teachers, a response goes only to a reference of its teacher.
#pragma once

#include "orchestrator/scheduler/sharing/card_sharing.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

namespace temper::orchestrator {

void score(
    RunState& run, const CardSharing& sharing, Task task, actors::RoleKind role, Duration deadline);

/// Responses of a lease for a reference or verifier. While the trainer waits, the responses that it
/// waits for go to the reference alone, and others in small batches.
std::size_t full_batch(const RunState& run, Task task);
/// The same of those that are ready for one teacher.
std::size_t full_batch(const RunState& run, Task task, const ResponseSet& ready);

}  // namespace temper::orchestrator
