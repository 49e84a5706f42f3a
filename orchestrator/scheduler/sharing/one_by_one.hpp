// Engines give up their cards one after the other (placement.switching: one_by_one). Scoring and
// training get the cards of a share of the engines (card_shares.hpp), while the others generate on.
//
// Rule.  More cards to the trainer: there is a batch, or a part of one that is worth preparing, and
//        the engines that stay can do the rest of the generation.
//        All cards to rollout: the engines that stayed are crowded, or nobody generates, and
//        nothing is left to score or to train.
//        To scoring: responses that lack nothing but scores make a batch, or a part worth
//        preparing.
#pragma once

#include "orchestrator/scheduler/sharing/card_shares.hpp"
#include "orchestrator/scheduler/sharing/sharing_mode.hpp"

namespace temper::orchestrator {

class OneByOne final : public SharingMode {
 public:
  explicit OneByOne(const RunState& run);

  void choose_turn(const RunState& run, RoleSwitch& roles) override;
  bool trainer_keeps_its_cards() const override { return true; }
  bool engine_by_engine() const override { return true; }

 private:
  void choose_in_training(const RunState& run, RoleSwitch& roles) const;
  std::int32_t share_due(const RunState& run) const;
  std::int32_t share_for_parts(const RunState& run) const;

  CardShares shares_;
};

}  // namespace temper::orchestrator
