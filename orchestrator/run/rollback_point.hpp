// The checkpoint to which a run rolls back: the newest that is complete and belongs to this
// history. Nothing changes until it has been read completely:
//   1. find_rollback_point()  reads only. It is an error if there are checkpoints but none is
//                             usable, so that a run never silently starts over.
//   2. set_aside_skipped()    renames the skipped checkpoints, so that they no longer count.
#pragma once

#include "orchestrator/record/event_log.hpp"
#include "orchestrator/run/checkpoints.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <set>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// A checkpoint to which the run cannot roll back.
struct SkippedCheckpoint {
  std::filesystem::path folder;
  Checkpoints::Defect defect = Checkpoints::Defect::Void;
  std::string reason;
};

struct RollbackPoint {
  std::optional<Checkpoint> checkpoint;    ///< None: the run returns to its start.
  std::vector<SkippedCheckpoint> skipped;  ///< Newer than the checkpoint, or damaged.
};

/// Finds the records of saved checkpoints in a log.
class HistoryReader {
 public:
  explicit HistoryReader(const Checkpoints& checkpoints);
  /// To be called for every record, in order.
  void feed(const Record& record, const LogPosition& behind);
  const History& history() const { return history_; }
  /// The version after the last step in the log.
  PolicyVersion version() const { return version_; }
  /// The last configuration of the run; nullopt: the log has no start.
  const std::optional<SchedulerConfig>& config() const { return config_; }
  /// The event of a resume from the record `sequence` under `config`, with changed settings.
  event::Resumed resumed(std::uint64_t sequence,
                         const SchedulerConfig& config,
                         std::vector<SettingChange> changes) const;

 private:
  std::set<std::uint64_t> sought_;
  History history_;
  PolicyVersion version_;
  std::optional<SchedulerConfig> config_;
};

Result<RollbackPoint> find_rollback_point(const Checkpoints& checkpoints, const History& history);

/// Sets the skipped checkpoints aside. Returns a line for each, for people.
Result<std::vector<std::string>> set_aside_skipped(const Checkpoints& checkpoints,
                                                   const RollbackPoint& point);

}  // namespace temper::orchestrator
