// What the programs that run one actor have in common: how they are told who they are, and how they
// become a worker.
#pragma once

#include "actors/runtime/worker.hpp"

#include <optional>
#include <string>

namespace temper::actors {

struct ActorArguments {
  std::string connect;      ///< Endpoint of the orchestrator; attached: or RUN_DIR/endpoint.
  std::string name;         ///< Actor slot.
  std::string credentials;  ///< File of what it proves itself with.
  std::int64_t parent = 0;  ///< Process to die with; 0: none.
  // Of a worker that attaches.
  std::string key;   ///< File of `temper keys`; empty: the orchestrator started it.
  std::string role;  ///< Place that it asks for: a role,
  std::string slot;  ///< an actor slot,
  /// or the attached slot of that number; none: as its launcher numbers it.
  std::optional<std::int64_t> rank;
  double patience = 600;  ///< Seconds that it waits for the run, and for a place in it.
};

/// The flags of both kinds. `App`: of CLI11, which only programs include.
template <class App>
void declare_actor_flags(App& app, ActorArguments& a) {
  app.add_option("--connect", a.connect, "Endpoint of the orchestrator, or RUN_DIR/endpoint")
      ->required();
  auto* name = app.add_option("--name", a.name, "Started by a run: its actor slot");
  auto* credentials = app.add_option(
      "--credentials", a.credentials, "Started by a run: file of what it proves itself with");
  app.add_option("--parent", a.parent, "Started by a run: process to die with");
  auto* key = app.add_option("--key", a.key, "Attach with this file of `temper keys make`");
  auto* role = app.add_option("--role", a.role, "Attach as any free actor of this role");
  auto* slot = app.add_option("--slot", a.slot, "Attach as this actor, e.g. rollout-3");
  auto* rank = app.add_option("--rank", a.rank, "Attach as the attached actor of this number");
  app.add_option("--patience", a.patience, "Seconds to wait for the run, and for a place in it");
  role->needs(key)->excludes(slot)->excludes(rank);
  slot->needs(key)->excludes(rank);
  rank->needs(key);
  name->excludes(key)->needs(credentials);
}

/// Runs until the orchestrator stops it; attached (attach.hpp) also on under its successors.
/// Returns the exit code; what went wrong is on stderr, after `program`. Of `options`, who it is
/// and how it is given up is filled in here.
int run_actor_program(const std::string& program,
                      const ActorArguments& arguments,
                      WorkerOptions options,
                      const RoleFactory& make_role);

}  // namespace temper::actors
