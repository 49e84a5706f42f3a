// The checkpoint of the version that was evaluated best, kept as best/ in the run's folder beside
// those of checkpoints/, which are replaced (record/best_audit.hpp has its files). Its files are
// copies: a block that fails takes a checkpoint or the best one, not both.
//
// A checkpoint is saved when its evaluation begins, and may be replaced before that ends; so it is
// copied to best.candidate/ when it is saved. The candidate becomes best/ once its manifest has
// evaluation.json, in one step where the file system can exchange two names. At every other moment
// that the process may end at, restore_best() finds the whole one.
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

  /// A checkpoint is whole; `evaluates`: of the version that is being evaluated.
  Status saved(PolicyVersion version, const std::filesystem::path& checkpoint, bool evaluates);
  Status found(const command::Evaluated& result);
  /// The run goes back to this record: what was saved or found behind it is void.
  void went_back(std::uint64_t sequence);

 private:
  std::filesystem::path run_dir_;
  std::optional<command::Evaluated> awaited_;  ///< The best, whose checkpoint is not there yet.
};

/// Requires: the run folder is locked; `log` has followed the whole log. Makes best/ of what is
/// left where it is damaged, void, missing, or where a promotion was cut off that no resume
/// repeats: of the version that was called the best last, be it best.candidate, a checkpoint or
/// best.replaced. A best/ that is damaged or void is set aside once its replacement is complete.
/// The result: what was done, a line each.
Result<std::vector<std::string>> restore_best(const std::filesystem::path& run_dir,
                                              const BestInLog& log);

}  // namespace temper::orchestrator
