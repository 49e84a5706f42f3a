// Which hardware each role of a simulated run is on, where roles are in several clusters, and what
// crosses between these (equations: sim_hw/network/cluster_link.hpp). With one cluster every
// function says so, and nothing crosses.
//
// Payloads, as a live run has them in its messages (docs/protocol.md), per response:
//   from the engines to the trainer    8 bytes of a token of the response (id and log-prob), 4 of
//   one
//                                      of the prompt, 64 of ids, lengths and reward
//   from the engines to the reference  4 bytes of a token of either; 64
//   from the reference to the trainer  4 bytes of a token of the response
// Assumed: they cross when an update, or a pass, is to begin, which waits for them; nothing of the
// next is sent before.
// Functions of values; no threads.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "sim_hw/network/cluster_link.hpp"

#include <vector>

namespace temper::actors {

/// Of the role's cards.
const sim_hw::HardwareSpec& hardware_of(const SimulatedRun& run, RoleKind role);
/// From here on the run's `cluster` is the role's.
void look_at(SimulatedRun& run, RoleKind role);
/// Each once: the trainer's, then those of others.
std::vector<const sim_hw::HardwareSpec*> all_hardware(const SimulatedRun& run);
/// Whether these roles are in different clusters.
bool are_apart(const SimulatedRun& run, RoleKind a, RoleKind b);

/// Of one device of the role, towards other clusters; none: there are no others.
std::optional<BytesPerSecond> outside_of(const SimulatedRun& run, RoleKind role);

/// Requires, as the next: the run has several clusters.
sim_hw::ClusterLink link_between(const SimulatedRun& run);
sim_hw::OutsidePort port_of(const SimulatedRun& run, RoleKind role);

/// Of responses, all together.
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
/// Of a batch on its way to the trainer; nothing where nothing crosses.
/// Responses count for run.response_weight each.
Crossing to_trainer(const SimulatedRun& run, const PayloadTokens& batch);
/// The same of responses on their way to the reference.
Crossing to_reference(const SimulatedRun& run, const PayloadTokens& responses);

}  // namespace temper::actors
