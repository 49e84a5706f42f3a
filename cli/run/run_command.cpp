#include "cli/run/run_command.hpp"

#include "actors/simulation/role_clusters.hpp"
#include "cli/command/exit_code.hpp"
#include "cli/laboratory/laboratory.hpp"
#include "cli/run/machines.hpp"
#include "cli/run/serve_command.hpp"
#include "cli/view/terminal_view.hpp"
#include "cli/watch/run_watch.hpp"
#include "core/json.hpp"
#include "orchestrator/metrics/report.hpp"
#include "orchestrator/model_export/adapter_start.hpp"
#include "orchestrator/model_export/model_export.hpp"
#include "orchestrator/pipeline/changes.hpp"
#include "orchestrator/pipeline/clusters.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/resume.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

/// Prints a message on stderr. Write errors are ignored: they must not change the exit code.
void print_message(const std::string& what) {
  std::fputs(fmt::format("temper: {}\n", what).c_str(), stderr);
}

/// Checks that the flags fit the hardware and each other.
Status check_flags(const RunOptions& options, const orchestrator::PipelineConfig& config) {
  if (!orchestrator::is_simulated(config) && options.driver != orchestrator::DriverKind::Auto)
    return invalid_input(
        "--driver: expected hardware: simulated, found hardware: local, which has one driver");
  if (options.resume && !options.from.empty())
    return invalid_input("--resume continues a run and --from starts a new one: give one of them");
  if (orchestrator::is_simulated(config) && !options.from.empty()) {
    return invalid_input(
        "--from: expected hardware: local; a run on simulated hardware has no weights to start "
        "from");
  }
  if (orchestrator::is_twin(config) && options.resume) {
    return invalid_input(
        "--resume: a run with a real policy on simulated hardware cannot be resumed, because its "
        "checkpoints hold no weights; start it again without --resume");
  }
  return {};
}

/// The newest automatically named folder of a run with this name.
Result<std::string> newest_run(const std::string& name) {
  std::string newest;
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator("runs", ignored)) {
    const std::string folder = entry.path().string();
    if (entry.path().filename().string().starts_with(name + "-2") &&
        fs::exists(entry.path() / "events.log", ignored))
      newest = std::max(newest, folder);  // the names end in the time
  }
  if (!newest.empty())
    return newest;
  return Error{ErrorCode::NotFound,
               fmt::format("no folder runs/{}-* holds a run to resume; name the folder: temper run "
                           "--resume RUN",
                           name)};
}

/// A run that starts --from another one must have the same model; its adapter may be another one,
/// because that of the other run is merged into the base.
Status check_same_model(const fs::path& from, const orchestrator::PipelineConfig& config) {
  TEMPER_TRY(const auto before, orchestrator::load_config(from / "config.yaml"));
  for (const orchestrator::SettingChange& c : orchestrator::changed_settings(before, config)) {
    const bool is_of_base = c.key.starts_with("model.") && c.key != "model.path" &&
                            c.key != "model.lora" && !c.key.starts_with("model.lora.");
    if (c.key == "policy" || is_of_base) {
      return invalid_input(
          fmt::format("{}: expected the value of {} ({}), found {}: a run started with --from "
                      "needs the same model",
                      c.key,

                      from.string(),
                      c.from,
                      c.to));
    }
  }
  return {};
}

/// Lets a run start from an adapter of peft (--from).
Status start_from_adapter(const fs::path& folder, orchestrator::RunPlan& plan) {
  const orchestrator::PipelineConfig& config = plan.pipeline.config;
  TEMPER_TRY(auto start, orchestrator::find_adapter_start(folder, config));
  print_message(fmt::format("starting from the {} in {}{}",
                            start.merges ? "base merged with the adapter" : "adapter",
                            folder.string(),
                            start.config.base.empty() ? "" : ", made for " + start.config.base));
  plan.change_base = [start = std::move(start), config](const fs::path& base) {
    return orchestrator::apply_adapter_start(start, config, base);
  };
  return {};
}

