// The checkpoint of the version that was evaluated best, kept as best/ in the run's folder beside
// those of checkpoints/, which are replaced. Its files are links to those of the checkpoint, where
// the file system can; evaluation.json says what was found.
//
// A checkpoint is saved when its evaluation begins, and may be replaced before that ends; so it is
// linked as best.candidate/ when it is saved.
#pragma once

#include "core/ids.hpp"
#include "core/result.hpp"
#include "orchestrator/scheduler/commands.hpp"

#include <filesystem>
#include <optional>

namespace temper::orchestrator {

inline constexpr std::string_view kBestFolder = "best";

class BestCheckpoint {
 public:
  explicit BestCheckpoint(std::filesystem::path run_dir) : run_dir_(std::move(run_dir)) {}

  /// A checkpoint is whole; `evaluates`: of the version that is being evaluated.
  Status saved(PolicyVersion version, const std::filesystem::path& checkpoint, bool evaluates);
  Status found(const command::Evaluated& result);

 private:
  Status link(PolicyVersion version, const std::filesystem::path& checkpoint);
  Status promote(const command::Evaluated& result);
  std::filesystem::path candidate() const { return run_dir_ / "best.candidate"; }

  std::filesystem::path run_dir_;
  std::optional<PolicyVersion> linked_;        ///< That the candidate is of.
  std::optional<command::Evaluated> awaited_;  ///< The best, whose checkpoint is not there yet.
};

}  // namespace temper::orchestrator
