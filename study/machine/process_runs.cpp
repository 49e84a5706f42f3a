#include "study/machine/process_runs.hpp"

#include "core/statistics.hpp"
#include "orchestrator/record/event_log.hpp"
#include "study/machine/cpu_times.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace temper::study {
namespace {

/// A run with a message mix: many small messages, or few large ones.
struct Shape {
  std::int32_t groups, responses;
  std::uint64_t updates;
};
constexpr Shape kShapes[] = {{48, 8, 60}, {12, 16, 60}, {32, 2, 60}, {4, 24, 60}};
/// Duration of an engine step: the other processes sleep meanwhile, as in a real run.
constexpr Duration kStep = std::chrono::milliseconds(5);
constexpr std::int32_t kSlots = 512;  ///< More than the responses of any of these runs.
constexpr std::uint64_t kWarm = 5;    ///< Updates before counting starts.

struct Window {
  std::map<std::string, Duration> at_first_update, begin, end;
};

struct RunCounts {
  Window cpu;
  std::map<std::string, MessageCounts> messages;  ///< By process, within the window.
  std::map<std::string, double> steps;            ///< Steps of engines, within the window.
  std::vector<double> checkpoints_us;
  std::vector<double> commits_us;  ///< From the commit command to the reply: almost no work.
};

orchestrator::PipelineConfig with_shape(const orchestrator::PipelineConfig& config,
                                        const Shape& shape,
                                        std::int64_t tokens) {
  orchestrator::PipelineConfig c = config;
  c.policy = actors::PolicyKind::Synthetic;
  c.rollout.agent = {};
  c.synthetic.tokens = Tokens(std::max<std::int64_t>(1, tokens));
  c.synthetic.step_time = kStep;
  c.steps = shape.updates;
  c.algorithm.groups_per_update = shape.groups;
  c.algorithm.responses_per_group = shape.responses;
  c.algorithm.minibatches = 1;
  c.rollout.concurrency = kSlots;
  c.rollout.replicas = 1;
  c.placement = orchestrator::PlacementConfig{};
  c.placement.cards = std::min(2, config.placement.cards);
  if (c.placement.cards < 2)
    c.placement.mode = orchestrator::PlacementMode::Colocated;
  c.staleness.rule = orchestrator::StalenessRuleKind::Exact;
  c.staleness.bound = 0;
  c.checkpoint.every = static_cast<std::int32_t>(shape.updates / 3);
  return c;
}

/// Counts the messages in the log between two updates.
class Counter {
 public:
  Counter(RunCounts& out, std::uint64_t first, std::uint64_t last)
      : out_(out), first_(first), last_(last) {}

  void feed(const orchestrator::Record& record) {
    if (after_checkpoint_)
      out_.checkpoints_us.push_back(micro(record.time - *std::exchange(after_checkpoint_, {})));
    if (std::holds_alternative<orchestrator::event::CheckpointSaved>(record.event))
      after_checkpoint_ = record.time;
    if (std::holds_alternative<orchestrator::event::WeightsCommitted>(record.event) && committing_)
      out_.commits_us.push_back(micro(record.time - *std::exchange(committing_, {})));
    for (const orchestrator::Command& command : record.commands) {
      if (std::holds_alternative<orchestrator::command::CommitWeights>(command))
        committing_ = record.time;
    }
    if (const auto* actors = orchestrator::actors_in(record.event))
      actors_ = *actors;
    if (inside_)
      std::visit([this](const auto& e) { count(e); }, record.event);
    for (const orchestrator::Command& command : record.commands)
      std::visit([this](const auto& c) { count_command(c); }, command);
    if (const auto* trained = std::get_if<orchestrator::event::Trained>(&record.event)) {
      inside_ = trained->version.value() >= first_ && trained->version.value() < last_;
    }
  }

