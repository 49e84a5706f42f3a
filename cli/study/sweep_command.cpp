#include "cli/study/sweep_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/study/constants_note.hpp"
#include "cli/watch/run_watch.hpp"
#include "core/clock.hpp"
#include "core/files.hpp"
#include "core/parallel.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/run/virtual/stop_signals.hpp"
#include "orchestrator/start/start_run.hpp"
#include "study/sweep/sweep_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <optional>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

/// A file of --preset: values of the flags of the same names.
struct SweepPreset {
  std::vector<std::string> over, any, set;
};
void describe(auto& v, SweepPreset& p) {
  v.field(1, "over", p.over);
  v.field(2, "any", p.any);
  v.field(3, "set", p.set);
}

/// Puts the values of the preset before those of the flags.
Status apply_preset(SweepOptions& command) {
  if (command.preset.empty())
    return {};
  TEMPER_TRY(const std::string text, read_file(command.preset));
  const auto read = read_yaml<SweepPreset>(command.preset, text, {});
  if (!read.issues.empty())
    return invalid_input(render(locate(read.document, read.issues)));
  const auto put = [](const std::vector<std::string>& from, std::vector<std::string>& to) {
    to.insert(to.begin(), from.begin(), from.end());
  };
  put(read.value.over, command.over);
  put(read.value.any, command.any);
  put(read.value.set, command.sets);
  return {};
}

Result<study::SweepOptions> to_options(const SweepOptions& command,
                                       const orchestrator::ConfigFile& config) {
  study::SweepOptions options;
  options.config = config;
  options.sets = command.sets;
  TEMPER_TRY(options.over, study::parse_axes("--over", command.over));
  TEMPER_TRY(options.any, study::parse_axes("--any", command.any));
  TEMPER_TRY(options.seeds, study::parse_seeds(command.seeds));
  if (command.fit)
    options.layouts = study::SweepOptions::Layouts::Fitted;
  options.steps = command.steps;
  options.steady_steps = command.steady;
  options.target_reward = command.target_reward;
  options.simulate.threads = worker_threads(command.threads);
  options.out = command.out;
  if (command.resume)
    options.folders = study::SweepOptions::Folders::Resume;
  const auto existing =
      command.resume ? orchestrator::ExistingRun::Resume : orchestrator::ExistingRun::Refuse;
  options.start_run = [existing](const auto& one, const auto& on_update) {
    return start_run_quietly(one, existing, on_update, follow_run);
  };
  return options;
}

/// Checks that this machine can do the real runs, and chooses their folder. Returns whether there
/// are any.
Result<bool> prepare_real_runs(study::SweepOptions& options,
                               const std::vector<study::SweepJob>& jobs,
                               std::ostream& err) {
  std::string name;  // of the first real run; empty: there is none
  for (const study::SweepJob& job : jobs) {
    if (job.run.end == study::SweepEnd::NotRun || !study::is_real_run(job.config))
      continue;
    const auto broken = orchestrator::rules_of_this_machine(job.config);
    if (!broken.empty()) {
      return invalid_input(
          fmt::format("{}: {}", broken.front().keys.front(), broken.front().message));
    }
    if (name.empty())
      name = job.config.name;
  }
  if (options.folders == study::SweepOptions::Folders::Resume) {
    if (name.empty()) {
      return invalid_input(
          "--resume: expected hardware: local; simulated runs leave no folders to resume, so start "
          "the sweep again without --resume");
    }
    if (options.out.empty())
      return invalid_input("--resume needs --out FOLDER, the folder of the sweep to resume");
  }
  if (!name.empty() && options.out.empty()) {
    options.out = fmt::format("runs/sweep-{}-{}", name, calendar_stamp());
    err << fmt::format("writing runs to {}\n", options.out.string()) << std::flush;
  }
  return !name.empty();
}

void report_progress(study::SweepOptions& options, std::ostream& err) {
  options.simulate.on_progress = [&err](std::size_t done, std::size_t of) {
    if (done * 10 / of != (done - 1) * 10 / of)
      err << fmt::format("{} of {}\n", done, of) << std::flush;
  };
  const bool tty = isatty(STDERR_FILENO) != 0;
  options.on_line = [&err, tty](study::SweepOptions::Line line, const std::string& text) {
    const bool lasting = line == study::SweepOptions::Line::Lasting;
    if (lasting || tty)
      err << (tty ? "\r\x1b[K" : "") << text << (lasting ? "\n" : "") << std::flush;
  };
}

