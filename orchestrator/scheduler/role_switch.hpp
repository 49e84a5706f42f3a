// The switch of co-located cards between rollout and training (SEMANTICS 2), as a state machine
// over the actors of one card group. With separate cards it stays in one state that allows both.
//
//   1. Train            -> DrainTrain        nothing left to train on, rollout has work
//   2. DrainTrain       -> OffloadOptimizer  no update under way
//   3. OffloadOptimizer -> Reshard           optimizer is on the host
//   4. Reshard          -> Bind              every engine has staged the published version
//   5. Bind             -> KvAlloc           every engine has committed it: the version gate
//   6. KvAlloc          -> Rollout           every engine bound by 5 has its KV cache (last: lowers
//                                            the peak); one that starts meanwhile joins in Rollout
//   7. Rollout          -> CutRoute          a batch can be trained and rollout has run dry
//   8. CutRoute         -> Interrupt         nothing is dispatched any more
//   9. Interrupt        -> FreeKv            running responses are handed back with their prefixes
//  10. FreeKv           -> OffloadWeights    KV caches are freed
//  11. OffloadWeights   -> Onload            engines' weights are freed
//  12. Onload           -> Train             optimizer is back on the card
//  13. Onload (refused) -> OffloadOptimizer  rollback: back to Rollout by 3 to 6, at most
//                                            kMaxRollbacks times in a row
// Every action has a deadline; an engine that misses it, or dies, is replaced and joins by 4 to 6.
#pragma once

#include "orchestrator/scheduler/fleet.hpp"

namespace temper {
namespace orchestrator {

enum class SwitchPhase {
  Separate,
  Train,
  DrainTrain,
  OffloadOptimizer,
  Reshard,
  Bind,
  KvAlloc,
  Rollout,
  CutRoute,
  Interrupt,
  FreeKv,
  OffloadWeights,
  Onload
};

class RoleSwitch {
 public:
  static constexpr std::int32_t kMaxRollbacks = 3;

  explicit RoleSwitch(bool colocated = false)
      : phase_(colocated ? SwitchPhase::Train : SwitchPhase::Separate) {}

  SwitchPhase phase() const { return phase_; }
  bool allows_rollout() const {
    return phase_ == SwitchPhase::Separate || phase_ == SwitchPhase::Rollout;
  }
  bool allows_training() const {
    return phase_ == SwitchPhase::Separate || phase_ == SwitchPhase::Train;
  }
  bool allows_publication() const {
    return phase_ == SwitchPhase::Separate || phase_ == SwitchPhase::Rollout ||
           phase_ == SwitchPhase::Reshard || phase_ == SwitchPhase::Bind;
  }
  /// Engines at the published version may get their KV cache.
  bool allows_kv() const {
    return phase_ == SwitchPhase::Separate || phase_ == SwitchPhase::Rollout ||
           phase_ == SwitchPhase::KvAlloc;
  }
  bool in_transition() const { return !allows_rollout() && !allows_training(); }

  void request_training();
  void request_rollout();

  /// Takes every transition that is due and issues its actions. `issue(actor, action)` asks an
  /// actor and marks it as switching. Returns an error when rollbacks are used up.
  template <class Issue>
  Status advance(const Fleet& fleet, PolicyVersion published, Issue&& issue) {
    while (step(fleet, published)) {
      for_each_action(fleet, issue);
    }
    if (rollbacks_ > kMaxRollbacks) {
      return Error{ErrorCode::OutOfMemory,
                   "the optimizer could not be brought back to the card: " + refusal_};
    }
    return {};
  }

  /// The answer to OnloadOptimizer was a refusal.
  void onload_refused(std::string why);

 private:
  /// Takes one transition if its condition holds.
  bool step(const Fleet& fleet, PolicyVersion published);
  /// The action that the phase just entered asks of its actors.
  std::optional<actors::SwitchAction> entry_action() const;
  template <class Issue>
  void for_each_action(const Fleet& fleet, Issue&& issue) {
    const auto action = entry_action();
    if (!action)
      return;
    const bool trainer = *action == actors::SwitchAction::OffloadOptimizer ||
                         *action == actors::SwitchAction::OnloadOptimizer;
    if (trainer) {
      issue(fleet.trainer(), *action);
      return;
    }
    for (const ActorId a : fleet.rollouts()) {
      if (fleet.state(a).ready())
        issue(a, *action);
    }
  }

  SwitchPhase phase_;
  bool refused_ = false;
  std::int32_t rollbacks_ = 0;
  std::string refusal_;
};

}  // namespace orchestrator

template <>
struct EnumNames<orchestrator::SwitchPhase> {
  using P = orchestrator::SwitchPhase;
  static constexpr std::array<std::pair<P, std::string_view>, 13> value{
      {{P::Separate, "separate"},
       {P::Train, "train"},
       {P::DrainTrain, "drain_train"},
       {P::OffloadOptimizer, "offload_optimizer"},
       {P::Reshard, "reshard"},
       {P::Bind, "bind"},
       {P::KvAlloc, "kv_alloc"},
       {P::Rollout, "rollout"},
       {P::CutRoute, "cut_route"},
       {P::Interrupt, "interrupt"},
       {P::FreeKv, "free_kv"},
       {P::OffloadWeights, "offload_weights"},
       {P::Onload, "onload"}}};
};

}  // namespace temper
