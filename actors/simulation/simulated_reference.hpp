// The reference on simulated hardware: one forward pass at a time over all waiting leases. On
// time-shared cards (SimulationSettings::colocated) it starts with its weights in host memory;
// OnloadReference and OffloadReference move them over each device's link.
//
//   pass = sim_hw::forward_iteration_seconds() of the packed micro-batches (packing.hpp)
//        + attention correction: (real - packed) forward attention x (m L_1 + L - L_1)
// with m micro-batches per replica, and L layers, L_1 of them on the first stage, the largest.
// It counts forward FLOP of whole sequences, the traffic of sim_hw::forward_traffic(), and memory
// for the longest micro-batch. Layout: reference_layout(). Constants: those of the hardware.
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
  sim_hw::LevelBytes sent;  ///< Bytes sent by all devices.
  ActorMemory memory;       ///< Memory of one device.
};

/// Cost model of forward passes. Requires: settings that check_reference() accepts.
class ReferenceModel {
 public:
  explicit ReferenceModel(const SimulationSettings& settings);
  /// Requires: at least one length.
  ReferencePass pass(std::vector<Tokens> lengths) const;
  double seconds(std::vector<Tokens> lengths) const { return pass(std::move(lengths)).seconds; }
  /// Packing limits, and the duration of a pass over packed sequences.
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
  double imbalance_ = 1;  ///< Of its experts.
};

class SimulatedReference final : public SimulatedActor {
  enum class Place { Host, Card };

 public:
  explicit SimulatedReference(SimulationSettings settings);

  /// Error InvalidInput if no reduced layout of the trainer divides the cards.
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
  /// Switches to the layout of these cards (empty: all cards). Returns the seconds for moving its
  /// weights to their hosts.
  double settle_on(const std::vector<CardId>& cards);
  bool onboard() const { return place_ == Place::Card; }
  /// Number of its current devices.
  double devices() const {
    return static_cast<double>(settings_.cards * settings_.cluster.dies_per_card);
  }
  Bytes held(Place where) const;
  /// Adds the finished part of the current pass to the spans.
  void record(Time now);
  /// Adds a share of the current pass to the usage.
  void account(double share);
  void count_held();
  /// The ledger of its present cards.
  void predict();

  SimulationSettings settings_;          ///< `cards` is the current number.
  std::optional<ReferenceModel> model_;  ///< Created by start().
  std::vector<CardId> cards_;            ///< Current cards; empty: all.
  sim_hw::Fabric fabric_;
  ActorMemory memory_;
  enum class State { Nothing, Loading, Scoring, Switching } state_ = State::Nothing;
  Place place_ = Place::Card;
  std::deque<CountedScore> waiting_;  ///< The first `under_way_` are in the current pass.
  std::size_t under_way_ = 0;
  ReferencePass pass_;         ///< The current pass.
  Switched switched_;          ///< Result of the current switch.
  std::optional<Time> until_;  ///< End of the current activity.
  Time began_{};               ///< Start of the current pass, after its responses arrived.
  Time recorded_{};            ///< Activity before this time is in `spans_`.
  SpanLog spans_;
  UsageMeter meter_;
};

}  // namespace temper::actors
