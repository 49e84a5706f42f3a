#include "orchestrator/cli/run_command.hpp"

#include "actors/asio/asio.hpp"
#include "actors/runtime/process.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/yaml.hpp"
#include "orchestrator/config/load.hpp"
#include "orchestrator/config/placement.hpp"
#include "orchestrator/config/simulation.hpp"
#include "orchestrator/live/base_checkpoint.hpp"
#include "orchestrator/live/live_driver.hpp"
#include "orchestrator/metrics/recorder.hpp"
#include "orchestrator/metrics/report.hpp"
#include "orchestrator/view/terminal_view.hpp"
#include "orchestrator/virtual/in_process_host.hpp"
#include "orchestrator/virtual/rehearsal_host.hpp"
#include "orchestrator/virtual/stop_signals.hpp"
#include "orchestrator/virtual/twin_content.hpp"
#include "orchestrator/virtual/virtual_driver.hpp"
#include "orchestrator/worker/simulated_actors.hpp"

#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// A full disk or a closed pipe behind stderr is no reason to fail differently.
void complain(const std::string& what) {
  std::fputs(fmt::format("temper: {}\n", what).c_str(), stderr);
}

int fail(const Error& error) {
  complain(error.context);
  return 1;
}

/// What cannot be written is an error where it is written, not the end of the process.
void ignore_write_signals() {
  std::signal(SIGPIPE, SIG_IGN);
  std::signal(SIGXFSZ, SIG_IGN);
}

/// As many file descriptors as the run can need, up to the hard limit; ZeroMQ ends the process when
/// it gets none.
Status provide_descriptors(std::size_t actors) {
  const rlim_t needed = 64 + 8 * static_cast<rlim_t>(actors);
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= needed)
    return {};
  limit.rlim_cur = std::min(needed, limit.rlim_max);
  if (limit.rlim_max < needed || ::setrlimit(RLIMIT_NOFILE, &limit) != 0) {
    return Error{ErrorCode::Unavailable,
                 fmt::format("this run needs {} file descriptors, but may have {}; raise the limit "
                             "(ulimit -Hn)",
                             needed,
                             limit.rlim_max)};
  }
  return {};
}

/// temper-worker lies beside temper.
fs::path worker_program() {
  std::error_code error;
  return fs::read_symlink("/proc/self/exe", error).parent_path() / "temper-worker";
}

struct Plan {
  PipelineConfig config;
  fs::path run_dir;
};

bool is_simulated(const Plan& plan) {
  return plan.config.hardware == HardwareKind::Simulated;
}

/// A real policy, at the times of simulated cards.
bool is_twin(const Plan& plan) {
  return is_simulated(plan) && plan.config.policy == actors::PolicyKind::Torch;
}

TraceForm trace_form(const Plan& plan) {
  return is_simulated(plan) ? TraceForm::Gzip : TraceForm::Json;
}

/// What only this machine can tell of a pipeline: its longest prompt, its cores.
Status check_here(const LoadedConfig& loaded, std::vector<ConfigIssue>& issues) {
  const PipelineConfig& config = loaded.config();
  TEMPER_TRY(const auto prompts, actors::make_prompt_source(config.task, config.seed));
  for (const BrokenRule& rule :
       validate(config, Tokens(static_cast<std::int64_t>(prompts->longest_prompt())))) {
    issues.push_back(loaded.blame(rule));
  }
  const auto cores = static_cast<std::int32_t>(actors::usable_cores().size());
  if (config.hardware == HardwareKind::Local && config.placement.cards > cores) {
    issues.push_back(loaded.blame(
        {{"placement.cards"},
         fmt::format("{} cards, but this machine has {} cores to use; set it to at most {}{}",
                     config.placement.cards,
                     cores,
                     cores,
                     cores == 1 ? " and placement.mode to colocated" : "")}));
  }
  return {};
}

/// Flags that do not go with the hardware.
Status check_flags(const RunOptions& options, const Plan& plan) {
  if (!is_simulated(plan) && options.driver != DriverKind::Auto)
    return invalid_input("--driver is for `hardware: simulated`; local hardware has one driver");
  if (is_simulated(plan) && options.resume) {
    return invalid_input(
        "a run on simulated hardware is not resumed: it takes little time; run it again");
  }
  return {};
}

