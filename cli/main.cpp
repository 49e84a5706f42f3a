// temper: the command line. Each command is one function elsewhere; here are its flags.
#include "cli/ablation_command.hpp"
#include "cli/after_run.hpp"
#include "cli/calibrate_command.hpp"
#include "cli/check_command.hpp"
#include "cli/compare_command.hpp"
#include "cli/cost_command.hpp"
#include "cli/forecast_command.hpp"
#include "cli/ladder_command.hpp"
#include "cli/measure_command.hpp"
#include "cli/plan_command.hpp"
#include "cli/report_command.hpp"
#include "cli/run_command.hpp"
#include "cli/sweep_command.hpp"
#include "cli/tune_command.hpp"
#include "cli/validate_command.hpp"
#include "cli/view/terminal_view.hpp"
#include "cli/whatif_command.hpp"

#include <CLI/CLI.hpp>
#include <fcntl.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <iostream>
#include <map>
#include <string>

namespace {

using namespace temper::cli;

void add_config_options(CLI::App& command, std::string& config, std::vector<std::string>& sets) {
  command.add_option("config", config, "Pipeline YAML, e.g. configs/quickstart.yaml");
  command.add_option("--set", sets, "key=value; overrides the file, may be repeated")
      ->allow_extra_args(false);
}

/// A file opened in the place of a closed stdout would get what is meant for the terminal.
void open_standard_descriptors() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= STDERR_FILENO);
  if (fd > STDERR_FILENO)
    ::close(fd);
}

CLI::App* add_estimate(CLI::App& app, EstimateOptions& options) {
  auto* command = app.add_subcommand(
      "estimate", "Cost of one operation, step or phase: kind=... hardware=... key=value...");
  command->add_option("assignments", options.assignments, "kind=, hardware=, cards=, parameters");
  command->add_flag("--explain", options.explain, "Each term, with its equation and numbers");
  command->add_flag("--list", options.list, "The kinds and their parameters");
  command->add_flag("--json", options.json, "As one JSON object");
  return command;
}

CLI::App* add_plan(CLI::App& app, PlanOptions& options) {
  auto* command = app.add_subcommand(
      "plan", "The best layouts: of a pipeline, or task=train|rollout model=... hardware=...");
  command->add_option("words", options.words, "A pipeline YAML; or task=, model=, hardware=, ...");
  command->add_option("--set", options.sets, "key=value; overrides the pipeline, may be repeated")
      ->allow_extra_args(false);
  command->add_option("--out", options.out, "Write a pipeline with the best layouts as YAML");
  command->add_option("--svg", options.svg, "Write time against memory, or tokens/s against time");
  command->add_flag("--list", options.list, "The words of each task");
  command->add_flag("--json", options.json, "As one JSON object");
  return command;
}

struct CalibrateArguments {
  bool local = false;
  CalibrateOptions fit;
  CalibrateLocalOptions here;
};

CLI::App* add_calibrate(CLI::App& app, CalibrateArguments& arguments) {
  CalibrateOptions& options = arguments.fit;
  auto* command = app.add_subcommand(
      "calibrate", "Fit the constants of a hardware to measurements and store them");
  command->add_flag(
      "--local", arguments.local, "Measure this machine with the engines of a pipeline YAML");
  command->add_option("--set", arguments.here.sets, "--local: key=value; may be repeated")
      ->allow_extra_args(false);
  command->add_option("files", options.files, "Measurements, CSV; --local: the pipeline YAML")
      ->required();
  command->add_option("--hardware", options.hardware, "Name; default: that of the rows");
  command->add_option("--only", options.only, "A constant to fit; default: all; repeatable")
      ->allow_extra_args(false);
  command->add_option("--id", options.ids, "A row to use; default: operators and steps; repeatable")
      ->allow_extra_args(false);
  command->add_option("--out",
                      options.out,
                      "YAML; default: configs/calibration/NAME.yaml; --local: runs/local.yaml");
  command->add_flag("--leave-one-out", options.leave_one_out, "Also without each model in turn");
  command->add_option("--report-tables", options.report_tables, "Where --leave-one-out goes, YAML");
  command->add_flag("--dry-run", options.dry_run, "Print the fit, write nothing");
  command->add_flag("--json", options.json, "As one JSON object");
  return command;
}

