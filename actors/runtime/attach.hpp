// A worker that nobody of its run started: it finds the run by its endpoint file, which may appear
// late, proves itself with a key of `temper keys`, and asks for a place. When the orchestrator is
// lost it keeps its role, with all that took long to load, and goes on under the successor.
//
//   1  the file names an endpoint: 2. It says that the run has ended: the end, well.
//   2  actor.hello every second. Welcomed: 3. The file names another endpoint: 1. Refused, or
//      patience is over: the end.
//   3  at work. actor.stop: the end, well. Silence, or let go: 1, with the orchestrator's `grace`
//      as patience. SIGTERM: the end.
#pragma once

#include "actors/runtime/actor_program.hpp"

namespace temper::actors {

/// The exit code: 0 after actor.stop or where the run has ended, 143 after SIGTERM. Of `options`,
/// who it is is filled in here.
Result<int> run_attached(const ActorArguments& arguments,
                         WorkerOptions options,
                         const RoleFactory& make_role,
                         const Clock& clock,
                         const Log& log);

}  // namespace temper::actors
