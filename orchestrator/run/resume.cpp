#include "orchestrator/record/outputs.hpp"
#include "orchestrator/run/resume.hpp"

#include "core/msgpack.hpp"

#include <fmt/format.h>

#include <iterator>

namespace temper::orchestrator {

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
  // What is made from the log must be there too: a power failure can take it after the log is whole.
  const std::filesystem::path run_dir = log.parent_path();
  return finished && !read.damaged() && std::filesystem::exists(run_dir / kOutputsManifest) &&
         check_outputs(run_dir, read).empty();
}

std::string way_text(const std::optional<Checkpoint>& checkpoint, PolicyVersion version) {
  const std::uint64_t to = checkpoint ? checkpoint->state.version.value() : 0;
  const std::uint64_t again = version.value() > to ? version.value() - to : 0;
  return fmt::format(
      "the run goes on from {}; {} updates behind it are made again",
      checkpoint ? "checkpoint " + checkpoint->folder.filename().string() : "its start",
      again);
}

Result<ResumePoint> find_resume_point(const RunDir& run_dir, const SchedulerConfig& config) {
  TEMPER_TRY_STATUS(run_dir.check_inputs());
  const auto path = run_dir.file("events.log");
  HistoryReader reader(run_dir.checkpoints());
  std::optional<SchedulerConfig> recorded;
  ResumePoint point;
  TEMPER_TRY(point.log, scan_event_log(path, [&](const Record& record, const LogPosition& behind) {
               if (const auto* started = std::get_if<event::Started>(&record.event))
                 recorded = started->config;
               reader.feed(record, behind);
               return Status();
             }));
  if (point.log.end.goes_on_at)
    return damage_error(path, point.log);
  if (!recorded) {
    return invalid_input(fmt::format(
        "{} holds no record of a start; begin the run anew in another run_dir", path.string()));
  }
  if (encode(*recorded) != encode(config)) {
    return invalid_input(
        fmt::format("{}: the configuration is not the one this run began with", path.string()));
  }
  point.version = reader.version();
  TEMPER_TRY(point.way, find_way_back(run_dir.checkpoints(), reader.history()));
  return point;
}

Result<std::vector<std::string>> prepare_resume(const RunDir& run_dir,
                                                const SchedulerConfig& config) {
  TEMPER_TRY(const ResumePoint point, find_resume_point(run_dir, config));
  std::vector<std::string> said;
  TEMPER_TRY(const auto kept, cut_event_log(run_dir.file("events.log"), point.log));
  for (const std::filesystem::path& file : kept) {
    said.push_back(fmt::format(
        "events.log: {}; cut off and kept as {}", point.log.end.what, file.filename().string()));
  }
  TEMPER_TRY(auto aside, clear_way(run_dir.checkpoints(), point.way));
  std::ranges::move(aside, std::back_inserter(said));
  if (!said.empty())
    said.push_back(way_text(point.way.checkpoint, point.version));
  return said;
}

}  // namespace temper::orchestrator
