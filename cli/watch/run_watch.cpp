#include "cli/watch/run_watch.hpp"

#include "actors/runtime/process.hpp"
#include "cli/watch/machine.hpp"
#include "core/json_read.hpp"
#include "core/unix_time.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"
#include "orchestrator/start/start_run.hpp"

#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostAlarms = 200;

/// Start of the run in seconds since 1970: from an earlier live.json if there is one.
double began(const fs::path& run_dir, bool resumed) {
  if (resumed) {
    if (const auto text = read_file(run_dir / kLiveFile)) {
      if (const auto live = from_json<Live>(*text); live && live->began > 0)
        return live->began;
    }
  }
  return unix_time();
}

/// Replaces the file without a sync: it can be rebuilt after a power failure.
Status replace(const fs::path& path, std::string_view text) {
  const fs::path fresh = path.string() + ".new";
  TEMPER_TRY(AppendFile file, AppendFile::open(fresh, 0));
  TEMPER_TRY_STATUS(file.append(text));
  std::error_code error;
  fs::rename(fresh, path, error);
  if (error)
    return Error{ErrorCode::Io, fmt::format("cannot write {}: {}", path.string(), error.message())};
  return {};
}

}  // namespace

RunWatch::RunWatch(fs::path run_dir,
                   const orchestrator::PipelineConfig& config,
                   orchestrator::RunRecorder& recorder,
                   const Clock& wall,
                   const Log& log)
    : run_dir_(std::move(run_dir)),
      config_(config),
      recorder_(recorder),
      wall_(wall),
      log_(log),
      began_(began(run_dir_, fs::exists(run_dir_ / "events.log"))),
      alarms_(config.alarms) {
  if (config.samples.share > 0)
    samples_.emplace(run_dir_, config.samples);
  auto timeline = orchestrator::TimelineFile::create(run_dir_, config.tracking.timeline);
  if (worked(timeline ? Status() : Status(timeline.error()), "timeline"))
    timeline_ = *std::move(timeline);
  if (config.tracking.tensorboard) {
    auto file = orchestrator::TensorboardFile::create(run_dir_, unix_time());
    if (worked(file ? Status() : Status(file.error()), "tensorboard"))
      tensorboard_ = *std::move(file);
  }
  recorder_.set_on_line([this](const orchestrator::MetricsLine& line) { on_line(line); });
}

RunWatch::~RunWatch() {
  recorder_.set_on_line(nullptr);
}

bool RunWatch::worked(const Status& status, std::string_view what) {
  if (status)
    return true;
  log_.warning("file given up: it cannot be written",
               {{"what", std::string(what)}, {"why", status.error().context}});
  return false;
}

void RunWatch::begin() {
  begun_ = true;
  if (timeline_ && !worked(timeline_->put_in_place(), "timeline"))
    timeline_.reset();
  if (tensorboard_ && !worked(tensorboard_->put_in_place(), "tensorboard"))
    tensorboard_.reset();
}

/// Notes the time span between a checkpoint and the resume that discards what followed it.
void RunWatch::note_void_time(const orchestrator::Record& record) {
  if (const auto* resumed = std::get_if<orchestrator::event::Resumed>(&record.event)) {
    const auto at = ways_back_.find(resumed->sequence);
    void_.push_back({at == ways_back_.end() ? Time{} - Duration(1) : at->second, record.time});
    if (begun_ && samples_ && !worked(samples_->drop(void_), orchestrator::kSamplesFile))
      samples_.reset();
  } else if (std::holds_alternative<orchestrator::event::CheckpointSaved>(record.event)) {
    ways_back_[record.sequence] = record.time;
    if (ways_back_.size() > orchestrator::kMostWaysBack)
      ways_back_.erase(ways_back_.begin());
  }
}

void RunWatch::feed(const orchestrator::Record& record) {
  note_void_time(record);
  raise(alarms_.feed(record));
  if (timeline_ && !worked(timeline_->feed(record), "timeline"))
    timeline_.reset();
}

void RunWatch::on_release(const orchestrator::ReleasedGroup& group) {
  if (samples_ && !worked(samples_->add(group, recorder_.metrics()), "samples.jsonl"))
    samples_.reset();
}

