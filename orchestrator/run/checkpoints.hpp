// The checkpoints of a run.
//
//   checkpoints/step-000040/          trainer's files; orchestrator.msgpack: scheduler and payloads
//   checkpoints/step-000040/manifest  size and hash of each file, and its place in events.log
//   checkpoints/step-000040.partial   being written or removed: does not count
//   checkpoints/step-000040.void-1    set aside: belongs to a history that events.log does not have
//   checkpoints/step-000040.damaged-1 set aside: a file differs from what was written
//
// A checkpoint is built under a name that ends in `.partial`; its manifest is written last; then it
// is renamed. At every instant each complete checkpoint exists under one name, so the process may
// die and power may fail at any time. A checkpoint that is set aside is never removed.
#pragma once

#include "orchestrator/record/checkpoint_mark.hpp"
#include "orchestrator/run/payload_store.hpp"

#include <filesystem>
#include <map>
#include <optional>
#include <vector>

namespace temper::orchestrator {

struct CheckpointState {
  std::uint64_t sequence = 0;  ///< Of the CheckpointSaved record in events.log.
  PolicyVersion version;
  std::string scheduler;  ///< Scheduler::snapshot().
  std::map<GroupId, GroupPayload> payloads;
};

void describe(auto& v, CheckpointState& c) {
  v.field(1, "sequence", c.sequence);
  v.field(2, "version", c.version);
  v.field(3, "scheduler", c.scheduler);
  v.field(4, "payloads", c.payloads);
}

struct Checkpoint {
  std::filesystem::path folder;
  CheckpointState state;
};

/// A folder with the name of a checkpoint.
struct FoundCheckpoint {
  std::filesystem::path folder;
  std::optional<CheckpointMark> mark;
  std::string damage;  ///< The reason if there is no mark.
};

/// The places of checkpoint records in a log, by sequence: the valid history of a run.
using History = std::map<std::uint64_t, LogPosition>;

class Checkpoints {
 public:
  explicit Checkpoints(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }

  /// Creates an empty folder for the trainer to save into. It does not create `checkpoints/` again:
  /// a run whose folder was removed is to end.
  Result<std::filesystem::path> begin(PolicyVersion version) const;
  /// Adds the orchestrator's part and the manifest, completes the checkpoint, and removes all but
  /// the newest `keep` of this history: those with the highest sequence.
  Status complete(const CheckpointState& state, const LogPosition& log, std::int32_t keep) const;

  /// The folder of a version's checkpoint, if it is complete.
  std::filesystem::path folder_of(PolicyVersion version) const { return named(version); }
  /// All checkpoints, the newest first; those without a readable manifest last. Reads manifests
  /// only.
  std::vector<FoundCheckpoint> find() const;
  /// Reads and verifies every file. Error: a file is damaged or does not match the mark.
  static Result<Checkpoint> load(const FoundCheckpoint& found);

  /// Void: another history than that of events.log has it.
  enum class Defect { Void, Damaged };
  /// Renames it, so that it no longer counts. Returns the new name.
  Result<std::filesystem::path> set_aside(const std::filesystem::path& checkpoint,
                                          Defect defect) const;

 private:
  std::filesystem::path named(PolicyVersion version) const;
  Status put_in_place(const std::filesystem::path& partial,
                      const std::filesystem::path& whole) const;
  Status remove(const std::filesystem::path& checkpoint) const;

  std::filesystem::path folder_;
};

}  // namespace temper::orchestrator