/// Makes the weights of another run, or an adapter, the start of this one (--from).
Status branch(const std::string& from, orchestrator::RunPlan& plan) {
  if (actors::is_adapter_folder(from))
    return start_from_adapter(from, plan);
  TEMPER_TRY(orchestrator::ModelExport what, orchestrator::parse_export_source(from));
  TEMPER_TRY_STATUS(check_same_model(what.run, plan.pipeline.config));
  if (auto source = orchestrator::find_export_source(what); !source)
    return std::move(source).error();  // before the new run writes any file
  what.type = actors::StoredType::Float32;
  what.merge = true;
  plan.make_base = [what](const fs::path& base) mutable -> Status {
    what.to = base;
    TEMPER_TRY(const auto exported, orchestrator::export_model(what));
    print_message(fmt::format(
        "starting from the weights of step {} of {}", exported.version, what.run.string()));
    return {};
  };
  return {};
}

/// A recorded configuration with issues is mostly a damaged one; then names the damage instead.
/// `run`: the folder of the file; empty: it is not recorded.
Error blame_damage(const fs::path& run,
                   const fs::path& file,
                   const std::vector<ConfigIssue>& issues) {
  const bool in_file = std::ranges::any_of(
      issues, [&](const ConfigIssue& issue) { return issue.location.starts_with(file.string()); });
  if (!run.empty() && in_file) {
    Status whole = orchestrator::RunDir(run).check_inputs();
    if (!whole && whole.error().code == ErrorCode::Corrupt)
      return std::move(whole).error();
  }
  return config_error(issues);
}

/// Reads the configuration. A run to resume uses its recorded one.
Result<orchestrator::RunPlan> make_plan(RunOptions options) {
  fs::path file = options.config;
  fs::path recorded_by;
  std::vector<std::string> sets = options.sets;
  if (options.resume && fs::is_directory(file)) {
    sets.push_back("run_dir=" + file.string());
    recorded_by = file;
    file = orchestrator::recorded_config(orchestrator::RunDir(file));
  }
  std::error_code ignored;
  if (options.resume && !file.empty() && !fs::exists(orchestrator::found_config(file), ignored)) {
    return Error{ErrorCode::NotFound,
                 fmt::format("--resume: {} does not exist; expected a run folder (`temper runs` "
                             "lists those of runs/) or a configuration",
                             file.string())};
  }
  if (!options.faults.empty())
    sets.push_back("simulation.faults.trace=" + fs::absolute(options.faults).string());
  if (file.empty()) {
    return invalid_input("no configuration given; try: temper run configs/quickstart.yaml");
  }
  TEMPER_TRY(const orchestrator::LoadedConfig loaded, orchestrator::read_config(file, sets));
  std::vector<ConfigIssue> issues = loaded.issues();
  if (!issues.empty())
    return blame_damage(recorded_by, file, issues);
  orchestrator::PipelineConfig config = loaded.config();
  for (const orchestrator::BrokenRule& rule : orchestrator::rules_of_this_machine(config))
    issues.push_back(loaded.blame(rule));
  if (!issues.empty())
    return config_error(issues);
  for (const ConfigIssue& warning : loaded.warnings())
    std::fputs(("temper: warning: " + render(std::span(&warning, 1))).c_str(), stderr);
  TEMPER_TRY_STATUS(check_flags(options, config));
  if (options.resume && config.run_dir.empty()) {
    TEMPER_TRY(config.run_dir, newest_run(config.name));
  }
  if (config.run_dir.empty())
    config.run_dir = fmt::format("runs/{}-{}", config.name, calendar_stamp());
  const fs::path run_dir = fs::absolute(config.run_dir);
  const fs::path log = run_dir / "events.log";
  options.resume |= options.go_on && fs::exists(log) &&
                    !orchestrator::never_started(orchestrator::RunDir(run_dir));
  if (options.resume && !fs::exists(log)) {
    return Error{ErrorCode::NotFound,
                 fmt::format("{} holds no run to resume (no events.log)", run_dir.string())};
  }
  TEMPER_TRY(auto pipeline, orchestrator::resolve(std::move(config)));
  orchestrator::RunPlan plan{std::move(pipeline),
                             run_dir,
                             options.driver,
                             options.resume ? orchestrator::RunPlan::From::Checkpoint
                                            : orchestrator::RunPlan::From::Start};
  if (!options.from.empty() && !options.resume)
    TEMPER_TRY_STATUS(branch(options.from, plan));
  return plan;
}

ViewOptions view_options(const orchestrator::RunPlan& plan, bool plain) {
  ViewOptions view = detect_view(STDOUT_FILENO, plain ? OutputForm::Plain : OutputForm::Auto);
  const orchestrator::PipelineConfig& config = plan.pipeline.config;
  view.name = config.name;
  view.run_dir = config.run_dir;
  view.trace = orchestrator::trace_name(orchestrator::trace_form(config));
  if (plan.pipeline.simulation)
    view.machines = machines_of(plan.pipeline);
  view.drawn = orchestrator::draws_rewards(config);
  return view;
}