int calibrate_either(CalibrateArguments& arguments) {
  if (!arguments.local)
    return run_calibrate(arguments.fit, std::cout, std::cerr);
  arguments.here.config = arguments.fit.files.front();
  if (!arguments.fit.out.empty())
    arguments.here.out = arguments.fit.out;
  arguments.here.json = arguments.fit.json;
  return run_calibrate_local(arguments.here, std::cout, std::cerr);
}

CLI::App* add_validate(CLI::App& app, ValidateOptions& options) {
  auto* command = app.add_subcommand(
      "validate", "Predicted beside measured: error per row and per kind of the given CSV files");
  command->add_option("files", options.files, "Measurements or publications, CSV")->required();
  command->add_option("--max-mape", options.max_mape, "kind=limit; exit 1 above it; repeatable")
      ->allow_extra_args(false);
  command->add_option("--hardware-file", options.hardware_file, "Replaces the shipped one");
  command->add_flag("--rows,!--no-rows", options.rows, "Print each row (default)");
  command->add_flag("--convert", options.convert, "Turn publications into rows, and stop");
  command->add_option("--out", options.out, "Folder for --convert; default: stdout");
  command->add_option("--report", options.report, "Write the report as Markdown");
  command->add_option("--notes", options.notes, "Notes of the report, YAML");
  command->add_flag("--allow-failures", options.allow_failures, "Accept rows without prediction");
  command->add_flag("--json", options.json, "As one JSON object");
  return command;
}

CLI::App* add_ladder(CLI::App& app, LadderCommand& options) {
  auto* command = app.add_subcommand(
      "ladder", "Every way to place and pace the roles on the same simulated cards, each tuned");
  add_config_options(*command, options.config, options.sets);
  command->get_option("config")->required();
  command->add_option("--lengths", options.lengths, "Responses, mean:cap:p99/median; repeatable")
      ->allow_extra_args(false);
  command->add_option("--rung", options.rungs, "A rung by its id; default: all; repeatable")
      ->allow_extra_args(false);
  command->add_option("--effort", options.effort, "Runs to tune each rung and distribution")
      ->capture_default_str();
  command->add_option("--steps", options.steps, "Steady updates that figures are of")
      ->capture_default_str();
  command->add_option("--threads", options.threads, "Default: one per core");
  command->add_flag("--quick", options.quick, "One distribution, a little effort");
  command->add_option("--out", options.out, "Folder for ladder.csv and the winners' YAML");
  command->add_flag("--json", options.json, "As JSON, one object per rung and distribution");
  return command;
}

CLI::App* add_tune(CLI::App& app, TuneCommand& options) {
  auto* command = app.add_subcommand(
      "tune", "The best placement, layouts, engines and staleness bound of a pipeline");
  add_config_options(*command, options.config, options.sets);
  command->get_option("config")->required();
  command->add_option("--modes", options.modes, "Placements to try, by commas; default: all")
      ->delimiter(',');
  command->add_option("--eta", options.etas, "Staleness bounds to try, by commas")
      ->delimiter(',')
      ->capture_default_str();
  command->add_option("--vary", options.vary, "key=v1,v2: one more thing to try; repeatable")
      ->allow_extra_args(false);
  command
      ->add_option("--objective",
                   options.objective,
                   "throughput; steps (least time of all updates); reward (needs --curve)")
      ->capture_default_str();
  command->add_option(
      "--curve", options.curve, "compare.csv: how many updates a reward took at each staleness");
  command->add_option("--max-staleness", options.max_staleness, "No plan may train older groups")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--min-tokens-per-s", options.min_tokens_per_s, "No plan may train fewer")
      ->check(CLI::NonNegativeNumber);
  command->add_option("--max-memory", options.max_memory, "Of a device, e.g. 56GB");
  command
      ->add_option("--calibration",
                   options.calibration,
                   "Local hardware: what `temper calibrate --local` measured")
      ->capture_default_str();
  command->add_option("--effort", options.effort, "Sampled runs")->capture_default_str();
  command->add_option("--steps", options.steps, "Steady updates of the last runs")
      ->capture_default_str();
  command->add_option("--threads", options.threads, "Runs at once; default: one per core");
  command->add_option(
      "--out",
      options.out,
      "Folder for tuned.yaml, tune.csv, tune.svg, tune.md; default: runs/tune-TIME");
  command->add_flag("--json", options.json, "Rows of the CSV as JSON");
  return command;
}

