#include "orchestrator/scheduler/training/checkpoints.hpp"

#include <utility>

namespace temper::orchestrator {

void checkpoint_or_end(RunState& run) {
  if (run.finished || run.trainer.training || run.trainer.preparing || run.trainer.saving ||
      !run.fleet.state(run.fleet.trainer()).ready())
    return;
  if (run.fleet.state(run.fleet.trainer()).switching)
    return;
  const PolicyVersion version = run.saved.progress.version;
  const bool done = version.value() >= run.config.steps;
  const bool due =
      version.value() > 0 &&
      ((run.config.checkpoint_every > 0 && version.value() % run.config.checkpoint_every == 0) ||
       (run.config.evaluation.checkpoint && run.evaluation_is_due_at(version)));
  if ((done || due || run.stop_requested) && run.trainer.saved != version) {
    run.trainer.saving = run.now + run.config.deadlines.checkpoint;
    run.emit(command::SaveCheckpoint{run.fleet.trainer(), version});
  } else if (done && run.evaluation_is_due_at(version) && run.saved.evaluated != version) {
    if (run.stop_requested)  // its last evaluation is part of the run
      run.finish(Ending::Stopped, Reason{.kind = ReasonKind::StoppedBeforeEvaluation});
  } else if (done) {
    run.finish(Ending::Complete);
  } else if (run.stop_requested) {
    run.finish(Ending::Stopped, Reason{.kind = ReasonKind::StopRequested});
  }
}

bool on_saved(RunState& run, const event::CheckpointSaved& e) {
  run.trainer.saving.reset();
  if (!e.error.empty()) {
    Reason reason = reason_with(ReasonKind::CheckpointFailed, e.error);
    reason.version = e.version;
    run.finish(Ending::Failed, std::move(reason));
    return false;
  }
  run.trainer.saved = e.version;
  return true;
}

void on_stop_requested(RunState& run) {
  if (run.stop_requested)
    return;
  run.stop_requested = true;
  run.drain_deadline = run.now + run.config.deadlines.drain;
}

}  // namespace temper::orchestrator