/// Prints the command that starts the workers which the run waits for.
void print_awaited_workers(const orchestrator::RunPlan& plan) {
  std::string names;
  std::size_t count = 0;
  constexpr std::size_t kShown = 4;
  for (const orchestrator::ActorSpec& slot : plan.pipeline.slots) {
    if (!slot.attached || slot.away)
      continue;
    if (++count <= kShown)
      names += (names.empty() ? "" : ", ") + slot.name;
  }
  if (count == 0)
    return;
  print_message(
      fmt::format("waiting for {} worker{} ({}{}). Start each with: temper worker --connect "
                  "{}/endpoint --key {}/keys/worker.key (or another key of `temper keys list`)",
                  count,
                  count == 1 ? "" : "s",
                  names,
                  count > kShown ? ", ..." : "",
                  plan.run_dir.string(),
                  plan.run_dir.string()));
}

/// Prints summary.json for programs; for people, the facts of a simulated run that the view omits.
void show_end(const orchestrator::RunPlan& plan,
              bool json,
              const orchestrator::Summary& summary,
              const orchestrator::RunOutcome& outcome,
              Duration took) {
  const orchestrator::PipelineConfig& config = plan.pipeline.config;
  const std::string note = plan.pipeline.simulation
                               ? simulated_run_note(actors::all_hardware(*plan.pipeline.simulation))
                               : "";
  if (json) {
    std::puts(to_json(summary, JsonStyle::Pretty).c_str());
    std::fflush(stdout);
    std::fputs(note.c_str(), stderr);
  } else if (orchestrator::is_simulated(config)) {
    fmt::print("  simulated {} of virtual time in {:.1f} s\n",
               clock_text(outcome.wall.time_since_epoch()),
               seconds(took));
    if (orchestrator::is_twin(config) && summary.reward.first)
      fmt::print("  {}\n", orchestrator::learning_text(summary));
    std::fputs(note.c_str(), stdout);
  }
}

std::string alarm_line(const orchestrator::Alarm& alarm) {
  return fmt::format("{:>8} alarm {}: {}",
                     clock_text(alarm.time.time_since_epoch()),
                     name_of(alarm.kind),
                     alarm.text);
}

/// Runs the pipeline with recorder, view and watch files. Returns how it ended.
Result<orchestrator::RunOutcome> start_run(const orchestrator::RunPlan& plan,
                                           const RunOptions& options,
                                           orchestrator::RunSignals& signals) {
  const orchestrator::PipelineConfig& config = plan.pipeline.config;
  const orchestrator::RunDir run_dir(plan.run_dir);
  const RealClock clock;
  TEMPER_TRY(const Log log, Log::to_file(clock, run_dir.log_of("orchestrator")));
  TEMPER_TRY(
      const auto recorder,
      orchestrator::RunRecorder::create(
          run_dir.root(), orchestrator::trace_form(config), orchestrator::card_kinds(config)));
  TerminalView view(view_options(plan, options.plain), clock);
  RunWatch watch(run_dir.root(), config, *recorder, clock, log);
  watch.set_on_alarm([&view, &options](const orchestrator::Alarm& alarm) {
    if (!options.json)
      view.print({alarm_line(alarm)});
  });
  bool show = false;  // records from before a resume are counted, but not shown
  orchestrator::RunObserver observer;
  observer.on_record = [&](const orchestrator::Record& record) {
    recorder->feed(record);
    watch.feed(record);
    if (show)
      view.feed(record, recorder->metrics().config());
  };
  observer.on_release = [&](const orchestrator::ReleasedGroup& group) { watch.on_release(group); };
  observer.on_tick = [&](const orchestrator::RunTick& tick) {
    if (show)
      view.refresh(recorder->metrics(), tick);
    watch.refresh(tick);
  };
  print_awaited_workers(plan);
  TEMPER_TRY(const auto driver, orchestrator::make_driver(plan, observer, log));
  show = !options.json;
  recorder->begin();
  watch.begin();
  const Time began = clock.now();
  signals.enter(orchestrator::RunSignals::Phase::Run);
  const orchestrator::RunOutcome outcome = driver();
  const Duration took = clock.now() - began;
  const auto summary = recorder->close(orchestrator::identity_of(config, outcome.log_hash));
  watch.close(outcome.log_hash);
  if (!summary) {
    if (outcome.finish.ok)
      return summary.error();
    print_message(summary.error().context);  // the caller prints why the run ended
    return outcome;
  }
  if (!options.json)
    view.close(recorder->metrics(), *summary);
  show_end(plan, options.json, *summary, outcome, took);
  return outcome;
}

