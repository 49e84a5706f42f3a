// A small run in a folder, as the live driver leaves it: the records of a random world in its log,
// its checkpoints, and all that is made from the log.
#pragma once

#include "orchestrator/record/event_log.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "orchestrator/scheduler/state/events.hpp"
#include "tests/support/temporary_folder.hpp"

#include <filesystem>
#include <functional>
#include <string>
#include <vector>

namespace temper::orchestrator::testing {

struct StoredRunOptions {
  std::uint64_t steps = 3;
  std::uint64_t checkpoint_every = 1;
  std::int32_t keep = 2;
  /// The process was killed so many records after the last checkpoint; none: the run ended.
  std::optional<std::uint64_t> killed_after = {};
  std::int64_t log_file_bytes = kLogFileBytes;  ///< As of LogWriting.
  /// Every version is evaluated, and the best is kept as best/.
  bool keeps_best = false;
  /// The process was killed when the log had the record of so many versions that were called the
  /// best, and before the last of them became best/.
  std::optional<int> killed_at_best = {};
  /// Adds to what the trainer saves of a version.
  std::function<void(const std::filesystem::path& checkpoint, PolicyVersion)> save = {};
  std::uint64_t seed = 1;
  ProblemPlan problems = {};
};

class StoredRun {
 public:
  explicit StoredRun(const StoredRunOptions& options = {});

  RunDir dir() const { return RunDir(folder_.path()); }
  const std::filesystem::path& root() const { return folder_.path(); }
  std::filesystem::path log() const { return root() / "events.log"; }
  /// The n-th file of the log, from 1 on.
  std::filesystem::path log_file(std::size_t n) const { return orchestrator::log_file(log(), n); }
  std::size_t log_files() const { return count_log_files(log()).value(); }
  const SchedulerConfig& config() const { return config_; }
  /// The whole checkpoints, the newest first.
  std::vector<FoundCheckpoint> checkpoints() const { return dir().checkpoints().find(); }
  /// The n-th newest, 0 the newest.
  std::filesystem::path checkpoint(std::size_t n) const { return checkpoints().at(n).folder; }
  /// What was called the best, but for the base.
  const std::vector<command::Evaluated>& bests() const { return bests_; }
  /// Where records end in the log, from its header on.
  const std::vector<LogPosition>& positions() const { return positions_; }

 private:
  void play(const StoredRunOptions& options);

  test::TemporaryFolder folder_;
  SchedulerConfig config_;
  std::vector<LogPosition> positions_;
  std::vector<command::Evaluated> bests_;
};

/// Changes one bit of a file, or cuts it, and brings it back.
class Damaged {
 public:
  static Damaged flipped(const std::filesystem::path& file, std::size_t byte);
  static Damaged truncated(const std::filesystem::path& file, std::size_t length);
  Damaged(const Damaged&) = delete;
  Damaged& operator=(const Damaged&) = delete;
  ~Damaged();

 private:
  Damaged(std::filesystem::path file, std::string before, const std::string& now);
  const std::filesystem::path file_;
  const std::string before_;
};

}  // namespace temper::orchestrator::testing
