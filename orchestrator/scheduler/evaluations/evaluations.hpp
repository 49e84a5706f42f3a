// When which version is evaluated, and the work of an evaluation (docs/explanation/measures.md,
// section 7). It uses the engines and verifiers of training, and no step counts it.
#pragma once

#include "orchestrator/scheduler/sharing/card_sharing.hpp"
#include "orchestrator/scheduler/state/events.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"

namespace temper::orchestrator {

class Evaluations {
 public:
  // --- Events
  void take(RunState& run, ActorId engine, const event::Generated::Item& item) const;
  void take(RunState& run, const event::Judged& e) const;

  // --- Moves
  /// Ends an evaluation that is complete, and begins one that is due.
  void advance(RunState& run) const;
  void dispatch(RunState& run, const CardSharing& sharing) const;
  /// One batch at each verifier at a time.
  void judge(RunState& run, const CardSharing& sharing);

 private:
  std::vector<LeaseId> judging_;  ///< Leases at verifiers.
};

/// No engine has the evaluated version any more: the published one is evaluated instead.
void restart_evaluation(RunState& run);

/// The version that an engine should have. An engine that evaluates, or is about to, keeps the
/// evaluated version until it is no longer needed.
PolicyVersion wanted_version(const RunState& run, ActorId engine);

}  // namespace temper::orchestrator
