// What the programs that run one actor have in common: how they are told who they are, and how they
// become a worker.
#pragma once

#include "actors/runtime/worker.hpp"

#include <string>

namespace temper::actors {

struct ActorArguments {
  std::string connect;      ///< Endpoint of the orchestrator.
  std::string name;         ///< Actor slot.
  std::string credentials;  ///< File of what it proves itself with.
  std::int64_t parent = 0;  ///< Process to die with; 0: none.
};

/// Runs until the orchestrator stops it. Returns the exit code; what went wrong is on stderr, after
/// `program`. Of `options`, who it is and how it is given up is filled in here.
int run_actor_program(const std::string& program,
                      const ActorArguments& arguments,
                      WorkerOptions options,
                      const RoleFactory& make_role);

}  // namespace temper::actors