/// Reads the configuration; of a run to resume, the one it was started with.
Result<Plan> make_plan(const RunOptions& options) {
  fs::path file = options.config;
  std::vector<std::string> sets = options.sets;
  if (options.resume && fs::is_directory(file)) {
    sets.push_back("run_dir=" + file.string());
    file /= "config.yaml";
  }
  if (file.empty()) {
    return invalid_input("no configuration; try: temper run configs/quickstart.yaml");
  }
  TEMPER_TRY(const LoadedConfig loaded, read_config(file, sets));
  std::vector<ConfigIssue> issues = loaded.issues();
  Plan plan{loaded.config(), {}};
  if (issues.empty() && (!is_simulated(plan) || is_twin(plan)))
    TEMPER_TRY_STATUS(check_here(loaded, issues));
  if (!issues.empty())
    return invalid_input(render(issues));
  TEMPER_TRY_STATUS(check_flags(options, plan));
  if (plan.config.run_dir.empty()) {
    plan.config.run_dir = fmt::format("runs/{}-{}", plan.config.name, calendar_stamp());
  }
  plan.run_dir = fs::absolute(plan.config.run_dir);
  if (options.resume && !fs::exists(plan.run_dir / "events.log")) {
    return Error{ErrorCode::NotFound,
                 fmt::format("{} holds no run to resume", plan.run_dir.string())};
  }
  return plan;
}

/// Makes the run's folder ready, and ours alone for as long as the lock is held.
Result<RunLock> prepare(const Plan& plan, bool resume, bool quiet) {
  const RunDir run_dir(plan.run_dir);
  if (!resume)
    TEMPER_TRY_STATUS(run_dir.create());
  TEMPER_TRY(RunLock lock, run_dir.lock());
  if (!resume) {
    TEMPER_TRY_STATUS(write_file_atomically(run_dir.file("config.yaml"), to_yaml(plan.config)));
  }
  if (plan.config.policy != actors::PolicyKind::Torch ||
      fs::exists(run_dir.file("base.safetensors"))) {
    return lock;
  }
  BaseCheckpointOptions options;
  options.worker = worker_program();
  options.log = run_dir.log_of("pretrain");
  options.copy_to = run_dir.file("base.safetensors");
  const bool tty = isatty(STDERR_FILENO) != 0;
  options.on_progress = [quiet, tty](std::string_view line) {
    if (!quiet && tty)
      std::fputs(fmt::format("\r\x1b[Kbase checkpoint: {}", line).c_str(), stderr);
  };
  const Status status = provide_base_checkpoint(plan.config, options);
  if (!quiet && tty)
    std::fputs("\r\x1b[K", stderr);
  if (!status)
    return status.error();
  return lock;
}

LiveOptions live_options(const Plan& plan, bool resume) {
  LiveOptions live;
  live.config = plan.config;
  live.run_dir = plan.run_dir;
  live.worker = worker_program();
  if (plan.config.policy == actors::PolicyKind::Torch) {
    live.base_weights = RunDir(plan.run_dir).file("base.safetensors");
  }
  live.resume = resume;
  return live;
}

ViewOptions view_options(const Plan& plan, bool plain) {
  ViewOptions view = detect_view(STDOUT_FILENO, plain ? Wish::Plain : Wish::Auto);
  view.name = plan.config.name;
  view.run_dir = plan.config.run_dir;
  view.trace = trace_name(trace_form(plan));
  if (is_simulated(plan))
    view.machine = machine_shape(plan.config);
  return view;
}

/// Runs the pipeline to its end.
using Driver = std::function<RunOutcome()>;

using LogOf = std::function<fs::path(std::string_view)>;

LogOf logs_in(const Plan& plan) {
  return [run_dir = RunDir(plan.run_dir)](std::string_view name) { return run_dir.log_of(name); };
}

Result<std::unique_ptr<ActorHost>> make_host(const Plan& plan,
                                             DriverKind driver,
                                             boost::asio::io_context& io,
                                             const Log& log) {
  std::vector<std::string> names;
  for (const ActorSpec& spec : actor_slots(plan.config))
    names.push_back(spec.name);
  if (driver == DriverKind::InProcess) {
    return std::unique_ptr<ActorHost>(
        std::make_unique<InProcessHost>(std::move(names), make_simulated_actor));
  }
  RehearsalOptions options{
      std::move(names), worker_program(), logs_in(plan), plan.config.transport};
  TEMPER_TRY(auto host, RehearsalHost::create(io, std::move(options), log));
  return std::unique_ptr<ActorHost>(std::move(host));
}

