// Command-line flags and main function of the programs that run one actor.
#pragma once

#include "actors/runtime/worker.hpp"

#include <optional>
#include <string>

namespace temper::actors {

struct ActorArguments {
  std::string connect;      ///< Endpoint of the orchestrator; for attached workers also
                            ///< RUN_DIR/endpoint.
  std::string name;         ///< Actor slot.
  std::string credentials;  ///< Credentials file.
  std::int64_t parent = 0;  ///< Parent process; the worker exits when it ends. 0: none.
  // Only for workers that attach.
  std::string key;   ///< Key file from `temper keys`; empty: the orchestrator started this worker.
  std::string role;  ///< Requested place: any free slot of this role,
  std::string slot;  ///< this actor slot,
  /// or the attached slot with this number; if all are empty, the launcher's rank is used.
  std::optional<std::int64_t> rank;
  double patience = 600;  ///< Seconds to wait for the run, and for a place in it.
};

/// Declares the flags for workers of both kinds. `App` is CLI11's, which only programs include.
template <class App>
void declare_actor_flags(App& app, ActorArguments& a) {
  app.add_option("--connect", a.connect, "Endpoint of the orchestrator, or RUN_DIR/endpoint")
      ->required();
  auto* name =
      app.add_option("--name", a.name, "Actor slot; set by the run that starts the worker");
  auto* credentials = app.add_option(
      "--credentials", a.credentials, "Credentials file; set by the run that starts the worker");
  app.add_option("--parent", a.parent, "Exit when this process ends; set by the run");
  auto* key = app.add_option("--key", a.key, "Attach with this key file (from `temper keys make`)");
  auto* role = app.add_option("--role", a.role, "Attach as any free actor of this role");
  auto* slot = app.add_option("--slot", a.slot, "Attach as this actor, e.g. rollout-3");
  auto* rank = app.add_option("--rank", a.rank, "Attach as the attached actor with this number");
  app.add_option("--patience", a.patience, "Seconds to wait for the run, and for a place in it");
  role->needs(key)->excludes(slot)->excludes(rank);
  slot->needs(key)->excludes(rank);
  rank->needs(key);
  name->excludes(key)->needs(credentials);
}

/// Runs until the orchestrator stops the worker; an attached worker (attach.hpp) also continues
/// under later orchestrators. Returns the exit code and prints errors to stderr, prefixed with
/// `program`. Fills in the identity and the abandon handler of `options`.
int run_actor_program(const std::string& program,
                      const ActorArguments& arguments,
                      WorkerOptions options,
                      const RoleFactory& make_role);

}  // namespace temper::actors
