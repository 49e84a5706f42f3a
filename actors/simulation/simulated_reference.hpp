// The reference on simulated hardware: one forward pass at a time over the oldest leases that wait,
// as many as fill its pipeline once (pp micro-batches of every replica), at least one.
//
//   pass = sim_hw::forward_iteration_seconds() of the packed micro-batches (packing.hpp)
//        + attention correction: (real - packed) forward attention x (m L_1 + L - L_1)
// with m micro-batches of a replica, L layers, L_1 of them on the first stage, which has the most.
// Layout: reference_layout(). Constants: those of the hardware.
#pragma once

#include "actors/protocol/counted.hpp"
#include "actors/simulation/packing.hpp"
#include "actors/simulation/simulated_actor.hpp"
#include "actors/simulation/span_log.hpp"

#include <deque>

namespace temper::actors {

/// Forward passes of a reference. Requires: settings that check_reference() accepts.
class ReferenceModel {
 public:
  explicit ReferenceModel(const SimulationSettings& settings);
  /// Requires: at least one length.
  double seconds(std::vector<Tokens> lengths) const;
  /// Tokens that fill the pipeline once.
  Tokens full() const;

 private:
  SimulationSettings settings_;
  sim_hw::ModelSpec model_;
  sim_hw::Device device_;
  sim_hw::Fabric fabric_;
  sim_hw::Layout layout_;
};

class SimulatedReference final : public SimulatedActor {
 public:
  explicit SimulatedReference(SimulationSettings settings);

  /// Error: no layout of the trainer's kind divides the cards.
  Status start(Time now, Outbox& out) override;
  Status on_message(const IncomingMessage& message, Time now, Outbox& out) override;
  Status advance(Time now, Outbox& out) override;
  std::optional<Time> next_event() const override;

 private:
  void begin_pass(Time now);
  /// Adds the pass under way to the spans, as far as it is.
  void record(Time now);

  const SimulationSettings settings_;
  std::optional<ReferenceModel> model_;  ///< Made by start().
  bool loaded_ = false;
  std::deque<CountedScore> waiting_;  ///< The first `under_way_` are in the pass.
  std::size_t under_way_ = 0;
  std::optional<Time> until_;  ///< End of the pass, or of loading.
  Time recorded_{};            ///< The pass under way before it is in `spans_`.
  SpanLog spans_;
};

}  // namespace temper::actors
