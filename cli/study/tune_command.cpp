#include "cli/study/tune_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/study/constants_note.hpp"
#include "core/clock.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/parallel.hpp"
#include "core/parse_name.hpp"
#include "core/progress_line.hpp"
#include "core/text/numbers.hpp"
#include "core/text/table.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/run/virtual/stop_signals.hpp"
#include "orchestrator/watch/predictions.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "study/search/tune_objective.hpp"
#include "study/search/tune_report.hpp"
#include "study/simulate/axes.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

/// Parses "tp=2,4", an axis of study/search/space.hpp.
Result<study::Space::Axis> parse_limit(std::string_view text) {
  TEMPER_TRY(const study::SweepAxis axis, study::parse_axis("--only", text));
  study::Space::Axis limit{axis.name(), {}};
  for (std::size_t i = 0; i < axis.values.size(); ++i) {
    const std::string word = axis.text(i);
    const auto value = parse_number<std::int64_t>(word);
    if (!value)
      return invalid_input(fmt::format("--only {}: expected an integer, found `{}`", text, word));
    limit.values.push_back(*value);
  }
  return limit;
}

/// The objective and its curve. Default: time to a reward, if there is a curve of this task and no
/// other batch size is tried, since the curve does not cover it. Else throughput; the curve then
/// only estimates the cost of staleness.
Status choose_objective(const TuneOptions& command, study::TuneOptions& options) {
  const fs::path folder = sim_hw::Catalog::shipped().configs() / "curves";
  TEMPER_TRY(const orchestrator::PipelineConfig config, options.config.load_valid(options.sets));
  const bool other_batch = std::ranges::any_of(options.vary, [](const study::SweepAxis& axis) {
    return std::ranges::any_of(
        axis.keys, [](const std::string& key) { return key.starts_with("algorithm."); });
  });
  auto own = study::curve_of(config, folder);
  if (!command.curve.empty())
    own = command.curve;
  auto file = own;
  if (const auto any = study::curves_in(folder); !file && !any.empty())
    file = any.front();
  if (file) {
    TEMPER_TRY(options.curve, study::read_reward_curve(*file));
  }
  if (command.objective.empty()) {
    options.objective =
        own && !other_batch ? study::TuneObjective::Reward : study::TuneObjective::Throughput;
    return {};
  }
  TEMPER_TRY(options.objective, parse_name<study::TuneObjective>("--objective", command.objective));
  if (options.objective == study::TuneObjective::Reward && !own)
    options.curve.reset();  // the curve is of another task: used only on request
  return {};
}

Result<study::TuneOptions> to_options(const TuneOptions& command) {
  study::TuneOptions options;
  TEMPER_TRY(options.config, orchestrator::ConfigFile::read(command.config));
  options.sets = command.sets;
  for (const std::string& word : command.modes) {
    TEMPER_TRY(const orchestrator::PlacementMode mode,
               parse_name<orchestrator::PlacementMode>("--modes", word));
    options.modes.push_back(mode);
  }
  TEMPER_TRY(options.etas, study::parse_etas(command.etas));
  for (const std::string& text : command.vary) {
    TEMPER_TRY(study::SweepAxis axis, study::parse_axis("--vary", text));
    options.vary.push_back(std::move(axis));
  }
  for (const std::string& text : command.only) {
    TEMPER_TRY(study::Space::Axis limit, parse_limit(text));
    options.only.push_back(std::move(limit));
  }
  TEMPER_TRY_STATUS(choose_objective(command, options));
  if (!command.lengths.empty()) {
    TEMPER_TRY(options.lengths, study::read_run_record(command.lengths));
  }
  options.constraints.max_staleness = command.max_staleness;
  options.constraints.min_tokens_per_s = command.min_tokens_per_s;
  if (!command.max_memory.empty()) {
    auto bytes = parse_bytes(command.max_memory);
    if (!bytes)
      return std::move(bytes).error().within("--max-memory");
    if (*bytes <= Bytes(0))
      return invalid_input("--max-memory: expected more than 0, found " + command.max_memory);
    options.constraints.max_memory = *bytes;
  }
  if (fs::exists(command.calibration)) {
    TEMPER_TRY(options.calibration, study::load_machine_model(command.calibration));
  }
  if (command.keep && study::counts_costs(options.objective)) {
    return invalid_input(
        "--keep: expected an objective of time, since the page shows gains in tokens/s, found "
        "--objective price or energy; leave out one of the two");
  }
  if (command.effort < 1 || command.steps < 1)
    return invalid_input("--effort and --steps: expected at least 1, found 0");
  options.runs = command.effort;
  options.final_updates = command.steps;
  options.threads = worker_threads(command.threads);
  return options;
}

Status write_files(const study::TuneResult& tuned, const fs::path& folder) {
  const std::vector<study::TuneRow> rows = study::tune_rows(tuned);
  TEMPER_TRY_STATUS(
      write_file_atomically(folder / "tune.csv", to_csv(std::span<const study::TuneRow>(rows))));
  TEMPER_TRY_STATUS(write_file_atomically(folder / "tune.svg", study::tune_svg(tuned)));
  TEMPER_TRY_STATUS(write_file_atomically(folder / "tune.md", study::tune_text(tuned)));
  return write_file_atomically(folder / "tuned.yaml", to_yaml(tuned.tried[tuned.best].config));
}

/// The simulated gain in tokens/s of the best configuration over the given one.
Status keep(const study::TuneResult& tuned, const fs::path& run) {
  const auto given = tuned.tried[tuned.given].row.tokens_per_s;
  const auto best = tuned.tried[tuned.best].row.tokens_per_s;
  if (!given || !best)
    return invalid_input(
        "--keep: the given configuration was not simulated in full, so there is no gain to store");
  return orchestrator::keep_prediction(
      run, {std::string(orchestrator::kTunedChange), *best / *given - 1, 0});
}

