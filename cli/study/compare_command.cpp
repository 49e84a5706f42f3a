#include "cli/study/compare_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/study/constants_note.hpp"
#include "core/clock.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/parallel.hpp"
#include "core/text/table.hpp"
#include "orchestrator/start/start_run.hpp"
#include "study/compare/compare_report.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

Result<study::CompareOptions> to_options(const CompareOptions& command) {
  study::CompareOptions options;
  options.config = command.config;
  options.sets = command.sets;
  TEMPER_TRY(options.policies, study::parse_policies(command.policies));
  TEMPER_TRY(options.etas, study::parse_etas(command.etas));
  TEMPER_TRY(options.seeds, study::parse_seeds(command.seeds));
  for (const std::string& text : command.vary) {
    TEMPER_TRY(study::SweepAxis axis, study::parse_axis("--vary", text));
    options.vary.push_back(std::move(axis));
  }
  options.steps = command.steps;
  options.target_reward = command.target_reward;
  options.simulate.threads = worker_threads(command.threads);
  options.out = command.out;
  if (command.resume)
    options.folders = study::CompareOptions::Folders::Resume;
  options.start_run = orchestrator::start_run_quietly;
  return options;
}

/// Checks the machine before any run starts.
Status check_machine(const std::vector<study::CompareJob>& jobs) {
  for (const study::CompareJob& job : jobs) {
    if (job.row.end == study::CompareEnd::NotRun || !study::is_real_run(job.config))
      continue;
    const auto broken = orchestrator::rules_of_this_machine(job.config);
    if (!broken.empty()) {
      return invalid_input(
          fmt::format("{}: {}", broken.front().keys.front(), broken.front().message));
    }
  }
  return {};
}

/// Checks that real runs are possible on this machine and chooses their folder.
Status check_and_choose_out(study::CompareOptions& options, std::ostream& err) {
  TEMPER_TRY(const auto jobs, study::compare_jobs(options));
  TEMPER_TRY_STATUS(check_machine(jobs));
  const auto real = std::ranges::find_if(
      jobs, [](const study::CompareJob& job) { return study::is_real_run(job.config); });
  if (options.folders == study::CompareOptions::Folders::Resume) {
    if (real == jobs.end()) {
      return invalid_input(
          "--resume: expected hardware: local; simulated runs leave no folders to resume, so start "
          "the comparison again without --resume");
    }
    if (options.out.empty())
      return invalid_input("--resume needs --out FOLDER, the folder of the comparison to resume");
  }
  if (real == jobs.end() || !options.out.empty())
    return {};
  options.out = fmt::format("runs/compare-{}-{}", real->config.name, calendar_stamp());
  err << fmt::format("writing runs to {}\n", options.out.string()) << std::flush;
  return {};
}

void report_progress(study::CompareOptions& options, std::ostream& err) {
  options.simulate.on_progress = [&err](std::size_t done, std::size_t of) {
    err << fmt::format("{} of {}\n", done, of) << std::flush;
  };
  const bool tty = isatty(STDERR_FILENO) != 0;
  options.on_line = [&err, tty](study::CompareOptions::Line line, const std::string& text) {
    const bool lasting = line == study::CompareOptions::Line::Lasting;
    if (lasting || tty)
      err << (tty ? "\r\x1b[K" : "") << text << (lasting ? "\n" : "") << std::flush;
  };
}

Status write_files(const study::PolicyComparison& done,
                   const fs::path& folder,
                   const std::string& name) {
  TEMPER_TRY_STATUS(make_folder(folder));
  const std::span<const study::CompareRow> rows(done.rows);
  const std::string title = name + ": staleness rules";
  TEMPER_TRY_STATUS(write_file_atomically(folder / "compare.csv", to_csv(rows)));
  TEMPER_TRY_STATUS(write_file_atomically(
      folder / "compare.md", fmt::format("# {}\n\n{}", title, study::compare_text(done))));
  TEMPER_TRY_STATUS(write_file_atomically(folder / "compare.svg", study::compare_svg(done, title)));
  if (const auto plot =
          study::rewards_svg(done, study::RewardAxis::Steps, name + ": reward over steps"))
    TEMPER_TRY_STATUS(write_file_atomically(folder / "reward_steps.svg", *plot));
  if (const auto plot =
          study::rewards_svg(done, study::RewardAxis::Time, name + ": reward over time"))
    TEMPER_TRY_STATUS(write_file_atomically(folder / "reward_time.svg", *plot));
  return {};
}

/// Sets `folder` to the folder of the files.
Result<study::PolicyComparison> compare(const CompareOptions& command,
                                        std::ostream& err,
                                        std::string& folder) {
  TEMPER_TRY(study::CompareOptions options, to_options(command));
  TEMPER_TRY_STATUS(check_and_choose_out(options, err));
  report_progress(options, err);
  folder = options.out.string();
  TEMPER_TRY(study::PolicyComparison done, compare(options));
  if (!options.out.empty())
    TEMPER_TRY_STATUS(write_files(done, options.out, fs::path(command.config).stem().string()));
  return done;
}

}  // namespace

int run_compare(const CompareOptions& command, std::ostream& out, std::ostream& err) {
  orchestrator::ignore_write_signals();
  std::string folder;
  const auto done = compare(command, err, folder);
  if (!done) {
    err << "temper: " << done.error().context << '\n';
    return exit_code_of(done.error());
  }
  if (command.json)
    out << to_json(done->rows, JsonStyle::Pretty) << '\n';
  else
    out << study::compare_text(*done);
  beside(command.json, out, err) << constants_note(command.config, command.sets);
  if (done->end == study::PolicyComparison::End::Stopped) {
    err << fmt::format(
        "temper: stopped on request; to continue, add --resume --out {} to the same command\n",
        folder);
    return 130;
  }
  const auto failed =
      std::ranges::count(done->rows, study::CompareEnd::Failed, &study::CompareRow::end);
  if (failed == 0)
    return 0;
  err << fmt::format(
      "temper: {} of {} runs failed; the table has the reasons\n", failed, done->rows.size());
  return kFailed;
}

Handler compare_command(Flags& flags) {
  const auto options = std::make_shared<CompareOptions>();
  flags.pipeline(options->config, options->sets);
  flags.list(
      "--policies", options->policies, "Staleness rules to compare: exact,sync,... (default: all)");
  flags.list("--eta", options->etas, "Staleness bounds to try with each rule");
  flags.list(
      "--seeds", options->seeds, "Seeds for each run, e.g. 1,2,3 (default: the configured seed)");
  flags.repeated("--vary", options->vary, "key=v,v: repeat every run with each value (repeatable)");
  flags.number("--steps", options->steps, "Steps per run (default: steps of the configuration)");
  flags.number(
      "--target-reward", options->target_reward, "Also report how soon this reward is reached");
  flags.number("--threads", options->threads, "Simulated runs in parallel (default: one per core)");
  flags.text("--out", options->out, "Folder for tables, plots and run folders");
  flags.flag("--resume", options->resume, "Resume the comparison in --out; finished runs are kept");
  flags.json(options->json, "Print a JSON list with one object per run");
  return [options] { return run_compare(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
