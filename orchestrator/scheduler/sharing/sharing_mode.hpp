// When actors on shared cards take turns. A mode decides whose turn comes next; RoleSwitch carries
// the turn out. One mode per way to place the roles (placement.mode, placement.switching):
//
//   Separate   no cards are shared                                  nothing to decide
//   Together   all shared cards change role together                together.hpp
//   Lending    the trainer lends its cards to the rollout           lending.hpp
//   OneByOne   engines give up their cards one after the other      one_by_one.hpp
#pragma once

#include "orchestrator/scheduler/sharing/role_switch.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

#include <cstdint>
#include <memory>
#include <optional>

namespace temper::orchestrator {

class SharingMode {
 public:
  virtual ~SharingMode() = default;

  /// Requests the turn that is due, if one is.
  virtual void choose_turn(const RunState& run, RoleSwitch& roles) = 0;
  /// The cards have just come to this phase. May withdraw responses.
  virtual void phase_begins(RunState&, SwitchPhase) {}
  /// So many more responses have been generated.
  virtual void generated(std::int64_t, Time) {}

  /// The trainer keeps its cards between steps, so it may compute gradients ahead (prepare).
  virtual bool trainer_keeps_its_cards() const = 0;
  /// Engines change role one after the other: a trainer that has just got its cards may get more
  /// before it begins, and actors are told which engines have left.
  virtual bool engine_by_engine() const { return false; }
  /// The most groups that are scored or trained at once on the cards of `share` engines, so that
  /// the cards can change hands soon; nullopt: as many as there are.
  virtual std::optional<std::int64_t> part_size(const RunState&, std::int32_t) const {
    return std::nullopt;
  }
};

/// The mode that the actors and the configuration of the run ask for.
std::unique_ptr<SharingMode> make_sharing_mode(const RunState& run);

/// A time-shared reference scores, or is on its way to the cards or from them.
bool references_are_busy(const RunState& run);
/// Ends a turn of scoring once nothing is left to score and no reference is busy.
void end_scoring_if_done(const RunState& run, RoleSwitch& roles);

}  // namespace temper::orchestrator
