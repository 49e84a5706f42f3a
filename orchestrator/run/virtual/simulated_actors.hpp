// Creates the actors of simulated hardware from their role configuration: the same in a worker
// process and in a driver that hosts them.
#pragma once

#include "actors/protocol/role_config.hpp"
#include "actors/simulation/simulated_actor.hpp"
#include "actors/simulation/weight_moves.hpp"

#include <cstddef>
#include <memory>
#include <vector>

namespace temper::orchestrator {

/// Engines with equal settings share what is the same for all of them.
class SimulatedActors {
 public:
  /// Errors: settings that do not decode, a layout that the model or the cluster does not allow.
  Result<std::unique_ptr<actors::SimulatedActor>> operator()(const actors::RoleConfig& role);

 private:
  std::vector<std::byte> engine_;  ///< Settings of the engines that share publications_.
  std::shared_ptr<actors::Publications> publications_;
};

}  // namespace temper::orchestrator
