// The trainer on simulated hardware: checks certificates as the real one does, takes as long as
// update_cost.hpp says, moves its state over the host links when cards switch role. Its weights are
// a version and a size; a checkpoint of it is empty, and takes its bytes / the bandwidth of the
// storage (simulation.checkpoint) to save, and as long to be read by a trainer that goes on from
// it.
//
// Messages are done one after the other, in their order; a switch that does not fit is refused and
// changes nothing.
// Switch (equation; d: bytes of a device that train_ledger() counts):
//   offload  weights and, if on the device, optimizer to the host; gradients are dropped. The
//            weights stay on the device as well until the engines have resharded them
//   onload   the same bytes back; refused where the whole ledger exceeds the device's memory.
//            Onto other cards than the last time (placement.switching: one_by_one) all of the
//            state, optimizer states that live on the host and gradients that are kept included,
//            goes host - fabric - host besides, at the new layout's bytes of a device: an upper
//            limit, as if nothing lay where it is needed
// Where the engines or the reference are in another cluster, an update, or counted.prepare, waits
// for the payloads of its responses first (actors/simulation/role_clusters.hpp): `weight-sync`.
// Gradients of counted.prepare cost the pipeline of their own micro-batches, with their own bubble;
// the update that holds their groups costs that of the rest, and what an update costs once. While
// gradients are kept they leave the device with the weights.
#pragma once

#include "actors/protocol/counted.hpp"
#include "actors/protocol/weights.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/simulated_actor.hpp"
#include "actors/simulation/span_log.hpp"
#include "trainer/simulated/update_cost.hpp"

#include <deque>
#include <set>
#include <variant>

namespace temper::trainer {

class SimulatedTrainer final : public actors::SimulatedActor {
 public:
  /// `version`: of the weights it starts from.
  SimulatedTrainer(actors::SimulationSettings settings, PolicyVersion version);

  /// Error: a layout that does not divide the model or its cards.
  Status start(Time now, actors::Outbox& out) override;
  /// Error: a certificate that is refused, or a batch while the optimizer is parked; the actor
  /// cannot go on.
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
  /// Begins waiting jobs until one takes time.
  Status begin_next(Time now, actors::Outbox& out);
  Status begin(const Loading& job, Time now, actors::Outbox& out);
  Status begin(const actors::CountedTrain& job, Time now, actors::Outbox& out);
  Status begin(const actors::CountedPrepare& job, Time now, actors::Outbox& out);
  Status begin(const actors::SaveState& job, Time now, actors::Outbox& out);
  Status begin(const actors::Switch& job, Time now, actors::Outbox& out);
  void finish(Time now, actors::Outbox& out);
  /// Work of so long, of whose data the last has `arrived`.
  void take(Time arrived, Duration duration);
  /// When the payloads of these responses are here, if they are sent for now.
  Time receive(const actors::PayloadTokens& responses, Time now);
  /// Adds the job under way to the spans, as far as it is.
  void record(Time now);
  void note_usage();
  /// Counts a share of the update under way as used.
  void account(double share);
  HeldMemory held() const;
  /// To save a checkpoint, or to read it.
  Duration checkpoint_time() const;
  /// What an action takes; an error says why it does not fit.
  Result<double> switch_seconds(actors::SwitchAction action) const;
  /// Takes the layout of these cards; empty: of all. Returns the seconds in which its state comes
  /// there.
  double settle_on(const std::vector<CardId>& cards);
  /// Of the cards that it has now.
  double devices() const {
    return static_cast<double>(actors::bytes_on(settings_, settings_.trainer_cards, 1).count());
  }
  /// Bytes of a device that leave it with an offload.
  double moved() const;
  bool works() const {
    return std::holds_alternative<actors::CountedTrain>(jobs_.front()) ||
           std::holds_alternative<actors::CountedPrepare>(jobs_.front());
  }
  actors::WeightsHandle weights() const { return {.version = version_, .bytes = weight_bytes_}; }

  actors::SimulationSettings settings_;  ///< trainer_cards: those that it has now.
  std::optional<UpdateModel> update_;    ///< Made by start(), once the layout is known to be well.
  sim_hw::Fabric fabric_;
  actors::ActorMemory memory_;
  std::vector<CardId> cards_;   ///< That it has now; empty: all.
  std::set<GroupId> prepared_;  ///< Groups whose gradients are kept.
  Bytes weight_bytes_;

  PolicyVersion version_;
  Optimizer optimizer_ = Optimizer::Onboard;
  std::deque<Job> jobs_;  ///< The front one is under way while `until_` is set.
  std::optional<Time> until_;
  Time began_{};               ///< With its data there.
  Time recorded_{};            ///< The job under way before it is in `spans_`.
  actors::Trained trained_;    ///< Of the update under way.
  UpdateCost cost_;            ///< The same.
  actors::Switched switched_;  ///< Of the switch under way.
  actors::SpanLog spans_;
  actors::UsageMeter meter_;
};

/// As check_certificate() of trainer/trainer_role.hpp.
Status check_certificate(const actors::CountedTrain& work, PolicyVersion version);

}  // namespace temper::trainer