 private:
  void add(ActorId actor, std::size_t responses) {
    const auto role = std::string(temper::name_of(actors_.at(actor.value()).role));
    for (const std::string& process : {role, std::string("orchestrator")}) {
      MessageCounts& counts = out_.messages[process];
      counts.process = process;
      counts.messages += 1;
      counts.responses += static_cast<double>(responses);
    }
  }
  void count(const orchestrator::event::Generated& e) {
    add(e.actor, e.items.size());
    out_.steps["rollout"] += 1;  // Everything in the batch ends with a step.
  }
  void count(const orchestrator::event::Trained& e) {
    add(e.actor, 0);
    out_.steps["trainer"] += 1;
  }
  void count(const orchestrator::event::ReferenceScored& e) { add(e.actor, scored_[e.lease]); }
  void count(const orchestrator::event::Judged& e) { add(e.actor, e.items.size()); }
  template <class E>
  void count(const E& e) {
    if constexpr (requires { e.actor; } && !std::is_same_v<E, orchestrator::event::Activity>)
      add(e.actor, 0);
  }
  template <class C>
  void count_command(const C& c) {
    if constexpr (std::is_same_v<C, orchestrator::command::ScoreReference>)
      scored_[c.lease] = c.responses.size();
    if (!inside_)
      return;
    if constexpr (requires { c.responses; })
      add(c.actor, c.responses.size());
    else if constexpr (requires { c.actor; } && !std::is_same_v<C, orchestrator::command::Waiting>)
      add(c.actor, 0);
  }

  RunCounts& out_;
  const std::uint64_t first_, last_;
  bool inside_ = false;
  std::vector<orchestrator::ActorSpec> actors_;
  std::map<LeaseId, std::size_t> scored_;
  std::optional<Time> after_checkpoint_, committing_;
};

Result<RunCounts> count_run(const orchestrator::PipelineConfig& config, const MakeRun& run) {
  RunCounts out;
  const std::uint64_t last = config.steps - 1;
  TEMPER_TRY(const orchestrator::RunEnd finish,
             run(config, [&](const orchestrator::RunMetrics& metrics) {
               const std::uint64_t update = metrics.history().count();
               if (update == 1)
                 out.cpu.at_first_update = cpu_times();
               if (update == kWarm)
                 out.cpu.begin = cpu_times();
               if (update == last)
                 out.cpu.end = cpu_times();
             }));
  if (!finish.ok)
    return Error{ErrorCode::Internal,
                 "a run of engines without computation failed: " + finish.reason};
  Counter counter(out, kWarm, last);
  const auto read = orchestrator::read_event_log(
      std::filesystem::path(config.run_dir) / "events.log", [&](const orchestrator::Record& r) {
        counter.feed(r);
        return Status();
      });
  if (!read)
    return read.error();
  for (auto& [process, counts] : out.messages) {
    for (const auto& [name, time] : out.cpu.end) {
      if (name == process || name.starts_with(process + "-"))
        counts.cpu_us += micro(time - out.cpu.begin[name]);
    }
    counts.cpu_us -= out.steps[process] * micro(kStep);
  }
  return out;
}

}  // namespace

Status measure_processes(const orchestrator::PipelineConfig& config,
                         const MakeRun& run,
                         const std::filesystem::path& folder,
                         MachineModel& calibration) {
  const std::int64_t tokens = std::llround(calibration.response.mean);
  std::vector<MessageCounts> counts;
  std::vector<double> starts, checkpoints, commits;
  int number = 0;
  for (const Shape& shape : kShapes) {
    orchestrator::PipelineConfig own = with_shape(config, shape, tokens);
    own.run_dir = (folder / fmt::format("messages-{}", ++number)).string();
    TEMPER_TRY(const RunCounts counted, count_run(own, run));
    for (const auto& [process, c] : counted.messages)
      counts.push_back(c);
    for (const auto& [name, time] : counted.cpu.at_first_update) {
      if (name != "orchestrator")
        starts.push_back(micro(time));
    }
    checkpoints.insert(
        checkpoints.end(), counted.checkpoints_us.begin(), counted.checkpoints_us.end());
    commits.insert(commits.end(), counted.commits_us.begin(), counted.commits_us.end());
  }
  fit_messages(counts, calibration);
  ProcessTimes& p = calibration.processes;
  // Round trip: written, in transit, read, twice each.
  const double handled = 2 * (p.orchestrator.message_us + p.rollout.message_us);
  p.hop_us = std::max(0.0, (median(commits) - handled) / 2);
  p.start_us = median(starts);
  p.checkpoint_us = median(checkpoints);
  const auto record = [&](const char* what, const char* how, std::size_t samples) {
    calibration.fits.push_back({what, how, static_cast<std::int64_t>(samples), 0, 0});
  };
  record("processes.hop_us",
         "half of the time from a commit command to its reply, less CPU time",
         commits.size());
  record("processes.start_us", "CPU time of workers at the first update", starts.size());
  record("processes.checkpoint_us",
         "time in which the orchestrator handles no other event",
         checkpoints.size());
  return {};
}

}  // namespace temper::study
