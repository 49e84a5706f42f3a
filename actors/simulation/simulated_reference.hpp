// The reference on simulated hardware: one forward pass at a time, over all leases that wait.
// One that takes turns on its cards (SimulationSettings::colocated) starts with its weights in host
// memory; OnloadReference and OffloadReference move them over each device's link.
//
//   pass = sim_hw::forward_iteration_seconds() of the packed micro-batches (packing.hpp)
//        + attention correction: (real - packed) forward attention x (m L_1 + L - L_1)
// with m micro-batches of a replica, L layers, L_1 of them on the first stage, which has the most.
// It uses forward FLOP of whole sequences, the exchanges of sim_hw::forward_traffic(), and memory
// by the longest micro-batch. Layout: reference_layout(). Constants: those of the hardware.
#pragma once

#include "actors/protocol/counted.hpp"
#include "actors/protocol/weights.hpp"
#include "actors/simulation/packing.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/simulated_actor.hpp"
#include "actors/simulation/span_log.hpp"
#include "sim_hw/model/flops.hpp"
#include "sim_hw/network/collectives.hpp"

#include <deque>

namespace temper::actors {

struct ReferencePass {
  double seconds = 0;
  double flops = 0;
  sim_hw::LevelBytes sent;  ///< By all devices.
  ActorMemory memory;       ///< Of one device.
};

/// Forward passes of a reference. Requires: settings that check_reference() accepts.
class ReferenceModel {
 public:
  explicit ReferenceModel(const SimulationSettings& settings);
  /// Requires: at least one length.
  ReferencePass pass(std::vector<Tokens> lengths) const;
  double seconds(std::vector<Tokens> lengths) const { return pass(std::move(lengths)).seconds; }
  /// How sequences are packed, and what a pass over them takes.
  PackingLimits limits() const;
  double seconds(const Packing& packing) const;

 private:
  sim_hw::TrainShape shape(const Packing& packing) const;

  SimulationSettings settings_;
  sim_hw::ModelSpec model_;
  sim_hw::ModelFlops flops_;
  sim_hw::Device device_;
  sim_hw::Fabric fabric_;
  sim_hw::Layout layout_;
};

class SimulatedReference final : public SimulatedActor {
  enum class Place { Host, Card };

 public:
  explicit SimulatedReference(SimulationSettings settings);

  /// Error: no layout of the trainer's kind divides the cards.
  Status start(Time now, Outbox& out) override;
  Status on_message(const IncomingMessage& message, Time now, Outbox& out) override;
  Status advance(Time now, Outbox& out) override;
  std::optional<Time> next_event() const override;

 private:
  void begin_pass(Time now);
  void finish(Time now, Outbox& out);
  Status score(CountedScore work, Time now);
  void stop(Time now, Outbox& out);
  void begin_switch(const Switch& work, Time now, Outbox& out);
  /// Takes the layout of these cards; empty: of all. Returns the seconds in which its weights come
  /// to their hosts.
  double settle_on(const std::vector<CardId>& cards);
  bool onboard() const { return place_ == Place::Card; }
  Bytes held(Place where) const;
  /// Adds the pass under way to the spans, as far as it is.
  void record(Time now);
  /// Counts a share of the pass under way as used.
  void account(double share);
  void count_held();

  SimulationSettings settings_;          ///< cards: those that it has now.
  std::optional<ReferenceModel> model_;  ///< Made by start().
  std::vector<CardId> cards_;            ///< That it has now; empty: all.
  sim_hw::Fabric fabric_;
  ActorMemory memory_;
  enum class Doing { Nothing, Loading, Scoring, Switching } doing_ = Doing::Nothing;
  Place place_ = Place::Card;
  std::deque<CountedScore> waiting_;  ///< The first `under_way_` are in the pass.
  std::size_t under_way_ = 0;
  ReferencePass pass_;         ///< Under way.
  Switched switched_;          ///< Of the switch under way.
  std::optional<Time> until_;  ///< End of what it is doing.
  Time began_{};               ///< The pass, with its responses there.
  Time recorded_{};            ///< That is in `spans_` before this.
  SpanLog spans_;
  UsageMeter meter_;
};

}  // namespace temper::actors
