#include "orchestrator/start/start_run.hpp"

#include "actors/asio/asio.hpp"
#include "actors/runtime/process.hpp"
#include "core/files.hpp"
#include "core/manifest.hpp"
#include "core/progress_line.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/clusters.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/run/live/base_checkpoint.hpp"
#include "orchestrator/run/live/live_driver.hpp"
#include "orchestrator/run/outside_inputs.hpp"
#include "orchestrator/run/problem_sources.hpp"
#include "orchestrator/run/processes/core_leases.hpp"
#include "orchestrator/run/redis_tensors.hpp"
#include "orchestrator/run/resume.hpp"
#include "orchestrator/run/scale_request.hpp"
#include "orchestrator/run/virtual/in_process_host.hpp"
#include "orchestrator/run/virtual/rehearsal_host.hpp"
#include "orchestrator/run/virtual/simulated_actors.hpp"
#include "orchestrator/run/virtual/stop_signals.hpp"
#include "orchestrator/run/virtual/twin_content.hpp"
#include "orchestrator/run/virtual/virtual_driver.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <iostream>
#include <iterator>
#include <utility>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

LiveOptions live_options(const RunPlan& plan) {
  LiveOptions live;
  live.pipeline = plan.pipeline;
  live.run_dir = plan.run_dir;
  live.worker = worker_program();
  if (plan.pipeline.config.policy == actors::PolicyKind::Torch) {
    live.base = RunDir(plan.run_dir).base();
  }
  live.resume = plan.from == RunPlan::From::Checkpoint;
  live.changes = plan.changes;
  live.provide = [](const ResolvedPipeline& pipeline) { return provide_descriptors(pipeline); };
  return live;
}

using LogPath = std::function<fs::path(std::string_view)>;

LogPath logs_in(const RunPlan& plan) {
  return [run_dir = RunDir(plan.run_dir)](std::string_view name) { return run_dir.log_of(name); };
}

Result<std::unique_ptr<ActorHost>> make_host(const RunPlan& plan,
                                             boost::asio::io_context& io,
                                             const Log& log) {
  std::vector<std::string> names;
  for (const ActorSpec& spec : plan.pipeline.slots)
    names.push_back(spec.name);
  if (plan.driver == DriverKind::InProcess) {
    return std::unique_ptr<ActorHost>(
        std::make_unique<InProcessHost>(std::move(names), SimulatedActors()));
  }
  RehearsalOptions options{
      std::move(names), worker_program(), logs_in(plan), plan.pipeline.config.transport};
  TEMPER_TRY(auto host, RehearsalHost::create(io, std::move(options), log));
  return std::unique_ptr<ActorHost>(std::move(host));
}

/// Null if the run is only counted, without a policy.
Result<std::unique_ptr<ContentSource>> make_content(const RunPlan& plan,
                                                    boost::asio::io_context& io,
                                                    const Log& log) {
  if (!is_twin(plan.pipeline.config))
    return std::unique_ptr<ContentSource>();
  TwinOptions options{plan.pipeline, RunDir(plan.run_dir).base(), worker_program(), logs_in(plan)};
  TEMPER_TRY(auto content, TwinContent::create(io, std::move(options), log));
  return std::unique_ptr<ContentSource>(std::move(content));
}

/// A driver, and the event loop of its workers.
struct VirtualRun {
  boost::asio::io_context io{1};
  std::unique_ptr<VirtualDriver> driver;
};

Result<RunDriver> make_virtual_driver(const RunPlan& plan,
                                      const RunObserver& observer,
                                      const Log& log) {
  VirtualOptions options;
  options.pipeline = plan.pipeline;
  options.log = RunDir(plan.run_dir).file("events.log");
  if (!is_twin(plan.pipeline.config))
    options.checkpoints = RunDir(plan.run_dir).checkpoints().folder();
  options.resume = plan.from == RunPlan::From::Checkpoint;
  options.changes = plan.changes;
  const auto signals = std::make_shared<StopSignals>();
  options.stops = [signals] { return signals->count(); };
  const auto run = std::make_shared<VirtualRun>();
  TEMPER_TRY(auto host, make_host(plan, run->io, log));
  TEMPER_TRY(auto content, make_content(plan, run->io, log));
  TEMPER_TRY(run->driver,
             VirtualDriver::create(
                 std::move(options), std::move(host), observer, log, std::move(content)));
  return RunDriver([run, signals] {
    RunOutcome outcome = run->driver->run();
    outcome.out_of_time = signals->out_of_time();
    return outcome;
  });
}

}  // namespace