void RunWatch::on_line(const orchestrator::MetricsLine& line) {
  raise(alarms_.on_update(line));
  if (!tensorboard_)
    return;
  const auto flat = orchestrator::with_aliases(
      orchestrator::flatten_line(to_json_line(line)).value_or(orchestrator::FlatMetrics()),
      config_.tracking.aliases);
  const double at = began_ + seconds(line.update.time.time_since_epoch());
  if (!worked(tensorboard_->add(at, line.update.version.value(), flat), "tensorboard"))
    tensorboard_.reset();
}

void RunWatch::raise(const std::vector<orchestrator::Alarm>& alarms) {
  if (!begun_)
    return;
  for (const orchestrator::Alarm& alarm : alarms) {
    const std::string kind(name_of(alarm.kind));
    log_.warning("alarm", {{"kind", kind}, {"step", alarm.step}, {"what", alarm.text}});
    if (on_alarm_)
      on_alarm_(alarm);
    if (raised_.size() == kMostAlarms)
      raised_.erase(raised_.begin());
    raised_.push_back(alarm);
    ++times_raised_[alarm.kind];
    if (!config_.alarms.on_alarm.empty()) {
      std::vector<std::string> words = config_.alarms.on_alarm;
      words.insert(words.end(), {kind, alarm.text});
      worked(start_detached(words, run_dir_), "on_alarm");
    }
    // Like one Ctrl-C: the current step ends, then a checkpoint. A second one would stop at once.
    if (std::ranges::count(config_.alarms.stop_on, alarm.kind) > 0 &&
        !std::exchange(stop_asked_, true))
      ::kill(::getpid(), SIGTERM);
  }
}

void RunWatch::refresh(const orchestrator::RunTick& tick) {
  const Time wall = wall_.now();
  if (!begun_ || recorder_.metrics().timeline().cards().empty() ||
      (next_write_ && wall < *next_write_))
    return;
  health_ = {memory_of_run().count(), disk_free(run_dir_).count()};
  raise(alarms_.on_health(
      {tick.now, wall, Bytes(health_.memory_bytes), Bytes(health_.disk_free_bytes), false}));
  write(&tick, tick.now);
  const Duration took = wall_.now() - wall;
  next_write_ = wall + std::clamp<Duration>(20 * took, kPeriod, kLongestPeriod);
}

void RunWatch::close(std::uint64_t log_hash) {
  log_hash_ = log_hash;
  const Time end = recorder_.metrics().wall();
  if (timeline_)
    worked(timeline_->close(end), "timeline");
  timeline_.reset();
  write(nullptr, end);
}

void RunWatch::write(const orchestrator::RunTick* tick, Time now) {
  if (timeline_ && !worked(timeline_->flush(), "timeline"))
    timeline_.reset();
  if (!live_works_)
    return;
  const orchestrator::RunMetrics& metrics = recorder_.metrics();
  Frame frame = make_frame(config_.name, metrics, tick, now);
  frame.drawn = orchestrator::draws_rewards(config_);
  Live live = make_live(frame, metrics, orchestrator::identity_of(config_, log_hash_));
  live.pid = ::getpid();
  live.host = actors::host_name();
  live.began = began_;
  live.updated = unix_time();
  live.over = tick == nullptr;
  live.alarms = raised_;
  live.alarms_raised = times_raised_;
  live.health = health_;
  live_works_ = worked(replace(run_dir_ / kLiveFile, to_json(live) + "\n"), kLiveFile);
}

orchestrator::RunFollower follow_run(const fs::path& run_dir,
                                     const orchestrator::PipelineConfig& config,
                                     orchestrator::RunRecorder& recorder,
                                     const Log& log) {
  const auto clock = std::make_shared<RealClock>();
  const auto watch = std::make_shared<RunWatch>(run_dir, config, recorder, *clock, log);
  orchestrator::RunFollower follower;
  follower.observer.on_record = [watch](const orchestrator::Record& r) { watch->feed(r); };
  follower.observer.on_release = [watch](const orchestrator::ReleasedGroup& group) {
    watch->on_release(group);
  };
  follower.observer.on_tick = [watch, clock](const orchestrator::RunTick& tick) {
    watch->refresh(tick);
  };
  follower.on_begin = [watch] { watch->begin(); };
  follower.on_end = [watch](std::uint64_t log_hash) { watch->close(log_hash); };
  return follower;
}

}  // namespace temper::cli
