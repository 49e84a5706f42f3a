// Engines give up their cards one after the other (placement.switching: one_by_one). Scoring and
// training get the cards of a share of the engines (card_shares.hpp), while the others generate on.
//
// Rule.  Scoring and training take a part of a batch at a time (kParts). After each part:
//        More cards to the trainer: a batch is complete, or a part is worth preparing, and the
//        engines that stay can do the rest of the generation (share_for_parts).
//        All cards to rollout: the engines that stayed are crowded, or nobody generates, and
//        nothing is left to score or to train.
//        To scoring: no part can be trained, and responses that lack nothing but scores make a
//        batch, or a part worth preparing.
// Share. With little work, the smallest that the engines that stay can spare: parts come as
//        responses end, and more cards would wait for them. With work for a while (kMuch of a
//        batch), the largest that they can spare; if they can spare none, the smallest share
//        begins all the same once their slots suffice.
// Source. Our own; docs/reports/rl-fusion.md compares it with whole turns.
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
  std::optional<std::int64_t> part_size(const RunState& run, std::int32_t share) const override;

 private:
  void choose_in_training(const RunState& run, RoleSwitch& roles) const;
  void choose_in_scoring(const RunState& run, RoleSwitch& roles) const;
  bool are_crowded_without(const RunState& run, std::int32_t share) const;
  std::int32_t share_due(const RunState& run) const;
  std::int32_t share_for_parts(const RunState& run) const;

  CardShares shares_;
};

}  // namespace temper::orchestrator
