// The hardware of each role of a simulated run whose roles are in several clusters, the selection
// of a role with its hardware and model, and the traffic between clusters (equations:
// sim_hw/network/cluster_link.hpp). With one cluster there is no such traffic.
//
// Payloads per response, as in the messages of a live run (docs/reference/protocol.md):
//   engines to trainer     8 bytes per response token (id and log-prob), 4 per prompt token, 64 for
//                          ids, lengths and reward
//   engines to reference   4 bytes per token; 64
//   reference to trainer   4 bytes per response token
// Assumption: the transfer starts when an update or a pass is about to start, and delays it;
// nothing is sent earlier. Pure functions.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "sim_hw/network/cluster_link.hpp"

#include <vector>

namespace temper::actors {

/// Hardware of the role's cards.
const sim_hw::HardwareSpec& hardware_of(const SimulatedRun& run, RoleKind role);
/// Sets the run's `cluster` and `model` to those of the role. Requires: the run of no reference.
void look_at(SimulatedRun& run, RoleKind role);
/// Each hardware once: the trainer's first, then the others.
std::vector<const sim_hw::HardwareSpec*> all_hardware(const SimulatedRun& run);
/// True if these roles are in different clusters.
bool are_apart(const SimulatedRun& run, RoleKind a, RoleKind b);

/// Bandwidth of one device of the role toward other clusters; empty if there are none.
std::optional<BytesPerSecond> outside_of(const SimulatedRun& run, RoleKind role);

/// This and the next function require several clusters.
sim_hw::ClusterLink link_between(const SimulatedRun& run);
sim_hw::OutsidePort port_of(const SimulatedRun& run, RoleKind role);

/// Token totals of responses.
struct PayloadTokens {
  std::int64_t responses = 0;
  Tokens prompt, response;

  void add(Tokens its_prompt, Tokens its_response) {
    ++responses;
    prompt += its_prompt;
    response += its_response;
  }
};
struct Crossing {
  double bytes = 0;
  double seconds = 0;
};
/// Traffic of a batch to the trainer; zero within one cluster. Each response counts
/// run.response_weight times.
Crossing to_trainer(const SimulatedRun& run, const PayloadTokens& batch);
/// The same for responses sent to the reference.
Crossing to_reference(const SimulatedRun& run, const PayloadTokens& responses);

}  // namespace temper::actors
