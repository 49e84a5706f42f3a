#include "orchestrator/run/resume.hpp"

#include "core/msgpack.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/record/outputs.hpp"
#include "orchestrator/run/best_checkpoint.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <set>

namespace temper::orchestrator {
namespace {

/// Roles of which somebody is at work.
std::set<actors::RoleKind> roles_at_work(const std::vector<ActorSpec>& actors) {
  std::set<actors::RoleKind> roles;
  for (const ActorSpec& actor : actors) {
    if (!actor.away)
      roles.insert(actor.role);
  }
  return roles;
}

/// Whether a run that was decided by `before` can be by `after`, whose actors are those from now
/// on: the same roles, and what is under way is as good under the one as under the other
/// (pipeline/changes.hpp has the keys).
bool goes_on(const SchedulerConfig& before, const SchedulerConfig& after) {
  SchedulerConfig same = after;
  same.actors = before.actors;
  same.shares = before.shares;
  same.parts = before.parts;
  same.kv_slots = before.kv_slots;
  same.steps = before.steps;
  same.staleness_bound = before.staleness_bound;
  same.staleness_fraction = before.staleness_fraction;
  same.checkpoint_every = before.checkpoint_every;
  same.max_restarts = before.max_restarts;
  same.restarts_forgiven_after = before.restarts_forgiven_after;
  same.starts_at_once = before.starts_at_once;
  same.failed_groups_limit = before.failed_groups_limit;
  same.deadlines = before.deadlines;
  same.filter_equal_rewards = before.filter_equal_rewards;
  same.filter_limit = before.filter_limit;
  same.evaluation = before.evaluation;
  // Their problems are those of before, unless an earlier build recorded none.
  if (before.problems.sources.empty() ||
      problem_difference(before.problems, after.problems).empty())
    same.problems = before.problems;
  return encode(same) == encode(before) && after.staleness_bound >= before.staleness_bound &&
         roles_at_work(after.actors) == roles_at_work(before.actors);
}

}  // namespace

Result<bool> has_finished(const std::filesystem::path& log) {
  bool finished = false;
  TEMPER_TRY(const LogSummary read,
             scan_event_log(log, [&](const Record& record, const LogPosition&) {
               if (std::holds_alternative<event::Resumed>(record.event))
                 finished = false;
               for (const Command& command : record.commands) {
                 if (const auto* finish = std::get_if<command::Finish>(&command))
                   finished = finish->ok;
               }
               return Status();
             }));
  // Files derived from the log must exist too: a power failure can take them after the log is
  // whole.
  const std::filesystem::path run_dir = log.parent_path();
  const auto sealed = read_outputs_manifest(run_dir, read);
  return finished && !read.damaged() && sealed && *sealed && check_outputs(run_dir, read).empty();
}

Result<std::size_t> unrecorded_changes(const RunDir& run_dir) {
  const std::size_t replaced = run_dir.replaced_configs();
  if (replaced == 0)
    return replaced;
  std::size_t recorded = 0;
  TEMPER_TRY_STATUS(
      scan_event_log(run_dir.file("events.log"), [&](const Record& record, const LogPosition&) {
        if (const auto* resumed = std::get_if<event::Resumed>(&record.event))
          recorded += resumed->changes.empty() ? 0 : 1;
        if (const auto* scaled = std::get_if<event::Scaled>(&record.event))
          recorded += scaled->changes.empty() ? 0 : 1;
        return Status();
      }));
  return replaced - std::min(recorded, replaced);
}

std::filesystem::path recorded_config(const RunDir& run_dir) {
  const auto unrecorded = unrecorded_changes(run_dir);
  return unrecorded && *unrecorded > 0 ? run_dir.replaced_config(*unrecorded)
                                       : run_dir.file("config.yaml");
}

bool is_stillborn(const std::filesystem::path& log) {
  bool failed = false, trained = false;
  const auto read = scan_event_log(log, [&](const Record& record, const LogPosition&) {
    trained = trained || std::holds_alternative<event::Trained>(record.event);
    for (const Command& command : record.commands) {
      if (const auto* finish = std::get_if<command::Finish>(&command))
        failed = !finish->ok && !finish->stopped;
    }
    return Status();
  });
  return read && !read->damaged() && failed && !trained;
}

bool never_started(const RunDir& run_dir) {
  const auto read = scan_event_log(run_dir.file("events.log"),
                                   [](const Record&, const LogPosition&) { return Status(); });
  std::error_code error;
  const bool empty = std::filesystem::is_empty(run_dir.file("checkpoints"), error);
  const bool saved = !empty && error != std::errc::no_such_file_or_directory;
  return read && read->records == 0 && !read->end.goes_on_at && !saved;
}

std::string rollback_text(const std::optional<Checkpoint>& checkpoint, PolicyVersion version) {
  const std::uint64_t to = checkpoint ? checkpoint->state.version.value() : 0;
  const std::uint64_t again = version.value() > to ? version.value() - to : 0;
  return fmt::format(
      "the run resumes from {} and repeats {} step{}",
      checkpoint ? "checkpoint " + checkpoint->folder.filename().string() : "its start",
      again,
      again == 1 ? "" : "s");
}

Result<ResumePoint> find_resume_point(const RunDir& run_dir, const SchedulerConfig& wanted) {
  TEMPER_TRY_STATUS(run_dir.check_inputs());
  const auto path = run_dir.file("events.log");
  HistoryReader reader(run_dir.checkpoints());
  ResumePoint point{{}, {}, {}, {}, BestInLog(run_dir.root())};
  TEMPER_TRY(point.log, scan_event_log(path, [&](const Record& record, const LogPosition& behind) {
               reader.feed(record, behind);
               point.best.feed(record, behind);
               return Status();
             }));
  if (point.log.end.goes_on_at)
    return damage_error(path, point.log);
  if (!reader.config()) {
    return invalid_input(fmt::format(
        "{} holds no record of a start; start the run again without --resume, or in another "
        "run_dir if the folder has checkpoints",
        path.string()));
  }
  SchedulerConfig config = wanted;
  config.actors = point.actors = actors_from_now(reader.config()->actors, wanted.actors);
  const ProblemPlan& problems = reader.config()->problems;
  if (!problems.sources.empty()) {
    if (auto what = problem_difference(problems, config.problems); !what.empty())
      return invalid_input(std::move(what) + "; restore its data, or start a new run with --from");
  }
  if (!goes_on(*reader.config(), config)) {
    return invalid_input(fmt::format(
        "{}: the configuration differs from the one that the run started with", path.string()));
  }
  point.version = reader.version();
  TEMPER_TRY(point.rollback, find_rollback_point(run_dir.checkpoints(), reader.history()));
  if (point.rollback.checkpoint &&
      point.rollback.checkpoint->state.version.value() > config.steps) {
    return invalid_input(fmt::format(
        "steps: expected at least {1}, the step of the checkpoint to resume from, found {0}",
        config.steps,
        point.rollback.checkpoint->state.version));
  }
  return point;
}

Result<std::vector<std::string>> prepare_resume(const RunDir& run_dir, const ResumePoint& point) {
  std::vector<std::string> said;
  TEMPER_TRY(const auto kept, cut_event_log(run_dir.file("events.log"), point.log));
  said.reserve(kept.size());
  for (const std::filesystem::path& file : kept) {
    said.push_back(fmt::format(
        "events.log: {}; cut off and kept as {}", point.log.end.what, file.filename().string()));
  }
  TEMPER_TRY(auto aside, set_aside_skipped(run_dir.checkpoints(), point.rollback));
  std::ranges::move(aside, std::back_inserter(said));
  if (!said.empty())
    said.push_back(rollback_text(point.rollback.checkpoint, point.version));
  TEMPER_TRY(auto best, restore_best(run_dir.root(), point.best));
  std::ranges::move(best, std::back_inserter(said));
  return said;
}

}  // namespace temper::orchestrator
