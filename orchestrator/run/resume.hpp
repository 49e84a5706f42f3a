// What must be true before a run goes on, and what is set right first. find_resume_point() reads
// the whole log and the checkpoint to go back to, and changes nothing; only then does
// prepare_resume() cut off a torn record (and keep it), set aside what no longer counts, and
// restore best/.
#pragma once

#include "orchestrator/record/best_audit.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "orchestrator/run/way_back.hpp"

#include <string>
#include <vector>

namespace temper::orchestrator {

struct ResumePoint {
  LogSummary log;
  PolicyVersion version;          ///< After the last update in the log.
  std::vector<ActorSpec> actors;  ///< By id, with those of before: as the run goes on.
  WayBack way;
  BestInLog best;
};

/// `config`: with the actors that are wanted, whichever the run had (actors_from_now()). Errors: an
/// input, the log or every checkpoint is damaged; the log holds no run, or one that cannot go on
/// under `config`. Each names the file and what to do.
Result<ResumePoint> find_resume_point(const RunDir& run_dir, const SchedulerConfig& config);

/// Whether the run in this log has ended well, so that there is nothing to go on with. A log that
/// is damaged has not.
Result<bool> has_finished(const std::filesystem::path& log);

/// How often config.yaml was replaced by one that the log has no record of: the process that
/// replaced it ended before the change took effect.
Result<std::size_t> unrecorded_changes(const RunDir& run_dir);
/// The file with the settings that the run has had: config.yaml, or the one that an unrecorded
/// change replaced. Where the log cannot be read: config.yaml.
std::filesystem::path recorded_config(const RunDir& run_dir);

/// Whether the run in this log failed before its first update, so that nothing of it can be gone on
/// with. One that goes on, was stopped, or has a damaged log is not.
bool is_stillborn(const std::filesystem::path& log);

/// From where a run whose log reaches `version` goes on, and what that costs.
std::string way_text(const std::optional<Checkpoint>& checkpoint, PolicyVersion version);

/// Requires: the run folder is locked. Makes the folder what find_resume_point() found. The result:
/// what was set right and what is lost by it, a line each; empty: nothing was wrong.
Result<std::vector<std::string>> prepare_resume(const RunDir& run_dir, const ResumePoint& point);

}  // namespace temper::orchestrator