fs::path worker_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path() / "temper-worker";
}

bool is_simulated(const PipelineConfig& config) {
  return config.hardware == HardwareKind::Simulated;
}

bool is_twin(const PipelineConfig& config) {
  return is_simulated(config) && config.policy == actors::PolicyKind::Torch;
}

bool draws_rewards(const PipelineConfig& config) {
  return is_simulated(config) && !is_twin(config);
}

TraceForm trace_form(const PipelineConfig& config) {
  return is_simulated(config) ? TraceForm::Gzip : TraceForm::Json;
}

void ignore_write_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

Status provide_descriptors(const ResolvedPipeline& pipeline) {
  // A twin also has three processes, and at most one rollout per engine.
  const std::size_t slots = pipeline.slots.size();
  const std::size_t actors = is_twin(pipeline.config) ? 2 * slots + 4 : slots;
  // Over TCP, unauthenticated peers also hold connections until they are rejected.
  const bool tcp = pipeline.config.transport.kind == TransportKind::Tcp;
  const rlim_t needed = 64 + 8 * static_cast<rlim_t>(actors) + (tcp ? 128 : 0);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
    return {};
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (limit.rlim_max < needed || ::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Error{ErrorCode::Unavailable,
                 fmt::format("this run needs {} file descriptors, but the limit is {}; raise it "
                             "(ulimit -Hn)",
                             needed,
                             limit.rlim_max)};
  }
  return {};
}

Status provide_descriptors(const RunPlan& plan) {
  const PipelineConfig& config = plan.pipeline.config;
  if (plan.driver == DriverKind::InProcess && draws_rewards(config))
    return {};
  return provide_descriptors(plan.pipeline);
}

Result<bool> has_nothing_to_do(const RunPlan& plan) {
  if (plan.from != RunPlan::From::Checkpoint)
    return false;
  const RunDir run_dir(plan.run_dir);
  const auto finished = has_finished(run_dir.file("events.log"));
  if (!finished || !*finished)
    return false;
  const auto unrecorded = unrecorded_changes(run_dir);
  if (unrecorded && *unrecorded > 0)
    return false;
  const auto before = load_config(run_dir.file("config.yaml"));
  if (!before)
    return true;
  TEMPER_TRY_STATUS(check_changes(changed_settings(*before, plan.pipeline.config)));
  return plan.pipeline.config.steps <= before->steps;
}

