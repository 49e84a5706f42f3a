// A worker that the run did not start. It finds the run through its endpoint file, which may appear
// later, authenticates with a key from `temper keys`, and requests a place. When the orchestrator
// is lost, the worker keeps its role and loaded state, and continues under the next orchestrator.
//
//   1  Wait for the file. It names an endpoint: 2. It says that the run has ended: exit, success.
//   2  Send actor.hello every second. Welcomed: 3. The file names another endpoint: 1. Rejected, or
//      patience has passed: exit.
//   3  At work. actor.stop: exit, success. Orchestrator silent, or worker released: 1, with the
//      orchestrator's `grace` as patience. SIGTERM: exit.
#pragma once

#include "actors/runtime/actor_program.hpp"

namespace temper::actors {

/// Returns the exit code: 0 after actor.stop or if the run has ended, 143 after SIGTERM or SIGINT.
/// Fills in the identity in `options`. Errors: those of read_credentials(), place_of() and
/// read_address(); InvalidInput if the key belongs to another run; Timeout if the endpoint file did
/// not appear within `arguments.patience` seconds, or within the grace after a loss; otherwise
/// those of run_worker().
Result<int> run_attached(const ActorArguments& arguments,
                         WorkerOptions options,
                         const RoleFactory& make_role,
                         const Clock& clock,
                         const Log& log);

}  // namespace temper::actors
