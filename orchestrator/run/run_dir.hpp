// The folder of a run and its checkpoints.
//
//   config.yaml events.log metrics.jsonl certificates.jsonl trace.json summary.json
//   base.safetensors logs/<actor>.log   (of a run on simulated hardware trace.json.gz)
//   checkpoints/step-000040/   trainer state, and orchestrator.msgpack: scheduler and payloads
//
// A checkpoint is built under a name that ends in `.partial` and renamed when whole.
#pragma once

#include "core/file_descriptor.hpp"
#include "orchestrator/run/payload_store.hpp"

#include <filesystem>
#include <optional>
#include <utility>

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

/// Holds a run's folder for one orchestrator. Let go by the destructor, and by the kernel however
/// the process ends.
class RunLock {
 private:
  friend class RunDir;
  explicit RunLock(FileDescriptor fd) : fd_(std::move(fd)) {}
  FileDescriptor fd_;
};

class RunDir {
 public:
  explicit RunDir(std::filesystem::path root) : root_(std::move(root)) {}

  const std::filesystem::path& root() const { return root_; }
  std::filesystem::path file(std::string_view name) const { return root_ / name; }
  std::filesystem::path log_of(std::string_view actor) const;

  /// Creates the folders. Error: the folder holds a run already.
  Status create() const;
  /// Requires: the folder exists. Error: another process has it.
  Result<RunLock> lock() const;

  /// An empty folder for the trainer to save into.
  Result<std::filesystem::path> begin_checkpoint(PolicyVersion version) const;
  /// Adds the orchestrator's part, makes the checkpoint whole, removes all but the newest `keep`.
  Status complete_checkpoint(const CheckpointState& state, std::int32_t keep) const;
  /// The newest whole checkpoint at or before `last_sequence` of the log; nullopt: none. Error: it
  /// is corrupt.
  Result<std::optional<Checkpoint>> newest_checkpoint(std::uint64_t last_sequence) const;

 private:
  std::filesystem::path checkpoint_folder(PolicyVersion version) const;
  /// Whole checkpoints, oldest first.
  std::vector<std::filesystem::path> checkpoints() const;

  std::filesystem::path root_;
};

}  // namespace temper::orchestrator
