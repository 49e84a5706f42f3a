// The folder of a run (docs/reference/run-folder.md).
//
//   config.yaml base/                           what it is made from; proved by inputs.manifest
//   events.log                                  what happened; proves itself (log_frames.hpp)
//   checkpoints/                                what it goes back to (checkpoints.hpp)
//   metrics.jsonl certificates.jsonl trace.json summary.json
//                                               made from the log; proved by outputs.manifest once
//                                               the run has ended (simulated: trace.json.gz)
//   weights/                                    versions for workers that attach, while they are
//   new
//                                               (transport.weights: folder)
//   logs/<actor>.log                            text for people; bounded, see bound_logs()
#pragma once

#include "core/file_descriptor.hpp"
#include "orchestrator/run/checkpoints.hpp"

#include <filesystem>
#include <utility>

namespace temper::orchestrator {

inline constexpr std::string_view kInputsManifest = "inputs.manifest";
/// What config.yaml is being replaced by: once inputs.manifest proves it, it counts.
inline constexpr std::string_view kNextConfig = "config.yaml.next";
inline constexpr std::int64_t kLogBytes = std::int64_t{32} << 20;
inline constexpr std::int64_t kLogKept = std::int64_t{4} << 20;

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
  /// The model folder that the run begins with; none of `policy: synthetic`.
  std::filesystem::path base() const { return root_ / "base"; }
  std::filesystem::path weights() const { return root_ / "weights"; }
  std::filesystem::path log_of(std::string_view actor) const;
  /// Cuts each log of a worker that has grown beyond kLogBytes: its last kLogKept bytes move to
  /// NAME.log.1, replacing the one before, and the log begins anew. Output that arrives meanwhile
  /// may be lost. Requires: the writers append (O_APPEND). What cannot be cut stays as it is.
  void bound_logs() const;

  /// Creates the folders. Error: the folder holds a run already, or what is no run's. A start that
  /// failed before its log may be repeated.
  Status create() const;
  /// Requires: the folder exists. Error: another process has it.
  Result<RunLock> lock() const;

  Checkpoints checkpoints() const { return Checkpoints(root_ / "checkpoints"); }

  /// What the run is made from (config.yaml, base/) is summed into inputs.manifest when
  /// the run begins, and checked when it goes on. Errors name the file.
  Status seal_inputs() const;
  Status check_inputs() const;
  /// Requires: check_inputs(), and the lock. Another config.yaml, sealed; the one before is kept as
  /// config.yaml.before-N. Once begun it is whole, whenever the process ends: see settle_inputs().
  Status replace_config(std::string_view yaml) const;
  /// How many configurations are kept as config.yaml.before-N.
  std::size_t replaced_configs() const;
  /// The configuration before the last `changes` were made. Requires: 0 < changes <= replaced.
  std::filesystem::path replaced_config(std::size_t changes) const;
  /// Requires: as replace_config() and replaced_config(). That is config.yaml again; it and those
  /// that followed it are kept no more.
  Status restore_config(std::size_t changes) const;
  /// Requires: the lock. Ends a replace_config() that was cut off, or undoes it.
  Status settle_inputs() const;

 private:
  Status put_config(std::string_view yaml) const;

  std::filesystem::path root_;
};

}  // namespace temper::orchestrator
