#include "orchestrator/run/core/checkpoint_keeper.hpp"

#include <utility>

namespace temper::orchestrator {

Result<std::filesystem::path> CheckpointKeeper::begin(PolicyVersion version) const {
  if (place_ != Place::Folder)
    return std::filesystem::path();
  return folder_.begin(version);
}

Status CheckpointKeeper::complete(CheckpointState state,
                                  EventLog& log,
                                  std::optional<PolicyVersion> evaluating) {
  if (place_ == Place::None)
    return {};
  if (place_ == Place::Memory) {
    state_ = std::move(state);
    return {};
  }
  TEMPER_TRY_STATUS(complete_folder(state, log));
  if (best_) {
    TEMPER_TRY_STATUS(
        best_->saved(state.version, folder_.folder_of(state.version), evaluating == state.version));
  }
  history_[state.sequence] = log.position();
  while (std::cmp_greater(history_.size(), keep_))
    history_.erase(history_.begin());
  return {};
}

Status CheckpointKeeper::complete_folder(const CheckpointState& state, EventLog& log) {
  TEMPER_TRY_STATUS(log.check_named());
  TEMPER_TRY_STATUS(log.sync());
  return folder_.complete(state, log.position(), keep_);
}

Status CheckpointKeeper::note(const command::Evaluated& result) {
  return best_ ? best_->found(result) : Status();
}

Result<Checkpoint> CheckpointKeeper::roll_back(const Log& log) {
  if (place_ != Place::Folder)
    return Checkpoint{{}, state_};
  TEMPER_TRY(RollbackPoint point, find_rollback_point(folder_, history_));
  TEMPER_TRY(const auto skipped, set_aside_skipped(folder_, point));
  for (const std::string& line : skipped)
    log.warning("skipped a checkpoint", {{"what", line}});
  Checkpoint checkpoint = point.checkpoint ? *std::move(point.checkpoint) : Checkpoint();
  history_.erase(history_.upper_bound(checkpoint.state.sequence), history_.end());
  if (best_)
    best_->roll_back(checkpoint.state.sequence);
  return checkpoint;
}

}  // namespace temper::orchestrator
