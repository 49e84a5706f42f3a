// Verifies best/, the checkpoint of the best evaluated version:
//
//   best/manifest         manifest of the checkpoint, including evaluation.json; written last
//   best/evaluation.json  result of the evaluation
//   best.candidate/       the next best checkpoint while it is written; then it replaces best/
//                         atomically (by a rename, or by an exchange of the two names)
//   best.replaced/        the previous one during the replacement, if the file system cannot
//                         exchange two names
//
// `fsck`, `audit`, `export`, `eval` and `run --from` all use this code, so that they agree.
#pragma once

#include "orchestrator/record/checkpoint_mark.hpp"
#include "orchestrator/record/event_log.hpp"

#include <map>
#include <set>

namespace temper::orchestrator {

inline constexpr std::string_view kBestFolder = "best";
inline constexpr std::string_view kBestCandidate = "best.candidate";
inline constexpr std::string_view kBestReplaced = "best.replaced";
/// Present in each of these folders.
inline constexpr std::string_view kBestFile = "evaluation.json";

enum class BestState {
  None,     ///< No version has become the best one yet, or a repair moved best/ aside.
  Whole,    ///< Every file is intact, and events.log has the checkpoint.
  Damaged,  ///< A file is not as it was written.
  Missing,  ///< It must exist, but does not.
  Void,     ///< Intact, but of a history that is not in events.log.
};

struct BestVerdict {
  BestState state = BestState::None;
  std::optional<CheckpointMark> mark;  ///< None: no readable manifest.
  std::string what;                    ///< The problem and its place.
  bool is_wrong() const { return state != BestState::None && state != BestState::Whole; }
};

/// Collects from a log what best/ should be. The manifests are read before the log, so that the run
/// may continue meanwhile.
class BestInLog {
 public:
  explicit BestInLog(std::filesystem::path run_dir);
  /// Call for every record, in order.
  void feed(const Record& record, const LogPosition& behind);

  /// Verifies the current best/; reads every file of it.
  BestVerdict verify() const;
  /// Verifies a folder that holds a best checkpoint under another name: Whole, Damaged or Void.
  BestVerdict verify(const std::filesystem::path& folder) const;
  /// Whether best.candidate/ is complete: the process ended before renaming it.
  bool candidate_is_complete() const;
  /// Whether the log has the record at which this checkpoint was saved.
  bool tells_of(const CheckpointMark& mark) const;
  /// The recorded evaluation that made this version the best one; null if there is none.
  const command::Evaluated* evaluation_of(PolicyVersion version) const;
  /// The latest best version; empty if only the base was.
  const std::optional<PolicyVersion>& last() const { return last_; }

 private:
  BestVerdict missing(std::string what) const { return {BestState::Missing, {}, std::move(what)}; }
  bool evaluation_is_proved(const std::filesystem::path& folder,
                            const Manifest& manifest,
                            PolicyVersion version) const;

  std::filesystem::path run_dir_;
  /// Records at which checkpoints were saved, from their manifests.
  std::set<std::uint64_t> checkpoint_records_;
  std::map<std::uint64_t, LogPosition> positions_;                ///< Their positions in the log.
  std::multimap<PolicyVersion, command::Evaluated> evaluations_;  ///< Those marked as best.
  std::optional<PolicyVersion> last_;
  bool keeps_ = false;                 ///< The run keeps its best version, and is not simulated.
  std::set<PolicyVersion> saved_;      ///< The newest checkpoint since the last start or resume.
  std::optional<PolicyVersion> due_;   ///< Best since then; best/ may not hold it yet.
  std::optional<PolicyVersion> made_;  ///< Version of a best/ that was completed; it must exist.
};

/// Reads the log of a run folder and verifies its best/. Error: the log cannot be read.
Result<BestVerdict> verify_best(const std::filesystem::path& run_dir);
/// The problem of best/ as an error, with the next step. Requires: the state is not Whole.
Error best_error(const std::filesystem::path& run_dir, const BestVerdict& verdict);

}  // namespace temper::orchestrator
