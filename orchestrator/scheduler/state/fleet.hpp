// The actors as the scheduler sees them: their life, weights and work, and which requests are open.
#pragma once

#include "actors/protocol/weights.hpp"
#include "orchestrator/scheduler/state/actor_spec.hpp"
#include "orchestrator/scheduler/state/commands.hpp"

#include <optional>
#include <set>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// Waiting: lost or not started yet; launched at its time, once few enough others are launching.
enum class Life { Launching, Ready, Down, Waiting };

struct ActorState {
  // What every event looks at comes first, on one cache line.
  Life life = Life::Down;
  bool retiring = false;    ///< It was removed, and its worker was told to end.
  bool staged = false;      ///< Rollout engine: `staging` is staged.
  bool committing = false;  ///< Rollout engine.
  bool has_kv = false;      ///< Rollout engine.
  std::optional<actors::SwitchAction> switching;  ///< Action of a role switch under way.
  std::optional<PolicyVersion> version;  ///< Rollout engine: committed weights; nullopt: none.
  std::optional<PolicyVersion> staging;  ///< Rollout engine: to be staged, not committed yet.

  /// The last Waiting command.
  command::Waiting waiting;

  bool onboard = false;          ///< Time-shared reference: its weights are on the cards.
  std::int32_t restarts = 0;     ///< In a row, since they were last forgotten.
  std::int32_t late_starts = 0;  ///< Of these, restarts after a start that took too long.
  Time launch_at{};              ///< Waiting: not before.
  Time launched_at{};
  Time launch_deadline{};
  Time weights_deadline{};
  Time switch_deadline{};
  Time ready_since{};

  // For the checks of its messages.
  LeaseId first_lease;  ///< Leases below were granted before it was launched.
  Time busy_until{};    ///< Its spans begin here or later.

  bool ready() const { return life == Life::Ready; }
};

/// A deadline that an actor has missed.
struct Overdue {
  ActorId actor;
  DeadlineKind deadline = DeadlineKind::Start;
  std::optional<PolicyVersion> version{};        ///< Of weights.
  std::optional<actors::SwitchAction> action{};  ///< Of a switch.
  bool operator==(const Overdue&) const = default;
};

class Fleet {
 public:
  Fleet() = default;
  /// `starts_at_once`: how many may be launching; 0: any number.
  explicit Fleet(const std::vector<ActorSpec>& specs, std::int32_t starts_at_once = 0)
      : starts_at_once_(starts_at_once) {
    take(specs);
  }

  /// Sets the actors; earlier ones keep their indexes and states.
  void take(const std::vector<ActorSpec>& specs);

  std::size_t size() const { return specs_.size(); }
  const ActorSpec& spec(ActorId a) const { return specs_.at(a.value()); }
  const ActorState& state(ActorId a) const { return states_.at(a.value()); }
  /// The state of an actor, for a change. A reference is valid until the next overdue().
  ActorState& change(ActorId a) {
    watched_.insert(a.value());
    return states_.at(a.value());
  }
  /// Those that were removed from the run.
  const std::vector<ActorId>& removed() const { return removed_; }
  /// Without removed actors.
  const std::vector<ActorId>& with_role(actors::RoleKind role) const {
    return by_role_[static_cast<std::size_t>(role)];
  }
  const std::vector<ActorId>& rollouts() const { return with_role(actors::RoleKind::Rollout); }
  /// Those that time-share the trainer's cards.
  const std::vector<ActorId>& turning_engines() const { return turning_engines_; }
  const std::vector<ActorId>& turning_references() const { return turning_references_; }
  bool takes_turns() const { return !turning_engines_.empty() || !turning_references_.empty(); }
  /// Some engines have exclusive cards, others time-share those of the trainer.
  bool lends() const {
    return !turning_engines_.empty() && turning_engines_.size() < rollouts().size();
  }
  ActorId trainer() const { return with_role(actors::RoleKind::Trainer).front(); }

  /// Resets the actor: its open requests are void, and its weights are gone. Its restarts and the
  /// last Waiting command stay.
  void renew(ActorId a, Life life);
  /// The actor to launch now: it waits, its time has come, and not too many are launching. The one
  /// that has waited longest comes first.
  std::optional<ActorId> next_to_start(Time now) const;

  /// Earliest deadline of a launch, weight transfer or switch in progress, or time of a launch that
  /// waits for nothing else.
  std::optional<Time> next_deadline() const;
  /// An actor with such a deadline at or before `now`.
  std::optional<Overdue> overdue(Time now);

 private:
  bool may_start(std::uint32_t actor) const;

  std::vector<ActorSpec> specs_;
  std::vector<ActorState> states_;
  std::int32_t starts_at_once_ = 0;
  std::array<std::vector<ActorId>, 4> by_role_;
  std::vector<ActorId> turning_engines_, turning_references_, removed_;
  /// Those that may be launching, waiting to be launched or under a deadline: at a change, and
  /// until overdue() finds that they are not. Most events find none, however many actors there are.
  std::set<std::uint32_t> watched_;
};

}  // namespace temper::orchestrator
