// The trainer lends its cards to the rollout while it waits (placement.mode: hybrid). Some engines
// have cards of their own; the others are on the trainer's.
//
// Rule.  To rollout: with nothing to train, if a loan pays (loan_estimate.hpp), or always
//        (placement.lending: always) while the next step lacks responses; not if the lent engines
//        would get none of them.
//        To training: a batch is complete, or nothing generates on lent cards.
//        When a loan begins, engines with cards of their own hand over what makes all equally
//        loaded, their youngest responses first, which lose the least.
#pragma once

#include "orchestrator/scheduler/sharing/loan_estimate.hpp"
#include "orchestrator/scheduler/sharing/together.hpp"

namespace temper::orchestrator {

class Lending final : public Together {
 public:
  explicit Lending(const RunState& run);

  void phase_begins(RunState& run, SwitchPhase phase) override;
  void generated(std::int64_t responses, Time now) override { loans_.generated(responses, now); }
  bool trainer_keeps_its_cards() const override { return true; }

 private:
  bool rollout_is_due(const RunState& run) const override;
  bool training_is_due(const RunState& run) const override;
  void rollout_requested(Time now) override { loans_.leaves(now); }
  void training_requested(Time now) override { loans_.recalled(now); }

  LoanEstimate loans_;
};

}  // namespace temper::orchestrator
