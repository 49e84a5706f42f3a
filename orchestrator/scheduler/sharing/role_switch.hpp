// The switch of shared cards between rollout, scoring and training (docs/explanation/semantics.md,
// section 2.2), as a state machine over the actors that take turns on the trainer's cards
// (ActorSpec::takes_turns). Where no actor takes turns, it stays in one state that allows
// everything.
//
//   1. Train            -> DrainTrain        nothing to train on; rollout or scoring has work
//   2. DrainTrain       -> OffloadOptimizer  no update under way
//   3. OffloadOptimizer -> Reshard           weights and optimizer are on the host
//                       -> OnloadReference   the same, on the way to scoring
//   4. Reshard          -> Bind              every engine has staged the published version
//   5. Bind             -> KvAlloc           every engine has committed it: the version gate
//   6. KvAlloc          -> Rollout           every engine bound by 5 has its KV cache (last: lowers
//                                            the peak); one that starts meanwhile joins in Rollout
//   7. Rollout          -> CutRoute          training has work that outweighs what still generates
//   8. CutRoute         -> Interrupt         nothing is dispatched to them any more
//   9. Interrupt        -> FreeKv            running responses are handed back with their prefixes
//  10. FreeKv           -> OffloadWeights    KV caches are freed
//  11. OffloadWeights   -> OnloadReference   engines' weights are freed; scoring is due
//                       -> Onload            engines' weights are freed; scoring is not due
//  12. OnloadReference  -> Score             every reference has its weights on the cards
//  13. Score            -> OffloadReference  nothing is left to score
//  14. OffloadReference -> Onload            references are on the host again
//  15. Onload           -> Train             optimizer is back on the card
//  16. Onload (refused) -> OffloadOptimizer  rollback: back to Rollout by 3 to 6, at most
//                                            kMaxRefusals times in a row
//  17. Train            -> CutRoute          more engines give up their cards; the trainer stays on
//                                            those it has and spreads to all of them by 15
// Who leaves. A turn concerns the engines that it was asked for (leaving()): all that take turns,
// or some of them (placement.switching: one_by_one, card_shares.hpp). The states above are theirs,
// "every engine" is each of them, and trainer and references work on their cards alone; the others
// are in Rollout all the while. In Rollout nobody has left. At the start all have.
// Every action has a deadline; an actor that misses it, or dies, is replaced and joins by 4 to 6,
// a reference in 12 or 13. References that take turns start on the host.
#pragma once

#include "orchestrator/scheduler/state/fleet.hpp"

#include <algorithm>

namespace temper::orchestrator {

class RoleSwitch {
 public:
  static constexpr std::int32_t kMaxRefusals = 3;

  RoleSwitch() = default;
  explicit RoleSwitch(const Fleet& fleet)
      : phase_(fleet.takes_turns() ? SwitchPhase::Train : SwitchPhase::Separate),
        leaving_(fleet.turning_engines()) {}

  SwitchPhase phase() const { return phase_; }
  bool allows_training() const {
    return phase_ == SwitchPhase::Separate || phase_ == SwitchPhase::Train;
  }

  // --- Of the actors that take turns
  /// Whose cards are others', or on the way.
  const std::vector<ActorId>& leaving() const { return leaving_; }
  bool has_left(ActorId engine) const {
    return std::find(leaving_.begin(), leaving_.end(), engine) != leaving_.end();
  }
  bool allows_rollout(ActorId engine) const { return !has_left(engine); }
  bool allows_publication(ActorId engine) const {
    return !has_left(engine) || phase_ == SwitchPhase::Reshard || phase_ == SwitchPhase::Bind;
  }
  /// Engines at the published version may get their KV cache.
  bool allows_kv(ActorId engine) const {
    return !has_left(engine) || phase_ == SwitchPhase::KvAlloc;
  }
  /// References may bring their weights to the cards.
  bool allows_reference() const {
    return phase_ == SwitchPhase::OnloadReference || phase_ == SwitchPhase::Score;
  }

  /// From Rollout: these engines give up their cards. `scoring`: there is something to score on the
  /// way. From Train: these besides those that have.
  enum class Scoring { None, Needed };
  void request_training(Scoring scoring, std::vector<ActorId> engines);
  /// From Train.
  void request_rollout();
  void request_scoring();
  /// From Score.
  void scored();

  /// Takes every transition that is due and issues its actions. `issue(actor, action)` asks an
  /// actor and marks it as switching. Error: rollbacks are used up;
  /// it has the words of the last refusal.
  template <class Issue>
  Status advance(const Fleet& fleet, PolicyVersion published, Issue&& issue) {
    while (step(fleet, published)) {
      for_each_action(fleet, issue);
    }
    if (refusals_ > kMaxRefusals)
      return Error{ErrorCode::OutOfMemory, refusal_};
    return {};
  }

  /// The answer to OnloadOptimizer was a refusal.
  void onload_refused(std::string why);

 private:
  bool nobody_has_left() {
    leaving_.clear();
    first_new_ = 0;
    return true;
  }
  /// Takes one transition if its condition holds.
  bool step(const Fleet& fleet, PolicyVersion published);
  /// The action that the phase just entered asks of its actors.
  std::optional<actors::SwitchAction> entry_action() const;
  template <class Issue>
  void for_each_action(const Fleet& fleet, Issue&& issue) {
    using A = actors::SwitchAction;
    const auto action = entry_action();
    if (!action)
      return;
    if (*action == A::OffloadOptimizer || *action == A::OnloadOptimizer) {
      issue(fleet.trainer(), *action);
      return;
    }
    const bool references = *action == A::OffloadReference;
    for (const ActorId a : references ? fleet.turning_references() : leaving_) {
      if (fleet.state(a).ready() && (references || leaves_now(a)))
        issue(a, *action);
    }
  }

  /// It is not one that had left before this turn was asked for.
  bool leaves_now(ActorId engine) const {
    return std::find(leaving_.begin() + static_cast<std::ptrdiff_t>(first_new_),
                     leaving_.end(),
                     engine) != leaving_.end();
  }

  SwitchPhase phase_ = SwitchPhase::Separate;
  std::vector<ActorId> leaving_;
  std::size_t first_new_ = 0;  ///< In leaving_; those before had left when the turn was asked for.
  Scoring scoring_ = Scoring::None;  ///< The next turn is scoring.
  bool refused_ = false;
  std::int32_t refusals_ = 0;
  std::string refusal_;
};

}  // namespace temper::orchestrator
