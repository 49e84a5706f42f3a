#include "orchestrator/cli/run_command.hpp"

#include "actors/runtime/process.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/yaml.hpp"
#include "orchestrator/config/load.hpp"
#include "orchestrator/config/placement.hpp"
#include "orchestrator/live/base_checkpoint.hpp"
#include "orchestrator/live/live_driver.hpp"
#include "orchestrator/metrics/recorder.hpp"
#include "orchestrator/view/terminal_view.hpp"

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
  if (issues.empty()) {
    const auto prompts = actors::make_prompt_source(plan.config.task, plan.config.seed);
    if (!prompts)
      return prompts.error();
    for (const BrokenRule& rule :
         validate(plan.config, Tokens(static_cast<std::int64_t>((*prompts)->longest_prompt())))) {
      issues.push_back(loaded.blame(rule));
    }
    const auto cores = static_cast<std::int32_t>(actors::usable_cores().size());
    if (plan.config.placement.cards > cores) {
      issues.push_back(loaded.blame(
          {{"placement.cards"},
           fmt::format("{} cards, but this machine has {} cores to use; set it to at most {}{}",
                       plan.config.placement.cards,
                       cores,
                       cores,
                       cores == 1 ? " and placement.mode to colocated" : "")}));
    }
  }
  if (!issues.empty())
    return invalid_input(render(issues));
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
  return view;
}

/// Runs the pipeline with everything that watches it. Returns how it ended.
Result<command::Finish> conduct(const Plan& plan, const RunOptions& options) {
  const RunDir run_dir(plan.run_dir);
  const RealClock clock;
  TEMPER_TRY(const Log log, Log::to_file(clock, run_dir.log_of("orchestrator")));
  TEMPER_TRY(const auto recorder, RunRecorder::create(run_dir.root()));
  TerminalView view(view_options(plan, options.plain), clock);
  bool show = false;  // the records of the part that is resumed are counted, not shown
  LiveDriver::Observer observer;
  observer.on_record = [&](const Record& record) {
    recorder->feed(record);
    if (show)
      view.feed(record, recorder->metrics().config());
  };
  observer.on_tick = [&](const Scheduler& scheduler, Time now) {
    if (show)
      view.refresh(recorder->metrics(), scheduler, now);
  };
  TEMPER_TRY(const auto driver,
             LiveDriver::create(live_options(plan, options.resume), observer, log));
  show = !options.json;
  const RunOutcome outcome = driver->run();
  const auto summary = recorder->close({plan.config.name, plan.config.seed, outcome.log_hash});
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
  }
  return outcome.finish;
}

}  // namespace

int run_pipeline(const RunOptions& options) {
  ignore_write_signals();
  const auto plan = make_plan(options);
  if (!plan)
    return fail(plan.error());
  if (Status status = provide_descriptors(actor_slots(plan->config).size()); !status)
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
