#include "cli/study/faults_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/study/constants_note.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/parallel.hpp"
#include "core/progress_line.hpp"
#include "core/text/numbers.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "study/faults/fault_prediction.hpp"
#include "study/faults/faults.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

/// Parses the numbers of --every or --spares.
template <class T>
Result<std::vector<T>> counts(const char* flag, const std::vector<std::string>& texts) {
  std::vector<T> numbers;
  for (const std::string& text : texts) {
    const auto number = parse_number<int>(text);
    if (!number || *number < 0)
      return invalid_input(fmt::format("{}: expected an integer >= 0, found `{}`", flag, text));
    numbers.push_back(static_cast<T>(*number));
  }
  return numbers;
}

Result<study::FaultsReport> answer(const FaultsCommand& command,
                                   const orchestrator::PipelineConfig& config,
                                   std::ostream& err) {
  study::FaultsOptions options;
  options.config = config;
  if (options.config.hardware != orchestrator::HardwareKind::Simulated)
    return invalid_input("expected hardware: simulated, found hardware: local");
  if (command.days <= 0 || command.days > 10000 || command.seeds < 1 || command.seeds > 1000) {
    return invalid_input(fmt::format(
        "expected --days above 0 and up to 10000 and --seeds from 1 to 1000, found --days "
        "{} and --seeds {}",
        command.days,
        command.seeds));
  }
  options.time = from_seconds(command.days * 86400);
  TEMPER_TRY(options.every, counts<std::uint64_t>("--every", command.every));
  TEMPER_TRY(options.spares, counts<std::int32_t>("--spares", command.spares));
  options.seeds = command.seeds;
  options.response_weight = static_cast<std::int64_t>(command.weight);
  options.threads = worker_threads(command.threads);
  const RealClock clock;
  ProgressLine progress(err, progress_of_stderr(), clock, "temper faults");
  options.on_progress = [&progress](std::size_t done, std::size_t of) {
    progress.show("simulated runs", fmt::format("{} of {}", done, of));
  };
  return study::study_faults(options);
}

/// The report of a run whose fault plan failed local processes.
int show_played(const FaultsCommand& command, std::ostream& out, std::ostream& err) {
  const auto played = study::predict_faults(command.config);
  if (!played)
    return fail(played.error(), err, "temper faults");
  out << (command.json ? to_json(*played, JsonStyle::Pretty) + "\n"
                       : study::fault_prediction_text(*played));
  return 0;
}

}  // namespace

int run_faults(const FaultsCommand& command, std::ostream& out, std::ostream& err) {
  if (std::filesystem::is_directory(command.config))
    return show_played(command, out, err);
  const auto config = orchestrator::load_config(command.config, command.sets);
  if (!config)
    return fail(config.error(), err, "temper faults");
  const auto report = answer(command, *config, err);
  if (!report)
    return fail(report.error(), err, "temper faults");
  out << (command.json ? to_json(*report, JsonStyle::Pretty) + "\n" : study::faults_text(*report));
  beside(command.json, out, err) << constants_note(config);
  if (!command.plot.empty()) {
    if (Status status = write_file_atomically(command.plot, study::faults_svg(*report)); !status)
      return fail(status.error(), err, "temper faults");
  }
  return 0;
}

Handler faults_command(Flags& flags) {
  const auto options = std::make_shared<FaultsCommand>();
  flags.pipeline(options->config, options->sets);
  flags.number("--days", options->days, "Simulated time per run, in days");
  flags.list(
      "--every", options->every, "Checkpoint intervals in steps (default: checkpoint.every)");
  flags.list("--spares", options->spares, "Numbers of spare hosts (default: as configured)");
  flags.number("--seeds", options->seeds, "Runs per combination, each with its own seed");
  flags.count("--weight", options->weight, "Simulate one response in N (1: all)");
  flags.count("--threads", options->threads, "Runs in parallel (default: one per core)");
  flags.text("--plot", options->plot, "Write an SVG plot of goodput over the checkpoint interval");
  flags.json(options->json);
  return [options] { return run_faults(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
