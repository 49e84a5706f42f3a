// Verifies and repairs a run folder before a resume. find_resume_point() reads the whole log and
// the checkpoint to continue from, and changes nothing. Only then does prepare_resume() cut off
// (and keep) a torn record, set aside checkpoints that no longer count, and restore best/.
#pragma once

#include "orchestrator/record/best_audit.hpp"
#include "orchestrator/run/rollback_point.hpp"
#include "orchestrator/run/run_dir.hpp"

#include <string>
#include <vector>

namespace temper::orchestrator {

struct ResumePoint {
  LogSummary log;
  PolicyVersion version;          ///< After the last step in the log.
  std::vector<ActorSpec> actors;  ///< Of the resumed run, by id, including removed ones.
  RollbackPoint rollback;
  BestInLog best;
};

/// `config`: with the wanted actors, whichever the run had (actors_from_now()). Errors: an input,
/// the log or every checkpoint is damaged; the log holds no run, or one that cannot continue under
/// `config`. Each error names the file and the next step.
Result<ResumePoint> find_resume_point(const RunDir& run_dir, const SchedulerConfig& config);

/// Whether the run in this log has succeeded, so that there is nothing to resume. False for a
/// damaged log. Errors: see scan_event_log().
Result<bool> has_finished(const std::filesystem::path& log);

/// The number of replacements of config.yaml that the log does not record: the process ended before
/// the change took effect. Errors: see scan_event_log().
Result<std::size_t> unrecorded_changes(const RunDir& run_dir);
/// The file with the settings that the run had: config.yaml, or the one that an unrecorded change
/// replaced. If the log cannot be read: config.yaml.
std::filesystem::path recorded_config(const RunDir& run_dir);

/// Whether the run in this log failed before its first step, so that nothing can be resumed. False
/// for a run that is under way, was stopped, or has a damaged log.
bool is_stillborn(const std::filesystem::path& log);

/// Whether the run in this folder was stopped before it started: its log has no complete record,
/// and there is no checkpoint. False without a log, for a log that cannot be read, and for one with
/// a record behind a damaged part.
bool never_started(const RunDir& run_dir);

/// Says from where a run whose log reaches `version` continues, and how many steps it repeats.
std::string rollback_text(const std::optional<Checkpoint>& checkpoint, PolicyVersion version);

/// Requires: the run folder is locked. Repairs the folder as find_resume_point() found. Returns the
/// repairs and their cost, a line each; empty: nothing was wrong.
Result<std::vector<std::string>> prepare_resume(const RunDir& run_dir, const ResumePoint& point);

}  // namespace temper::orchestrator
