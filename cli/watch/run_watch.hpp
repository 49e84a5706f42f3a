// Writes the files that let other processes follow a run: live.json, samples, timeline, event files
// and alarms. A file that cannot be written is given up with a warning in the log; the run
// continues. Not thread-safe.
#pragma once

#include "cli/watch/live.hpp"
#include "core/clock.hpp"
#include "core/log.hpp"
#include "orchestrator/metrics/recorder.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/run/run_outcome.hpp"
#include "orchestrator/start/start_run.hpp"
#include "orchestrator/watch/samples_file.hpp"
#include "orchestrator/watch/tensorboard_file.hpp"
#include "orchestrator/watch/timeline_file.hpp"

#include <functional>
#include <memory>

namespace temper::cli {

class RunWatch {
 public:
  /// Wall time between two writes of live.json. It is longer if a write takes more than a twentieth
  /// of it, as for thousands of cards.
  static constexpr Duration kPeriod = std::chrono::seconds(1);
  static constexpr Duration kLongestPeriod = std::chrono::seconds(20);

  /// Receives the lines of `recorder`. All arguments must outlive this object.
  RunWatch(std::filesystem::path run_dir,
           const orchestrator::PipelineConfig& config,
           orchestrator::RunRecorder& recorder,
           const Clock& wall,
           const Log& log);
  ~RunWatch();

  /// Call before begin(): `show` is called for each alarm.
  void set_on_alarm(std::function<void(const orchestrator::Alarm&)> show) {
    on_alarm_ = std::move(show);
  }
  /// Until begin() is called, records are counted but raise no alarm: they precede a resume.
  void begin();
  /// Call it for every record, after the recorder.
  void feed(const orchestrator::Record& record);
  void on_release(const orchestrator::ReleasedGroup& group);
  /// Writes the files that are due; cheap otherwise.
  void refresh(const orchestrator::RunTick& tick);
  /// Writes the final state of the run.
  void close(std::uint64_t log_hash);

 private:
  void on_line(const orchestrator::MetricsLine& line);
  void note_void_time(const orchestrator::Record& record);
  void raise(const std::vector<orchestrator::Alarm>& alarms);
  void write(const orchestrator::RunTick* tick, Time now);
  /// Whether `status` is ok. If not, logs that the file `what` is given up.
  bool worked(const Status& status, std::string_view what);

  const std::filesystem::path run_dir_;
  const orchestrator::PipelineConfig& config_;
  orchestrator::RunRecorder& recorder_;
  const Clock& wall_;
  const Log log_;
  double began_ = 0;  ///< Seconds since 1970.
  bool begun_ = false;
  bool live_works_ = true;
  bool stop_asked_ = false;
  std::optional<Time> next_write_;
  std::uint64_t log_hash_ = 0;

  std::optional<orchestrator::SamplesFile> samples_;
  std::map<std::uint64_t, Time> ways_back_;  ///< Records that the run may roll back to.
  std::vector<orchestrator::VoidTime> void_;
  std::optional<orchestrator::TimelineFile> timeline_;
  std::optional<orchestrator::TensorboardFile> tensorboard_;
  orchestrator::Alarms alarms_;
  std::function<void(const orchestrator::Alarm&)> on_alarm_;
  std::vector<orchestrator::Alarm> raised_;  ///< The latest ones.
  std::map<orchestrator::AlarmKind, std::uint64_t> times_raised_;
  LiveHealth health_;
};

/// A RunWatch of a run that starts quietly (orchestrator/start/start_run.hpp).
orchestrator::RunFollower follow_run(const std::filesystem::path& run_dir,
                                     const orchestrator::PipelineConfig& config,
                                     orchestrator::RunRecorder& recorder,
                                     const Log& log);

}  // namespace temper::cli