namespace {

/// Whether its engines get prompts.
bool has_prompts(const PipelineConfig& config) {
  return !draws_rewards(config);
}

Status plan_problems(ResolvedPipeline& pipeline) {
  if (!has_prompts(pipeline.config))
    return {};
  TEMPER_TRY(pipeline.problems, read_problem_plan(pipeline.config));
  return {};
}

Status seal_inputs(const RunDir& run_dir, const PipelineConfig& config) {
  std::map<std::string, std::uint64_t> outside;
  if (has_prompts(config)) {
    TEMPER_TRY(outside, digest_outside_inputs(config));
  }
  return run_dir.seal_inputs(std::move(outside));
}

/// Restores the settings that the log has, and reports on stderr those that are undone.
Status undo_unrecorded_changes(const RunDir& run_dir) {
  TEMPER_TRY(const std::size_t unrecorded, unrecorded_changes(run_dir));
  if (unrecorded == 0)
    return {};
  const auto undone = load_config(run_dir.file("config.yaml"));
  TEMPER_TRY_STATUS(run_dir.restore_config(unrecorded));
  const auto restored = load_config(run_dir.file("config.yaml"));
  if (!undone || !restored)
    return {};
  const auto changes = changed_settings(*undone, *restored);
  if (!changes.empty()) {
    std::fputs(
        ("temper: these settings are undone, because the run ended before they took effect:\n" +
         changes_text(changes))
            .c_str(),
        stderr);
  }
  return {};
}

/// Repairs what can be repaired before a resume, and reports it and the changed settings on stderr.
Status repair_for_resume(const RunDir& run_dir, RunPlan& plan) {
  TEMPER_TRY_STATUS(run_dir.settle_inputs());
  TEMPER_TRY_STATUS(run_dir.check_inputs());
  TEMPER_TRY_STATUS(undo_unrecorded_changes(run_dir));
  TEMPER_TRY(const PipelineConfig before, load_config(run_dir.file("config.yaml")));
  plan.changes = changed_settings(before, plan.pipeline.config);
  TEMPER_TRY_STATUS(check_changes(plan.changes));
  TEMPER_TRY(ResumePoint point, find_resume_point(run_dir, scheduler_config(plan.pipeline)));
  TEMPER_TRY(const Manifest inputs, read_manifest(run_dir.file(kInputsManifest)));
  if (has_prompts(plan.pipeline.config))
    TEMPER_TRY_STATUS(check_outside_inputs(plan.pipeline.config, inputs.facts));
  TEMPER_TRY(const auto said, prepare_resume(run_dir, point));
  plan.pipeline.slots = std::move(point.actors);
  for (const std::string& line : said)
    std::fputs(fmt::format("temper: warning: {}\n", line).c_str(), stderr);
  if (plan.changes.empty())
    return {};
  std::fputs(
      ("temper: the run continues with changed settings:\n" + changes_text(plan.changes)).c_str(),
      stderr);
  return run_dir.replace_config(to_yaml(plan.pipeline.config));
}

/// Before the run folder is made: a failure leaves nothing.
Status check_tensor_server(const PipelineConfig& config) {
  if (is_simulated(config) || config.payloads.store != TensorStoreKind::Redis)
    return {};
  TEMPER_TRY(const auto store, open_redis_tensors(config, Log::discard()));
  return {};
}

/// False for a run that was stopped before it started, or failed before its first step: there is
/// nothing to resume.
bool has_begun(const RunDir& run_dir) {
  const fs::path log = run_dir.file("events.log");
  return fs::exists(log) && !never_started(run_dir) && !is_stillborn(log);
}

/// Moves a run aside that has not begun.
Status set_failed_run_aside(const RunPlan& plan) {
  const RunDir run_dir(plan.run_dir);
  if (!fs::exists(run_dir.file("events.log")) || has_begun(run_dir))
    return {};
  TEMPER_TRY(const RunLock lock, run_dir.lock());
  const fs::path kept = free_name(plan.run_dir.string() + ".failed");
  TEMPER_TRY_STATUS(rename_durably(plan.run_dir, kept));
  std::fputs(
      fmt::format("temper: the previous run in {} ended before its first step; it is kept as "
                  "{}\n",
                  plan.run_dir.string(),
                  kept.string())
          .c_str(),
      stderr);
  return {};
}

/// Makes the base checkpoint, if the run needs one that is not there yet.
Status provide_base(const RunPlan& plan, PretrainLine shown, RunSignals* signals) {
  const RunDir run_dir(plan.run_dir);
  if (plan.make_base)
    TEMPER_TRY_STATUS(plan.make_base(run_dir.base()));
  if (plan.pipeline.config.policy != actors::PolicyKind::Torch || fs::exists(run_dir.base()))
    return {};
  BaseCheckpointOptions options;
  options.worker = worker_program();
  options.log = run_dir.log_of("pretrain");
  options.folder = run_dir.base();
  const RealClock clock;
  ProgressLine progress(std::cerr, progress_of_stderr(), clock, "temper");
  if (shown == PretrainLine::Shown) {
    options.on_progress = [&](std::string_view line) {  // Not called if the base is in the cache.
      progress.show("pretraining the base checkpoint", line);
    };
  }
  if (signals != nullptr) {
    signals->enter(RunSignals::Phase::Child);
    options.stopped = [signals] { return signals->has_come(); };
  }
  Status status = provide_base_checkpoint(plan.pipeline.config, options);
  if (signals != nullptr)
    signals->enter(RunSignals::Phase::Startup);
  return status;
}

}  // namespace

Result<RunLock> prepare_run(RunPlan& plan, PretrainLine shown, RunSignals* signals) {
  ::umask(0077);  // Prompts, weights and logs are private, also those that child processes write.
  const RunDir run_dir(plan.run_dir);
  const bool from_start = plan.from == RunPlan::From::Start;
  TEMPER_TRY_STATUS(check_tensor_server(plan.pipeline.config));
  if (from_start) {
    TEMPER_TRY_STATUS(set_failed_run_aside(plan));
    TEMPER_TRY_STATUS(run_dir.create());
  }
  TEMPER_TRY(RunLock lock, run_dir.lock());
  TEMPER_TRY_STATUS(plan_problems(plan.pipeline));
  TEMPER_TRY_STATUS(decline_older_request(plan.run_dir));
  if (from_start) {
    // Left by a failed start, perhaps with another model. A pretrained base is in the cache.
    std::error_code ignored;
    if (fs::exists(run_dir.file("config.yaml"), ignored))
      fs::remove_all(run_dir.base(), ignored);
    TEMPER_TRY_STATUS(
        write_file_atomically(run_dir.file("config.yaml"), to_yaml(plan.pipeline.config)));
  }
  if (!from_start) {
    TEMPER_TRY_STATUS(repair_for_resume(run_dir, plan));
    return lock;
  }
  TEMPER_TRY_STATUS(provide_base(plan, shown, signals));
  if (plan.change_base)
    TEMPER_TRY_STATUS(plan.change_base(run_dir.base()));
  TEMPER_TRY_STATUS(seal_inputs(run_dir, plan.pipeline.config));
  return lock;
}

