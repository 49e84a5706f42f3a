// Verifies best/, the checkpoint of the version that was evaluated best:
//
//   best/manifest         that of the checkpoint, and evaluation.json besides; written last
//   best/evaluation.json  what the evaluation found
//   best.candidate/       the next one, being made; it becomes best/ at once (by a rename, or by
//                         an exchange of the two names)
//   best.replaced/        the one before, while the next takes its name, where the file system
//                         cannot exchange two names
//   best.repaired/        complete; a repair gives it the name of a best/ that is damaged or void.
//                         For a moment after that it is the damaged one
//
// `fsck`, `audit`, `export`, `eval` and `run --from` all ask this file, so that they agree.
#pragma once

#include "orchestrator/record/checkpoint_mark.hpp"
#include "orchestrator/record/event_log.hpp"

#include <map>
#include <set>

namespace temper::orchestrator {

inline constexpr std::string_view kBestFolder = "best";
inline constexpr std::string_view kBestCandidate = "best.candidate";
inline constexpr std::string_view kBestReplaced = "best.replaced";
inline constexpr std::string_view kBestRepaired = "best.repaired";
/// In each of these folders.
inline constexpr std::string_view kBestFile = "evaluation.json";

enum class BestState {
  None,     ///< No version has become the best one yet, or best/ was set aside by a repair.
  Whole,    ///< Every file is as it was written, and events.log tells of the checkpoint.
  Damaged,  ///< Some file is not what was written.
  Missing,  ///< It must be there.
  Void,     ///< Whole, but of a history that events.log does not tell.
};

/// Why there is no best/ where there need not be one.
enum class BestAbsence {
  NotKept,       ///< The run does not keep its best version, or is simulated.
  NotEvaluated,  ///< The run evaluates no version.
  NoneBetter,    ///< No version has been evaluated that is better than the base.
  NotInPlace,    ///< One has, and has not become best/: its checkpoint was awaited at least.
  SetAside,      ///< A repair kept a damaged or void one, and could make it of nothing else.
};

struct BestVerdict {
  BestState state = BestState::None;
  std::optional<CheckpointMark> mark;       ///< None: there is no readable manifest.
  std::string what;                         ///< What is wrong: where, and how.
  std::optional<BestAbsence> absence = {};  ///< Of None.
  bool is_wrong() const { return state != BestState::None && state != BestState::Whole; }
};

/// What a log tells of best/. Follows the log while it is read; reads the manifests before that, so
/// that a run may continue meanwhile.
class BestInLog {
 public:
  explicit BestInLog(std::filesystem::path run_dir);
  /// To be called for every record, in order.
  void feed(const Record& record, const LogPosition& behind);

  /// Of best/ as it is now. Reads every file of it.
  BestVerdict verify() const;
  /// The same of a folder that holds a best checkpoint under another name: Whole, Damaged or Void.
  BestVerdict verify(const std::filesystem::path& folder) const;
  /// best.candidate/ has all that best/ is to have; the process ended before it took the name.
  bool candidate_is_complete() const;
  /// A folder of this name in the run's folder, best.replaced/ or best.repaired/, could be best/.
  bool could_be_best(std::string_view name) const;
  /// Whether the log has the record that a checkpoint was saved at.
  bool tells_of(const CheckpointMark& mark) const;
  /// What the log has of the evaluation that made this version the best one; null: nothing.
  const command::Evaluated* evaluation_of(PolicyVersion version) const;
  /// The record that called this version the best one last; nullopt: no record did.
  std::optional<std::uint64_t> called_best_at(PolicyVersion version) const;
  /// The checkpoint that was to become best/ as soon as it was saved, as its version had been
  /// called the best before, unless the log tells that it did. The run continues after it, so that
  /// nobody evaluates that version again.
  const std::optional<CheckpointMark>& owed() const { return owed_; }

 private:
  BestVerdict missing(std::string what) const { return {BestState::Missing, {}, std::move(what)}; }
  BestAbsence absence() const;
  void take_commands(const Record& record);
  bool evaluation_is_proved(const std::filesystem::path& folder,
                            const Manifest& manifest,
                            PolicyVersion version) const;

  std::filesystem::path run_dir_;
  std::set<std::uint64_t> sought_;  ///< Records that checkpoints were saved at, by their manifests.
  std::map<std::uint64_t, LogPosition> told_;                     ///< Of these, by the log.
  std::multimap<PolicyVersion, command::Evaluated> evaluations_;  ///< Of those called the best.
  std::map<PolicyVersion, std::uint64_t> called_;  ///< The last record that called it the best.
  std::optional<PolicyVersion> last_;              ///< Called the best last, the base left out.
  bool evaluates_ = false;
  bool keeps_ = false;                ///< The run keeps its best version, and is not simulated.
  std::set<PolicyVersion> saved_;     ///< The newest checkpoint since the run was begun or resumed.
  std::optional<PolicyVersion> due_;  ///< Called the best since then; not in place yet, perhaps.
  std::optional<PolicyVersion> made_;  ///< A best/ was made of it; from then on there is one.
  std::optional<CheckpointMark> owed_;
};

/// The same of a run folder whose log is read for this. Error: the log cannot be read.
Result<BestVerdict> verify_best(const std::filesystem::path& run_dir);
/// What is wrong with best/ as an error, with the next step. Requires: not Whole.
Error best_error(const std::filesystem::path& run_dir, const BestVerdict& verdict);

}  // namespace temper::orchestrator
