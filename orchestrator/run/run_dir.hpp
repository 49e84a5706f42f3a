// The folder of a run (docs/reference/run-folder.md).
//
//   config.yaml base/                           inputs; verified by inputs.manifest
//   events.log                                  the record of the run; verifies itself
//                                               (log_frames.hpp)
//   checkpoints/                                states to roll back to (checkpoints.hpp)
//   metrics.jsonl certificates.jsonl trace.json summary.json
//                                               derived from the log; verified by outputs.manifest
//                                               once the run has ended (simulated: trace.json.gz)
//   weights/                                    recent versions for workers that attach
//                                               (transport.weights: folder)
//   logs/<actor>.log                            text for people; bounded, see bound_logs()
#pragma once

#include "core/file_descriptor.hpp"
#include "orchestrator/run/checkpoints.hpp"

#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <utility>

namespace temper::orchestrator {

inline constexpr std::string_view kInputsManifest = "inputs.manifest";
/// The replacement of config.yaml: it counts once inputs.manifest has its hash.
inline constexpr std::string_view kNextConfig = "config.yaml.next";
inline constexpr std::int64_t kLogBytes = std::int64_t{32} << 20;
inline constexpr std::int64_t kLogKept = std::int64_t{4} << 20;

/// Reserves a run folder for one orchestrator, until it is destroyed or the process ends.
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
  /// The model folder of the start; `policy: synthetic` has none.
  std::filesystem::path base() const { return root_ / "base"; }
  std::filesystem::path weights() const { return root_ / "weights"; }
  std::filesystem::path log_of(std::string_view actor) const;
  /// Cuts each log of a worker that has grown beyond kLogBytes: its last kLogKept bytes move to
  /// NAME.log.1, replacing the one before, and the log starts empty. Output that arrives meanwhile
  /// may be lost. Requires: the writers append (O_APPEND). A log that cannot be cut stays as it is.
  void bound_logs() const;

  /// Creates the folders. Error: the folder holds a run already, or other files. A start that
  /// failed before it had a log may be repeated.
  Status create() const;
  /// Requires: the folder exists. Error: another process holds the lock.
  Result<RunLock> lock() const;
  /// Whether another process holds the lock. Requires: this process does not, because it would
  /// release it here.
  bool in_progress() const;

  Checkpoints checkpoints() const { return Checkpoints(root_ / "checkpoints"); }

  /// The inputs (config.yaml, base/) are hashed into inputs.manifest when the run starts, and
  /// verified when it is resumed. `outside`: digests of other inputs, which the manifest lists as
  /// facts (outside_inputs.hpp). Errors name the file.
  Status seal_inputs(std::map<std::string, std::uint64_t> outside = {}) const;
  Status check_inputs() const;
  /// Requires: check_inputs(), and the lock. Replaces and seals config.yaml; the previous one is
  /// kept as config.yaml.before-N. settle_inputs() completes or undoes an interrupted replacement.
  Status replace_config(std::string_view yaml) const;
  /// The number of configurations kept as config.yaml.before-N.
  std::size_t replaced_configs() const;
  /// The configuration before the last `changes` were made. Requires: 0 < changes <= replaced.
  std::filesystem::path replaced_config(std::size_t changes) const;
  /// Requires: as replace_config() and replaced_config(). Makes it config.yaml again; it and its
  /// successors are no longer kept.
  Status restore_config(std::size_t changes) const;
  /// Requires: the lock. Completes an interrupted replace_config(), or undoes it.
  Status settle_inputs() const;

 private:
  Status put_config(std::string_view yaml) const;

  std::filesystem::path root_;
};

}  // namespace temper::orchestrator
