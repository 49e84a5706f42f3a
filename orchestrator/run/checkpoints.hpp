// The checkpoints of a run.
//
//   checkpoints/step-000040/          trainer's files; orchestrator.msgpack: scheduler and payloads
//   checkpoints/step-000040/manifest  size and hash of each, and where in events.log it belongs
//   checkpoints/step-000040.partial   being written, or being removed: does not count
//   checkpoints/step-000040.void-1    set aside: of a history that events.log does not tell
//   checkpoints/step-000040.damaged-1 set aside: some file is not what was written
//
// A checkpoint is built under a name that ends in `.partial`; its manifest is written last; then it
// is renamed. At every instant each checkpoint that was complete is there under one name, so that a
// process may die and power may fail anywhere. What is set aside is never removed.
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

template <class V>
void describe(V& v, CheckpointState& c) {
  v.field(1, "sequence", c.sequence);
  v.field(2, "version", c.version);
  v.field(3, "scheduler", c.scheduler);
  v.field(4, "payloads", c.payloads);
}

struct Checkpoint {
  std::filesystem::path folder;
  CheckpointState state;
};

/// A folder that is a checkpoint by its name.
struct FoundCheckpoint {
  std::filesystem::path folder;
  std::optional<CheckpointMark> mark;
  std::string damage;  ///< Why there is no mark.
};

/// Where each record of a checkpoint is in a log, by its sequence: the history that counts.
using History = std::map<std::uint64_t, LogPosition>;

class Checkpoints {
 public:
  explicit Checkpoints(std::filesystem::path folder) : folder_(std::move(folder)) {}

  const std::filesystem::path& folder() const { return folder_; }

  /// An empty folder for the trainer to save into. Error: it cannot be made; `checkpoints/` itself
  /// is not made anew, as a run whose folder was removed is to end.
  Result<std::filesystem::path> begin(PolicyVersion version) const;
  /// Adds the orchestrator's part and the manifest, makes the checkpoint whole, and removes all but
  /// the newest `keep` of this history, the ones with the highest sequence.
  Status complete(const CheckpointState& state, const LogPosition& log, std::int32_t keep) const;

  /// Where the checkpoint of a version is, if it is whole.
  std::filesystem::path folder_of(PolicyVersion version) const { return named(version); }
  /// What is there by its manifests, the newest first; those without a readable one at the end.
  /// No other file is read.
  std::vector<FoundCheckpoint> find() const;
  /// Reads and checks every file of it. Error: one is damaged, or not of this mark.
  static Result<Checkpoint> load(const FoundCheckpoint& found);

  enum class Why { Void, Damaged };
  /// Renames it, so that it counts no more; the new name.
  Result<std::filesystem::path> set_aside(const std::filesystem::path& checkpoint, Why why) const;

 private:
  std::filesystem::path named(PolicyVersion version) const;
  Status put_in_place(const std::filesystem::path& partial,
                      const std::filesystem::path& whole) const;
  Status remove(const std::filesystem::path& checkpoint) const;

  std::filesystem::path folder_;
};

}  // namespace temper::orchestrator
