#include "orchestrator/cli/tune_command.hpp"

#include "core/clock.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/nearest_name.hpp"
#include "core/yaml.hpp"
#include "orchestrator/explore/compare.hpp"
#include "orchestrator/explore/table.hpp"
#include "orchestrator/explore/tune_report.hpp"
#include "orchestrator/virtual/stop_signals.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <ostream>
#include <thread>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

template <class E>
Result<E> parse_name(std::string_view flag, std::string_view word) {
  std::vector<std::string> known;
  for (const auto& [value, name] : EnumNames<E>::value) {
    if (name == word)
      return value;
    known.emplace_back(name);
  }
  const auto nearest = nearest_name(word, known);
  return invalid_input(fmt::format(
      "{} {}: {}",
      flag,
      word,
      nearest ? fmt::format("did you mean `{}`?", *nearest) : "known are " + quoted_list(known)));
}

Result<TuneOptions> to_options(const TuneCommand& command) {
  TuneOptions options;
  options.config = command.config;
  options.sets = command.sets;
  for (const std::string& word : command.modes) {
    TEMPER_TRY(const PlacementMode mode, parse_name<PlacementMode>("--modes", word));
    options.modes.push_back(mode);
  }
  TEMPER_TRY(options.etas, parse_etas(command.etas));
  for (const std::string& text : command.vary) {
    TEMPER_TRY(SweepAxis axis, parse_axis("--vary", text));
    options.vary.push_back(std::move(axis));
  }
  TEMPER_TRY(options.objective, parse_name<Objective>("--objective", command.objective));
  if (!command.curve.empty()) {
    TEMPER_TRY(options.curve, read_reward_curve(command.curve));
  }
  if (command.max_staleness >= 0)
    options.constraints.max_staleness = command.max_staleness;
  if (command.min_tokens_per_s >= 0)
    options.constraints.min_tokens_per_s = command.min_tokens_per_s;
  if (!command.max_memory.empty()) {
    auto bytes = parse_bytes(command.max_memory);
    if (!bytes)
      return std::move(bytes).error().within("--max-memory");
    options.constraints.max_memory = *bytes;
  }
  if (fs::exists(command.calibration)) {
    TEMPER_TRY(options.calibration, load_local(command.calibration));
  }
  if (command.effort < 1 || command.steps < 1)
    return invalid_input("--effort and --steps must be at least 1");
  options.runs = command.effort;
  options.final_updates = command.steps;
  options.threads = command.threads > 0
                        ? command.threads
                        : std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  return options;
}

Status write_files(const Tuned& tuned, const fs::path& folder) {
  TEMPER_TRY_STATUS(make_folder(folder));
  const std::vector<TuneRow> rows = tune_rows(tuned);
  TEMPER_TRY_STATUS(
      write_file_atomically(folder / "tune.csv", to_csv(std::span<const TuneRow>(rows))));
  TEMPER_TRY_STATUS(write_file_atomically(folder / "tune.svg", tune_svg(tuned)));
  TEMPER_TRY_STATUS(write_file_atomically(folder / "tune.md", tune_text(tuned)));
  return write_file_atomically(folder / "tuned.yaml", to_yaml(tuned.tried[tuned.best].config));
}

std::string bar(std::size_t done, std::size_t of) {
  constexpr std::size_t kWidth = 30;
  const std::size_t full = of == 0 ? 0 : done * kWidth / of;
  return "[" + std::string(full, '#') + std::string(kWidth - full, '.') + "]";
}

Result<Tuned> search(const TuneCommand& command, const fs::path& folder, std::ostream& err) {
  TEMPER_TRY(TuneOptions options, to_options(command));
  if (fs::exists(folder / "tuned.yaml")) {
    return invalid_input(
        fmt::format("{} is there already; name another --out", (folder / "tuned.yaml").string()));
  }
  StopSignals signals;
  options.stop = [&] { return signals.count() > 0; };
  options.on_progress = [&](const TuneOptions::Progress& p) {
    err << fmt::format("{:<14}{} {} of {}{}\n",
                       p.step,
                       bar(p.done, p.of),
                       p.done,
                       p.of,
                       p.best.empty() ? "" : "  best so far " + p.best)
        << std::flush;
  };
  TEMPER_TRY(Tuned tuned, tune(options));
  TEMPER_TRY_STATUS(write_files(tuned, folder));
  return tuned;
}

/// A run of the file that was written, from start to finish: what `temper run` of it will print.
Result<std::string> prediction_of(const PipelineConfig& config) {
  TEMPER_TRY(const Figures figures, evaluate(config));
  return fmt::format(
      "a run of it, {} updates from start to finish: {:.1f}k trained tokens/s, {:.2f} h",
      config.steps,
      figures.whole.trained_per_s / 1e3,
      figures.whole.seconds / 3600);
}

}  // namespace

int run_tune(const TuneCommand& command, std::ostream& out, std::ostream& err) {
  const fs::path folder =
      command.out.empty() ? fmt::format("runs/tune-{}", calendar_stamp()) : command.out;
  const auto tuned = search(command, folder, err);
  if (!tuned) {
    err << "temper: " << tuned.error().context << '\n';
    return 1;
  }
  if (command.json) {
    out << to_json(tune_rows(*tuned), JsonStyle::Pretty) << '\n';
    return 0;
  }
  out << tune_text(*tuned);
  out << fmt::format("written to {}: tuned.yaml, tune.csv, tune.svg, tune.md\n", folder.string());
  const PipelineConfig& best = tuned->tried[tuned->best].config;
  if (best.hardware == HardwareKind::Local)
    return 0;  // predicted as whole runs already
  const auto predicted = prediction_of(best);
  out << (predicted ? *predicted : predicted.error().context) << '\n';
  return 0;
}

}  // namespace temper::orchestrator
