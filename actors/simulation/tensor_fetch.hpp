// What the tensors of simulated responses cost (simulation.tensors): host memory, traffic and time.
//
// Life. An engine writes the tensors of a response into the memory of its own hosts, evenly over
// them: those of a token while it is generated, beside the decode steps and at no time of theirs,
// the rest when the response ends. The trainer reads those of a batch before its step, or before
// counted.prepare, and waits for them: `weight-sync`. They stay until the group leaves the queue.
// Only the trainer reads them. The engine that ends a response has all of its tensors; those of
// attempts that were interrupted before are not counted.
//
// Fetch (equation). Every trainer device reads an equal part of the batch from all engine cards
// alike: a rank reads its own rows, and of these the layers and tokens that it computes. A tensor
// that several ranks of a replica need whole takes as many times as much.
//   network = busiest_port_seconds(): the port of each card at the level that joins both ends.
//             Cards of one node have the same host memory, so nothing is sent between them.
//             Engines in another cluster: sim_hw::payload_seconds() over the link between clusters
//   t = start_up + (network + bytes per device / its host link) / link_share
// Memory (prediction). Of the engines' hosts: all responses that the staleness rule admits, each of
// the mean length or of the mean context of a running response, whichever is more. Of the trainer's
// hosts: one batch. A run holds more where engines or batches are uneven.
// Constants: those of the hardware. Range: links alone; link_share scales them down to what a store
// reaches. Ends and reads of tensors do not delay other traffic.
#pragma once

#include "actors/simulation/role_clusters.hpp"
#include "sim_hw/network/collectives.hpp"

namespace temper::actors {

/// Bytes of tensors of these responses. Each response counts run.response_weight times.
double tensor_bytes(const SimulatedRun& run, const PayloadTokens& responses);

/// One read of a batch by the trainer.
struct TensorFetch {
  double bytes = 0;
  double seconds = 0;
  /// Bytes sent; after the levels of the trainer's cluster, the link between clusters.
  sim_hw::LevelBytes sent;
};
/// `fabric`: of the trainer's cluster. Takes time in proportion to the cards.
TensorFetch fetch_tensors(const sim_hw::Fabric& fabric,
                          const SimulatedRun& run,
                          const TensorPlaces& places,
                          double bytes);

}  // namespace temper::actors