CLI::App* add_sweep(CLI::App& app, SweepCommand& options) {
  auto* command =
      app.add_subcommand("sweep", "A grid of simulated configurations: table, CSV, plot");
  add_config_options(*command, options.config, options.sets);
  command->get_option("config")->required();
  command->add_option("--over", options.over, "key=v,v or key+key=v/v,v/v; a row each; repeatable")
      ->allow_extra_args(false);
  command->add_option("--any", options.any, "The same; the best value is kept; repeatable")
      ->allow_extra_args(false);
  command->add_flag(
      "--fit", options.fit, "Choose the trainer's layout, rollout.ep and kv_share for each");
  command->add_option("--steps", options.steps, "Steady updates; default: steps as configured");
  command->add_option("--threads", options.threads, "Default: one per core");
  command->add_option("--csv", options.csv, "Write the table as CSV");
  command->add_option("--plot", options.plot, "Write tokens/s and utilisation as SVG");
  command->add_option("--title", options.title, "Of the plot");
  command->add_option("--x-label", options.x_label, "Of the plot; default: the first key");
  return command;
}

CLI::App* add_predict(CLI::App& app, PredictCommand& options) {
  auto* command = app.add_subcommand(
      "predict", "What local runs would do, from a calibration of this machine; --check runs them");
  add_config_options(*command, options.config, options.sets);
  command->get_option("config")->required();
  command->add_option("--calibration", options.calibration, "Of `temper calibrate --local`")
      ->capture_default_str();
  command->add_option("--over", options.over, "key=v,v or key+key=v/v,v/v; repeatable")
      ->allow_extra_args(false);
  command->add_option("--check", options.check, "Then run each so many times, and compare");
  command->add_option("--threads", options.threads, "Default: one per core");
  command->add_option("--out", options.out, "Folder for the table and the runs");
  command->add_flag("--json", options.json, "As one JSON object");
  return command;
}

CLI::App* add_whatif(CLI::App& app, WhatifCommand& options) {
  auto* command =
      app.add_subcommand("whatif", "A recorded run, decided again under other settings");
  command->add_option("run", options.run, "Folder of the run")->required();
  command->add_option("--set", options.sets, "key=value; may be repeated")->allow_extra_args(false);
  command->add_option("--calibration",
                      options.calibration,
                      "Local runs: the shape of engine times, and other numbers of threads");
  command->add_flag("--json", options.json, "As one JSON object");
  return command;
}

CLI::App* add_compare(CLI::App& app, CompareCommand& options) {
  auto* command = app.add_subcommand("compare", "Staleness policies beside each other on one run");
  add_config_options(*command, options.config, options.sets);
  command->get_option("config")->required();
  const auto list = [&](const char* flag, std::vector<std::string>& to, const char* help) {
    command->add_option(flag, to, help)->delimiter(',')->allow_extra_args(false);
  };
  list("--policies", options.policies, "exact,sync,...; default: all");
  list("--eta", options.etas, "Bounds of each policy, e.g. 1,2,4 (default)");
  list("--seeds", options.seeds, "Every run with each, e.g. 1,2,3; default: as configured");
  command->add_option("--vary", options.vary, "key=v,v; every run with each value; repeatable")
      ->allow_extra_args(false);
  command->add_option("--steps", options.steps, "Updates of each run; default: as configured");
  command->add_option("--target-reward", options.target_reward, "How soon is it reached?")
      ->capture_default_str();
  command->add_option("--threads", options.threads, "Of counted runs; default: one per core");
  command->add_option("--out", options.out, "Folder for tables, plots and the runs themselves");
  command->add_flag("--resume", options.resume, "Go on in --out; whole runs are not run again");
  command->add_flag("--json", options.json, "As JSON, one object per run");
  return command;
}

