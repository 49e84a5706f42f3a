// The checkpoint of the best evaluated version, kept as best/ in the run folder (its files:
// record/best_audit.hpp). Those in checkpoints/ are replaced by newer ones. The files of best/ are
// copies, so that a bad disk block damages either the checkpoint or the copy, never both.
//
// A checkpoint is saved when its evaluation begins, and may be replaced before the evaluation ends.
// It is therefore copied to best.candidate/ when it is saved. The candidate becomes best/ once its
// manifest has evaluation.json, in one step where the file system can exchange two names. If the
// process ends at any other moment, restore_best() finds the complete one.
#pragma once

#include "core/ids.hpp"
#include "core/result.hpp"
#include "orchestrator/record/best_audit.hpp"
#include "orchestrator/scheduler/state/commands.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

class BestCheckpoint {
 public:
  explicit BestCheckpoint(std::filesystem::path run_dir) : run_dir_(std::move(run_dir)) {}

  /// A checkpoint is complete. `evaluates`: its version is under evaluation. Errors: Io; NotFound
  /// or Corrupt if a file of the checkpoint is missing or damaged.
  Status saved(PolicyVersion version, const std::filesystem::path& checkpoint, bool evaluates);
  /// An evaluation has ended. Promotes the checkpoint of the best result, or waits until it is
  /// saved. Errors: as saved().
  Status found(const command::Evaluated& result);
  /// The run rolls back to this record: later checkpoints and results are void.
  void roll_back(std::uint64_t sequence);

 private:
  std::filesystem::path run_dir_;
  std::optional<command::Evaluated>
      awaited_;  ///< The best result whose checkpoint is not saved yet.
};

/// Requires: the run folder is locked; `log` has read the whole log. Rebuilds a best/ that is
/// damaged, void or missing, or whose promotion was interrupted and is not repeated by a resume:
/// from the version that was called the best last, be it best.candidate, a checkpoint or
/// best.replaced. A damaged or void best/ is set aside once its replacement is complete. Returns
/// the actions taken, a line each.
Result<std::vector<std::string>> restore_best(const std::filesystem::path& run_dir,
                                              const BestInLog& log);

}  // namespace temper::orchestrator