/// Shows a finished run, which cannot be continued, without changing it.
int show_finished(const fs::path& run_dir, const RunOptions& options) {
  const auto run = orchestrator::read_run(run_dir);
  if (!run)
    return fail(run.error());
  if (options.json) {
    std::puts(to_json(run->summary, JsonStyle::Pretty).c_str());
  } else {
    fmt::print("{} has finished after {} steps; nothing was changed\n",
               run_dir.string(),
               run->summary.steps);
  }
  return 0;
}

/// Ends the process before its run has started to work.
[[noreturn]] void end_startup(int signal, const RunOptions& options) {
  print_message(
      fmt::format("stopped by SIG{} before the run {}; repeat the same command to start it again",
                  ::sigabbrev_np(signal),
                  options.resume ? "resumed" : "started"));
  std::_Exit(signal == SIGUSR1 ? kDone : kStopped);
}

/// `--dashboard CONFIG`: the word after the flag is no address, so it is the configuration.
void restore_config(RunOptions& options) {
  ServerOptions unused;
  if (options.config.empty() && options.dashboard && !options.dashboard->empty() &&
      !parse_address(*options.dashboard, unused))
    options.config = std::exchange(*options.dashboard, "");
}

}  // namespace

int run_pipeline(const RunOptions& options) {
  orchestrator::ignore_write_signals();
  orchestrator::RunSignals signals([&options](int signal) { end_startup(signal, options); });
  auto plan = make_plan(options);
  if (!plan)
    return fail(plan.error());
  const auto idle = orchestrator::has_nothing_to_do(*plan);
  if (!idle)
    return fail(idle.error());
  if (*idle)
    return show_finished(plan->run_dir, options);
  if (Status status = orchestrator::provide_descriptors(*plan); !status)
    return fail(status.error());
  std::unique_ptr<Server> page;
  if (options.dashboard) {
    auto started = serve({plan->run_dir}, *options.dashboard);
    if (!started)
      return fail(started.error());
    page = *std::move(started);
    print_message("page at " + page->url());
  }
  const auto lock = orchestrator::prepare_run(
      *plan,
      options.json ? orchestrator::PretrainLine::Quiet : orchestrator::PretrainLine::Shown,
      &signals);
  if (!lock)
    return fail(lock.error());
  const auto outcome = start_run(*plan, options, signals);
  if (!outcome)
    return fail(outcome.error());
  const orchestrator::RunEnd& finish = outcome->finish;
  if (finish.ok)
    return 0;
  print_message(finish.reason);
  return !finish.stopped ? kFailed : outcome->out_of_time ? kDone : kStopped;
}

Handler run_command(Flags& flags) {
  const auto options = std::make_shared<RunOptions>();
  flags.pipeline(options->config, options->sets, Need::Optional);
  flags.flag("--resume",
             options->resume,
             "Resume a run: the folder CONFIG, else run_dir, else the newest run of this name");
  flags.flag("--continue", options->go_on, "Resume the run in run_dir if it exists, else start it");
  flags.text(
      "--from",
      options->from,
      "Start from the weights of another run: RUN, RUN@STEP or RUN@best; or from the folder of an "
      "adapter in the format of peft");
  flags.flag("--plain", options->plain, "Print plain lines even on a terminal");
  flags.flag_or_text("--dashboard",
                     options->dashboard,
                     "Serve the web page of the run (default address: 127.0.0.1:7878)");
  flags.text("--faults",
             options->faults,
             "Fault plan: fail simulated cards, or kill local processes (docs/how-to/faults.md)");
  flags.json(options->json, "Print only summary.json, at the end");
  flags.choice(
      "--driver",
      {"rehearsal", "in-process"},
      [options](std::size_t chosen) {
        options->driver =
            chosen == 0 ? orchestrator::DriverKind::Rehearsal : orchestrator::DriverKind::InProcess;
      },
      "Simulated hardware: one process per actor (rehearsal), or one process");
  return [options] {
    restore_config(*options);
    return run_pipeline(*options);
  };
}

}  // namespace temper::cli
