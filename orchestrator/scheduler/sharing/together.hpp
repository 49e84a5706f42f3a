// All shared cards change role together. Every engine is on shared cards, so rollout and training
// alternate.
//
// Rule.  To rollout: nothing to train, and no scores that would complete a batch.
//        To scoring: responses wait for their scores, and with them a batch is complete.
//        To training: a batch is complete (or will be once scored), nothing new may be dispatched,
//        and at most `return_share` of the engines' slots still generates.
#pragma once

#include "orchestrator/scheduler/sharing/sharing_mode.hpp"

namespace temper::orchestrator {

class Together : public SharingMode {
 public:
  void choose_turn(const RunState& run, RoleSwitch& roles) final;
  bool trainer_keeps_its_cards() const override { return false; }

 protected:
  /// With nothing to train, shared cards generate.
  virtual bool rollout_is_due(const RunState&) const { return true; }
  virtual bool training_is_due(const RunState& run) const;
  virtual void rollout_requested(Time) {}
  virtual void training_requested(Time) {}
};

}  // namespace temper::orchestrator