std::string bar(std::size_t done, std::size_t of) {
  constexpr std::size_t kWidth = 30;
  const std::size_t full = of == 0 ? 0 : done * kWidth / of;
  return "[" + std::string(full, '#') + std::string(kWidth - full, '.') + "]";
}

Result<study::TuneResult> search(const TuneOptions& command,
                                 const fs::path& folder,
                                 std::ostream& err) {
  TEMPER_TRY(study::TuneOptions options, to_options(command));
  if (fs::exists(folder / "tuned.yaml")) {
    return invalid_input(fmt::format("{} already exists; choose another folder with --out",
                                     (folder / "tuned.yaml").string()));
  }
  TEMPER_TRY_STATUS(make_folder(folder));
  orchestrator::StopSignals signals;
  options.stop = [&] { return signals.count() > 0; };
  const RealClock clock;
  ProgressLine progress(err, progress_of_stderr(), clock, "temper tune");
  options.on_progress = [&](const study::TuneOptions::Progress& p) {
    progress.show(p.step,
                  fmt::format("{} {} of {}{}",
                              bar(p.done, p.of),
                              p.done,
                              p.of,
                              p.best.empty() ? "" : "  best so far " + p.best));
  };
  TEMPER_TRY(study::TuneResult tuned, study::tune(options));
  if (tuned.tried[tuned.best].config.hardware == orchestrator::HardwareKind::Local)
    err << study::busy_note(*options.calibration);
  TEMPER_TRY_STATUS(write_files(tuned, folder));
  if (command.keep)
    TEMPER_TRY_STATUS(keep(tuned, fs::path(command.config).parent_path()));
  return tuned;
}

/// Simulates the written file from start to finish, as `temper run` will.
Result<std::string> prediction_of(const orchestrator::PipelineConfig& config) {
  TEMPER_TRY(const study::Figures figures, study::simulate(config));
  std::string text =
      fmt::format("a full run of {} steps from start to finish: {:.1f}k trained tokens/s, {:.2f} h",
                  config.steps,
                  figures.whole.trained_per_s / 1e3,
                  figures.whole.seconds / 3600);
  if (const auto& cost = figures.whole.cost) {
    if (cost->price)
      text += ", price " + short_number(*cost->price);
    if (cost->kwh)
      text += ", " + short_number(*cost->kwh) + " kWh";
  }
  return text;
}

}  // namespace

int run_tune(const TuneOptions& command, std::ostream& out, std::ostream& err) {
  const fs::path folder =
      command.out.empty() ? fmt::format("runs/tune-{}", calendar_stamp()) : command.out;
  const auto tuned = search(command, folder, err);
  if (!tuned)
    return fail(tuned.error(), err);
  if (command.json) {
    out << to_json(study::tune_rows(*tuned), JsonStyle::Pretty) << '\n';
    beside(command.json, out, err) << constants_note(tuned->tried[tuned->given].config);
    return 0;
  }
  out << study::tune_text(*tuned);
  out << fmt::format("wrote tuned.yaml, tune.csv, tune.svg and tune.md to {}\n", folder.string());
  const orchestrator::PipelineConfig& best = tuned->tried[tuned->best].config;
  if (best.hardware == orchestrator::HardwareKind::Local)
    return 0;  // local runs were predicted in full already
  const auto predicted = prediction_of(best);
  out << (predicted ? *predicted : predicted.error().context) << '\n';
  out << constants_note(tuned->tried[tuned->given].config);
  return 0;
}

Handler tune_command(Flags& flags) {
  const auto options = std::make_shared<TuneOptions>();
  flags.pipeline(options->config, options->sets);
  flags.list("--modes", options->modes, "Placement modes to try (default: all)");
  flags.list("--eta", options->etas, "Staleness bounds to try");
  flags.repeated("--vary", options->vary, "key=v1,v2: values of another key to try (repeatable)");
  flags.repeated("--only",
                 options->only,
                 "AXIS=v1,v2: limit the values of engine_cards, tp, slots, reference_cards, "
                 "rollout_share, return_share, lending, or (by price and energy) total_cards "
                 "(repeatable)");
  flags.text(
      "--objective",
      options->objective,
      "throughput; steps (shortest time for all steps); reward; price or energy (most trained "
      "tokens per price of the cards, or per kWh, by the section `cost`) (default: reward if "
      "--curve or configs/curves has a curve of this task, else throughput)");
  flags.text(
      "--curve", options->curve, "sweep.csv of `temper sweep`: steps to a reward by staleness");
  flags.text(
      "--lengths", options->lengths, "Local hardware: run folder with the response lengths to use");
  flags.number(
      "--max-staleness", options->max_staleness, "Upper limit of the staleness of trained groups");
  flags.number("--min-tokens-per-s", options->min_tokens_per_s, "Lower limit of trained tokens/s");
  flags.text("--max-memory", options->max_memory, "Upper limit of memory per device, e.g. 56GB");
  flags.text("--calibration",
             options->calibration,
             "Local hardware: calibration file from `temper measure`");
  flags.number(
      "--effort", options->effort, "Number of sampled runs (a fraction of the responses each)");
  flags.number("--steps", options->steps, "Steady-state steps of the full runs");
  flags.count("--threads", options->threads, "Runs in parallel (default: one per core)");
  flags.text("--out",
             options->out,
             "Folder for tuned.yaml, tune.csv, tune.svg and tune.md (default: runs/tune-TIME)");
  flags.flag(
      "--keep", options->keep, "If CONFIG is a run's config.yaml: store the gain for its web page");
  flags.json(options->json, "Print the rows of the CSV as JSON");
  return [options] { return run_tune(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
