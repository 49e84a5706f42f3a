// The checkpoints of a running job: in a folder, in memory (simulated runs without a run folder),
// or not at all.
#pragma once

#include "core/log.hpp"
#include "orchestrator/record/event_log.hpp"
#include "orchestrator/run/best_checkpoint.hpp"
#include "orchestrator/run/rollback_point.hpp"

#include <optional>

namespace temper::orchestrator {

class CheckpointKeeper {
 public:
  /// Keeps no checkpoint: the run has no state to return to but its start.
  static CheckpointKeeper none() { return {Place::None, Checkpoints({}), 0}; }
  /// Keeps the newest checkpoint in memory.
  static CheckpointKeeper in_memory() { return {Place::Memory, Checkpoints({}), 0}; }
  /// Keeps the newest `keep` checkpoints in a folder.
  static CheckpointKeeper in_folder(Checkpoints folder, std::int32_t keep) {
    return {Place::Folder, std::move(folder), keep};
  }
  /// Keeps the best evaluated checkpoint in `run_dir` too. Requires: in_folder().
  void keep_best(std::filesystem::path run_dir) { best_.emplace(std::move(run_dir)); }

  bool keeps_any() const { return place_ != Place::None; }
  /// Whether a later process can resume from these checkpoints.
  bool keeps_folder() const { return place_ == Place::Folder; }
  const Checkpoints& folder() const { return folder_; }

  /// The folder that the trainer saves into; empty unless checkpoints are kept in a folder. Error:
  /// Io if it cannot be created.
  Result<std::filesystem::path> begin(PolicyVersion version) const;
  /// Makes a checkpoint one to roll back to. Its record, the newest of `log`, is on the disk first.
  /// `evaluating`: the version under evaluation, if any. Errors: NotFound if the log was removed;
  /// InvalidInput if the trainer saved a file with a reserved name; those of sum_folder() and
  /// BestCheckpoint::saved().
  Status complete(CheckpointState state, EventLog& log, std::optional<PolicyVersion> evaluating);
  /// Records an evaluation result, which may promote a checkpoint to the best one. Errors: see
  /// BestCheckpoint::found().
  Status note(const command::Evaluated& result);

  /// On resume: the checkpoints that the log tells of.
  void set_history(History history) { history_ = std::move(history); }
  /// The newest usable checkpoint of this run, or its start; newer ones are void from here on.
  /// Damaged checkpoints are set aside, and `log` says so. Errors: there are checkpoints, but none
  /// is usable; Io if one cannot be set aside.
  Result<Checkpoint> roll_back(const Log& log);

 private:
  enum class Place { None, Memory, Folder };
  CheckpointKeeper(Place place, Checkpoints folder, std::int32_t keep)
      : place_(place), folder_(std::move(folder)), keep_(keep) {}
  Status complete_folder(const CheckpointState& state, EventLog& log);

  Place place_;
  Checkpoints folder_;
  std::int32_t keep_;
  std::optional<BestCheckpoint> best_;
  History history_;        ///< Of the checkpoints in the folder.
  CheckpointState state_;  ///< The newest, in memory.
};

}  // namespace temper::orchestrator