Status write_files(const study::Sweep& done, const fs::path& folder, const std::string& name) {
  using Axis = study::RewardAxis;
  TEMPER_TRY_STATUS(write_file_atomically(folder / "sweep.csv", study::sweep_csv(done)));
  TEMPER_TRY_STATUS(write_file_atomically(
      folder / "sweep.md", fmt::format("# Sweep of {}\n\n{}", name, study::sweep_text(done))));
  const std::pair<const char*, std::optional<std::string>> plots[] = {
      {"sweep.svg", study::sweep_svg(done, name)},
      {"reward_steps.svg", study::rewards_svg(done, Axis::Steps, name + ": reward over steps")},
      {"reward_time.svg", study::rewards_svg(done, Axis::Time, name + ": reward over time")}};
  for (const auto& [file, plot] : plots) {
    if (plot)
      TEMPER_TRY_STATUS(write_file_atomically(folder / file, *plot));
  }
  return {};
}

/// Adds the values of the preset to `command`, and sets `folder` to the folder of the files.
Result<study::Sweep> sweep(SweepOptions& command,
                           const orchestrator::ConfigFile& config,
                           std::ostream& err,
                           std::string& folder) {
  TEMPER_TRY_STATUS(apply_preset(command));
  TEMPER_TRY(study::SweepOptions options, to_options(command, config));
  TEMPER_TRY(auto jobs, study::sweep_jobs(options));
  TEMPER_TRY(const bool has_real_runs, prepare_real_runs(options, jobs, err));
  report_progress(options, err);
  folder = options.out.string();
  if (!folder.empty())
    TEMPER_TRY_STATUS(make_folder(folder));
  std::optional<orchestrator::StopSignals> signals;
  if (!has_real_runs) {  // They have their own.
    signals.emplace();
    options.simulate.stop = [&] { return signals->count() > 0; };
  }
  TEMPER_TRY(study::Sweep done, study::run_sweep(options, std::move(jobs)));
  if (!options.out.empty())
    TEMPER_TRY_STATUS(write_files(done, options.out, fs::path(command.config).stem().string()));
  return done;
}

/// Of runs, which --resume continues.
bool has_folders(const study::Sweep& sweep) {
  return std::ranges::any_of(sweep.cells, [](const study::SweepCell& cell) {
    return std::ranges::any_of(cell.runs,
                               [](const study::SweepRun& run) { return !run.folder.empty(); });
  });
}

/// Failed runs, and all of them.
std::pair<std::size_t, std::size_t> count_failed(const study::Sweep& sweep) {
  std::size_t failed = 0, all = 0;
  for (const study::SweepCell& cell : sweep.cells) {
    all += cell.runs.size();
    failed += static_cast<std::size_t>(
        std::ranges::count(cell.runs, study::SweepEnd::Failed, &study::SweepRun::end));
  }
  return {failed, all};
}

}  // namespace

int run_sweep(SweepOptions command, std::ostream& out, std::ostream& err) {
  orchestrator::ignore_write_signals();
  const auto config = orchestrator::ConfigFile::read(command.config);
  if (!config)
    return fail(config.error(), err);
  std::string folder;
  const auto done = sweep(command, *config, err, folder);
  if (!done)
    return fail(done.error(), err);
  if (command.json)
    out << study::sweep_json(*done) << '\n';
  else
    out << study::sweep_text(*done);
  beside(command.json, out, err) << constants_note(config->load_valid(command.sets));
  if (done->end == study::Sweep::End::Stopped) {
    err << (has_folders(*done)
                ? fmt::format(
                      "temper: stopped on request; to continue, add --resume --out {} to the "
                      "same command\n",
                      folder)
                : "temper: stopped on request; the table has the runs that had ended\n");
    return 130;
  }
  const auto [failed, all] = count_failed(*done);
  if (failed == 0)
    return 0;
  err << fmt::format("temper: {} of {} runs failed; the table has the reasons\n", failed, all);
  return kFailed;
}

Handler sweep_command(Flags& flags) {
  const auto options = std::make_shared<SweepOptions>();
  flags.pipeline(options->config, options->sets);
  flags.repeated(
      "--over", options->over, "Values for one row each: key=v,v or key+key=v/v,v/v (repeatable)");
  flags.repeated(
      "--any", options->any, "As --over, but each row shows only the best value (repeatable)");
  flags.text("--preset", options->preset, "YAML file with values of over, any and set");
  flags.list("--seeds",
             options->seeds,
             "Seeds for each row, e.g. 1,2,3; rows are means (default: the configured seed)");
  flags.flag("--fit", options->fit, "Choose trainer layout, rollout.ep and kv_share for each row");
  flags.count("--steps", options->steps, "Steps per run (default: steps of the configuration)");
  flags.count("--steady",
              options->steady,
              "Measure N steps in the steady state, without the start and end of a run");
  flags.number(
      "--target-reward", options->target_reward, "Also report how soon this reward is reached");
  flags.count("--threads", options->threads, "Simulated runs in parallel (default: one per core)");
  flags.text("--out", options->out, "Folder for sweep.md, sweep.csv, plots and run folders");
  flags.flag("--resume",
             options->resume,
             "Continue the sweep in --out: finished runs are kept, others resumed");
  flags.json(options->json, "Print a JSON list with one object per run");
  return [options] { return run_sweep(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