int run_command_line(int argc, char** argv) {
  CLI::App app("RL post-training from one YAML file.", "temper");
  app.require_subcommand(1);
  app.fallthrough(false);

  RunOptions run;
  auto* run_command = app.add_subcommand(
      "run", "Launch a pipeline; Ctrl-C finishes the update under way, a second one stops");
  add_config_options(*run_command, run.config, run.sets);
  run_command->add_flag(
      "--resume", run.resume, "Go on with the run in run_dir (or in CONFIG, if a folder)");
  run_command->add_flag("--plain", run.plain, "Plain lines even on a terminal");
  run_command->add_flag("--json", run.json, "Print summary.json at the end, nothing else");
  run_command
      ->add_option(
          "--driver", run.driver, "Simulated hardware: rehearsal (processes) or in-process")
      ->transform(CLI::CheckedTransformer(std::map<std::string, temper::orchestrator::DriverKind>{
          {"rehearsal", temper::orchestrator::DriverKind::Rehearsal},
          {"in-process", temper::orchestrator::DriverKind::InProcess}}));

  CheckOptions check;
  bool check_json = false;
  auto* check_command =
      app.add_subcommand("check", "Validate a configuration; print it resolved, and the card map");
  add_config_options(*check_command, check.config, check.sets);
  check_command->add_flag("--json", check_json, "As one JSON object");

  AfterRunOptions after;
  const auto add_after = [&](const char* name, const char* help) {
    auto* command = app.add_subcommand(name, help);
    command->add_option("run", after.run_dir, "Folder of the run")->required();
    command->add_flag("--json", after.json, "As one JSON object");
    return command;
  };
  auto* replay = add_after(
      "replay", "Feed the recorded events to a fresh scheduler; every command must come out");
  auto* audit =
      add_after("audit", "Re-check bound, conservation and times of a run, with code of its own");
  auto* report = add_after("report", "Summary and tables of a run");
  auto* events = add_after("events", "Print events.log, one JSON object per line");

  EstimateOptions estimate;
  auto* estimate_command = add_estimate(app, estimate);
  PlanOptions plan;
  auto* plan_command = add_plan(app, plan);
  ValidateOptions validate;
  auto* validate_command = add_validate(app, validate);
  CalibrateArguments calibrate;
  auto* calibrate_command = add_calibrate(app, calibrate);

  AblationOptions ablation;
  auto* ablation_command = app.add_subcommand(
      "ablation", "Each mechanism of MoE training off and on, beside its published gain");
  ablation_command->add_option(
      "--expert-loads", ablation.expert_loads, "CSV, a row per step, a column per expert");
  ablation_command->add_option(
      "--samples", ablation.samples, "CSV with columns sample, length: a row per document");
  ablation_command->add_flag("--markdown", ablation.markdown, "As docs/moe_mechanisms.md has it");
  ablation_command->add_flag("--json", ablation.json, "As one JSON array");

  LadderCommand ladder;
  auto* ladder_command = add_ladder(app, ladder);

  TuneCommand tune;
  auto* tune_command = add_tune(app, tune);
  SweepCommand sweep;
  auto* sweep_command = add_sweep(app, sweep);

  PredictCommand predict;
  auto* predict_command = add_predict(app, predict);

  WhatifCommand whatif;
  auto* whatif_command = add_whatif(app, whatif);

  CompareCommand compare;
  auto* compare_command = add_compare(app, compare);

  CLI11_PARSE(app, argc, argv);
  if (*run_command)
    return run_pipeline(run);
  if (*check_command) {
    check.format = check_json ? CheckOptions::Format::Json : CheckOptions::Format::Text;
    return run_check(check, std::cout, std::cerr);
  }
  if (*estimate_command)
    return run_estimate(estimate, std::cout, std::cerr);
  if (*plan_command)
    return run_plan(plan, std::cout, std::cerr);
  if (*validate_command)
    return run_validate(validate, std::cout, std::cerr);
  if (*calibrate_command)
    return calibrate_either(calibrate);
  if (*ablation_command)
    return run_ablation(ablation, std::cout, std::cerr);
  if (*ladder_command)
    return run_ladder(ladder, std::cout, std::cerr);
  if (*tune_command)
    return run_tune(tune, std::cout, std::cerr);
  if (*sweep_command)
    return run_sweep_command(sweep, std::cout, std::cerr);
  if (*predict_command)
    return run_predict(predict, std::cout, std::cerr);
  if (*whatif_command)
    return run_whatif(whatif, std::cout, std::cerr);
  if (*compare_command)
    return run_compare(compare, std::cout, std::cerr);
  if (*replay)
    return run_replay(after);
  if (*audit)
    return run_audit(after);
  if (*events)
    return run_events(after);
  if (*report) {
    const auto format = after.json ? ReportOptions::Format::Json : ReportOptions::Format::Text;
    const ViewOptions view = detect_view(STDOUT_FILENO, Wish::Auto);
    return run_report(
        {after.run_dir, format, view_width(view), view.colours}, std::cout, std::cerr);
  }
  return 1;
}

}  // namespace

int main(int argc, char** argv) {
  open_standard_descriptors();
  try {
    return run_command_line(argc, argv);
  } catch (const std::exception& error) {  // A library refused: no descriptors, no memory.
    std::fputs((std::string("temper: ") + error.what() + "\n").c_str(), stderr);
    return 1;
  }
}