Result<RunDriver> make_driver(const RunPlan& plan, const RunObserver& observer, const Log& log) {
  if (is_simulated(plan.pipeline.config))
    return make_virtual_driver(plan, observer, log);
  const auto cores = std::make_shared<CoreLeases>(CoreLeases::take(
      actors::usable_cores(), static_cast<std::size_t>(cards_here(plan.pipeline.config))));
  if (const std::string shared = to_text(cores->others()); !shared.empty()) {
    if (plan.warnings == RunPlan::Warnings::OnScreen)
      std::fputs(("temper: " + shared + "\n").c_str(), stderr);
    else
      log.warning("cores are shared", {{"what", shared}});
  }
  LiveOptions options = live_options(plan);
  options.cores = cores->cores();
  TEMPER_TRY(auto driver, LiveDriver::create(std::move(options), observer, log));
  return RunDriver(
      [cores, shared = std::shared_ptr<LiveDriver>(std::move(driver))] { return shared->run(); });
}

namespace {

/// As prepare_run(). None: the user stopped the run; `why` has the reason.
Result<std::optional<RunLock>> prepare_unless_stopped(RunPlan& plan, std::string& why) {
  StopSignals signals;
  auto lock = prepare_run(plan, PretrainLine::Quiet);
  if (signals.count() > 0) {
    why = lock ? "stopped on request" : lock.error().context;
    return std::optional<RunLock>();
  }
  if (!lock)
    return std::move(lock).error();
  return std::optional<RunLock>(*std::move(lock));
}

}  // namespace

Result<RunEnd> start_run_quietly(const PipelineConfig& config,
                                 ExistingRun existing,
                                 const OnUpdate& on_update,
                                 const FollowRun& follow) {
  using From = RunPlan::From;
  const std::vector<BrokenRule> broken = rules_of_this_machine(config);
  if (!broken.empty())
    return invalid_input(
        fmt::format("{}: {}", broken.front().keys.front(), broken.front().message));
  TEMPER_TRY(ResolvedPipeline pipeline, resolve(config));
  const RunDir run_dir(fs::absolute(config.run_dir));
  RunPlan plan{
      std::move(pipeline),
      run_dir.root(),
      DriverKind::InProcess,
      existing == ExistingRun::Resume && has_begun(run_dir) ? From::Checkpoint : From::Start};
  plan.warnings = RunPlan::Warnings::InLog;
  TEMPER_TRY_STATUS(provide_descriptors(plan));
  RunEnd stopped{false, true, {}};
  TEMPER_TRY(const auto lock, prepare_unless_stopped(plan, stopped.reason));
  if (!lock)
    return stopped;
  const RealClock clock;
  TEMPER_TRY(const Log log, Log::to_file(clock, run_dir.log_of("orchestrator")));
  TEMPER_TRY(const auto recorder,
             RunRecorder::create(run_dir.root(), trace_form(config), card_kinds(config)));
  const RunFollower follower =
      follow ? follow(run_dir.root(), config, *recorder, log) : RunFollower();
  RunObserver observer = follower.observer;
  observer.on_record = [&](const Record& record) {
    recorder->feed(record);
    if (follower.observer.on_record)
      follower.observer.on_record(record);
    if (on_update && std::holds_alternative<event::Trained>(record.event))
      on_update(recorder->metrics());
  };
  TEMPER_TRY(const auto driver, make_driver(plan, observer, log));
  recorder->begin();
  if (follower.on_begin)
    follower.on_begin();
  const RunOutcome outcome = driver();
  const auto summary = recorder->close(identity_of(config, outcome.log_hash));
  if (follower.on_end)
    follower.on_end(outcome.log_hash);
  if (!summary && outcome.finish.ok)
    return summary.error();
  return outcome.finish;
}

}  // namespace temper::orchestrator