/// Null for a run whose work is only counted.
Result<std::unique_ptr<ContentSource>> make_content(const Plan& plan,
                                                    boost::asio::io_context& io,
                                                    const Log& log) {
  if (!is_twin(plan))
    return std::unique_ptr<ContentSource>();
  TwinOptions options{
      plan.config, RunDir(plan.run_dir).file("base.safetensors"), worker_program(), logs_in(plan)};
  TEMPER_TRY(auto content, TwinContent::create(io, std::move(options), log));
  return std::unique_ptr<ContentSource>(std::move(content));
}

/// A driver and the loop that its workers talk through.
struct VirtualRun {
  boost::asio::io_context io{1};
  std::unique_ptr<VirtualDriver> driver;
};

Result<Driver> make_virtual_driver(const Plan& plan,
                                   DriverKind kind,
                                   const RunObserver& observer,
                                   const Log& log) {
  VirtualOptions options;
  options.config = plan.config;
  TEMPER_TRY(options.simulation, resolve_simulation(plan.config));
  options.log = RunDir(plan.run_dir).file("events.log");
  options.stops = [signals = std::make_shared<StopSignals>()] { return signals->count(); };
  const auto run = std::make_shared<VirtualRun>();
  TEMPER_TRY(auto host, make_host(plan, kind, run->io, log));
  TEMPER_TRY(auto content, make_content(plan, run->io, log));
  TEMPER_TRY(run->driver,
             VirtualDriver::create(
                 std::move(options), std::move(host), observer, log, std::move(content)));
  return Driver([run] { return run->driver->run(); });
}

Result<Driver> make_driver(const Plan& plan,
                           const RunOptions& options,
                           const RunObserver& observer,
                           const Log& log) {
  if (is_simulated(plan))
    return make_virtual_driver(plan, options.driver, observer, log);
  TEMPER_TRY(auto driver, LiveDriver::create(live_options(plan, options.resume), observer, log));
  return Driver(
      [shared = std::shared_ptr<LiveDriver>(std::move(driver))] { return shared->run(); });
}

/// Runs the pipeline with everything that watches it. Returns how it ended.
Result<command::Finish> conduct(const Plan& plan, const RunOptions& options) {
  const RunDir run_dir(plan.run_dir);
  const RealClock clock;
  TEMPER_TRY(const Log log, Log::to_file(clock, run_dir.log_of("orchestrator")));
  TEMPER_TRY(const auto recorder, RunRecorder::create(run_dir.root(), trace_form(plan)));
  TerminalView view(view_options(plan, options.plain), clock);
  bool show = false;  // the records of the part that is resumed are counted, not shown
  RunObserver observer;
  observer.on_record = [&](const Record& record) {
    recorder->feed(record);
    if (show)
      view.feed(record, recorder->metrics().config());
  };
  observer.on_tick = [&](const Scheduler& scheduler, Time now) {
    if (show)
      view.refresh(recorder->metrics(), scheduler, now);
  };
  TEMPER_TRY(const auto driver, make_driver(plan, options, observer, log));
  show = !options.json;
  const Time began = clock.now();
  const RunOutcome outcome = driver();
  const Duration took = clock.now() - began;
  const auto summary =
      recorder->close({plan.config.name, plan.config.seed, outcome.log_hash, is_simulated(plan)});
  if (!summary) {
    if (outcome.finish.ok)
      return summary.error();
    complain(summary.error().context);  // what ended the run is said last
    return outcome.finish;
  }
  if (options.json) {
    std::puts(to_json(*summary, JsonStyle::Pretty).c_str());
  } else {
    view.close(recorder->metrics(), *summary);
    if (is_simulated(plan)) {
      fmt::print("  simulated {} of virtual time in {:.1f} s\n",
                 to_text(std::chrono::duration_cast<std::chrono::seconds>(
                     outcome.wall.time_since_epoch())),
                 seconds(took));
      if (is_twin(plan) && summary->reward.first)
        fmt::print("  {}\n", learning_text(*summary));
    }
  }
  return outcome.finish;
}

}  // namespace

int run_pipeline(const RunOptions& options) {
  ignore_write_signals();
  const auto plan = make_plan(options);
  if (!plan)
    return fail(plan.error());
  // The processes of a twin besides: three, and a rollout for each engine at most.
  const std::size_t actors = actor_slots(plan->config).size();
  if (Status status = provide_descriptors(is_twin(*plan) ? 2 * actors + 4 : actors); !status)
    return fail(status.error());
  const auto lock = prepare(*plan, options.resume, options.json);
  if (!lock)
    return fail(lock.error());
  const auto finish = conduct(*plan, options);
  if (!finish)
    return fail(finish.error());
  if (finish->ok)
    return 0;
  complain(finish->reason);
  return finish->stopped ? 130 : 1;
}

}  // namespace temper::orchestrator
