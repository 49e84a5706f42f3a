// The trainer on simulated hardware: checks certificates as the real one does, takes the time of
// update_cost.hpp, and moves its state over the host links on a role switch. Its weights are a
// version and a size. Its checkpoints are empty; to save or load one takes its bytes / the
// bandwidth of the storage (simulation.checkpoint).
//
// Messages are handled one after the other, in order; a switch that does not fit is refused and
// changes nothing.
// Switch (equation; d: bytes of a device that train_ledger() counts):
//   offload  weights and, if on the device, optimizer to the host; gradients are dropped. The
//            weights also stay on the device until the engines have resharded them
//   onload   the same bytes back; refused if the whole ledger exceeds the device's memory. Onto
//            other cards than the last time (placement.switching: one_by_one), all of the state,
//            including optimizer states in host memory and kept gradients, also travels host -
//            fabric - host, at the new layout's bytes per device: an upper bound, as if nothing
//            were in place already
// If the engines or the reference are in another cluster, a step, or counted.prepare, first waits
// for the payloads of its responses (actors/simulation/role_clusters.hpp): `weight-sync`. So it
// does for their tensors, wherever the engines are (actors/simulation/tensor_fetch.hpp). Gradients
// of counted.prepare cost the pipeline of their own micro-batches, with their own bubble; the step
// with their groups costs that of the rest, and the fixed cost of a step. Kept gradients are
// offloaded with the weights.
#pragma once

#include "actors/protocol/counted.hpp"
#include "actors/protocol/weights.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/simulated_actor.hpp"
#include "actors/simulation/span_log.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "trainer/simulated/update_cost.hpp"

#include <deque>
#include <set>
#include <variant>

namespace temper::trainer {

class SimulatedTrainer final : public actors::SimulatedActor {
 public:
  /// `version`: version of the initial weights.
  SimulatedTrainer(actors::SimulationSettings settings, PolicyVersion version);

  /// Error: a layout that does not divide the model or its cards.
  Status start(Time now, actors::Outbox& out) override;
  /// Error: a rejected certificate, or a batch while the optimizer is offloaded. The actor cannot
  /// continue.
  Status on_message(const actors::IncomingMessage& message, Time now, actors::Outbox& out) override;
  Status advance(Time now, actors::Outbox& out) override;
  std::optional<Time> next_event() const override;

 private:
  enum class Optimizer { Onboard, Parked };
  struct Loading {};
  using Job = std::variant<Loading,
                           actors::CountedTrain,
                           actors::CountedPrepare,
                           actors::SaveState,
                           actors::Switch>;
  struct HeldMemory {
    Bytes device, host;
  };

  void stop(Time now, actors::Outbox& out);
  /// Starts waiting jobs until one takes time.
  Status begin_next(Time now, actors::Outbox& out);
  Status begin(const Loading& job, Time now, actors::Outbox& out);
  Status begin(const actors::CountedTrain& job, Time now, actors::Outbox& out);
  Status begin(const actors::CountedPrepare& job, Time now, actors::Outbox& out);
  Status begin(const actors::SaveState& job, Time now, actors::Outbox& out);
  Status begin(const actors::Switch& job, Time now, actors::Outbox& out);
  void finish(Time now, actors::Outbox& out);
  /// A job of this duration, whose data is complete at `arrived`.
  void take(Time arrived, Duration duration);
  /// When the payloads of these responses arrive if they are sent now.
  Time receive(const actors::PayloadTokens& responses, Time now);
  /// Reads the tensors of these responses. Requires: `cost_` is that of the job. Returns the time.
  Duration fetch_tensors(const actors::PayloadTokens& responses);
  /// Adds the finished part of the current job to the spans.
  void record(Time now);
  void note_usage();
  /// Counts a share of the current step as used.
  void account(double share);
  HeldMemory held() const;
  /// Time to save or load a checkpoint.
  Duration checkpoint_time() const;
  /// Time of a switch action. Error: it does not fit.
  Result<double> switch_seconds(actors::SwitchAction action) const;
  /// Takes the layout of these cards; empty: all. Returns the seconds to move its state there.
  double settle_on(const std::vector<CardId>& cards);
  /// Number of its current cards.
  double devices() const {
    return static_cast<double>(actors::bytes_on(settings_, settings_.trainer_cards, 1).count());
  }
  actors::Gradients gradients() const {
    return prepared_.empty() ? actors::Gradients::Dropped : actors::Gradients::Kept;
  }
  /// Bytes per device that an offload moves.
  double moved() const;
  bool works() const {
    return std::holds_alternative<actors::CountedTrain>(jobs_.front()) ||
           std::holds_alternative<actors::CountedPrepare>(jobs_.front());
  }
  actors::WeightsHandle weights() const { return {.version = version_, .bytes = weight_bytes_}; }

  actors::SimulationSettings settings_;  ///< trainer_cards: its current number of cards.
  actors::SharedCards shared_;           ///< All cards that it ever has.
  std::optional<UpdateModel> update_;    ///< Created by start(), after the layout is validated.
  sim_hw::Fabric fabric_;
  actors::ActorMemory memory_;
  std::vector<CardId> cards_;   ///< Its current cards; empty: all.
  std::set<GroupId> prepared_;  ///< Groups whose gradients are kept.
  Bytes weight_bytes_;

  PolicyVersion version_;
  Optimizer optimizer_ = Optimizer::Onboard;
  std::deque<Job> jobs_;  ///< The front job is running while `until_` is set.
  std::optional<Time> until_;
  Time began_{};               ///< When its data had arrived.
  Time recorded_{};            ///< The current job is in `spans_` up to here.
  actors::Trained trained_;    ///< Of the current step.
  UpdateCost cost_;            ///< Of the current step.
  actors::Switched switched_;  ///< Of the current switch.
  actors::SpanLog spans_;
  actors::UsageMeter meter_;
};

/// As check_certificate() in trainer/trainer_role.hpp.
Status check_certificate(const actors::CountedTrain& work, PolicyVersion version);

}  // namespace temper::trainer
