#include "cli/study/ladder_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/study/constants_note.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/parallel.hpp"
#include "core/parse_name.hpp"
#include "core/text/numbers.hpp"
#include "core/text/table.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "study/search/deployments_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kQuickEffort = 16;
constexpr std::uint64_t kQuickSteps = 8;

Result<std::vector<study::Deployment>> choose_rungs(const std::vector<std::string>& ids) {
  if (ids.empty())
    return study::known_deployments();
  std::vector<std::string> known;
  for (const study::Deployment& rung : study::known_deployments())
    known.push_back(rung.id);
  std::vector<study::Deployment> out;
  for (const std::string& id : ids) {
    const auto at = std::ranges::find(known, id);
    if (at == known.end())
      return unknown_name("--rung", id, known);
    out.push_back(study::known_deployments()[static_cast<std::size_t>(at - known.begin())]);
  }
  return out;
}

Result<std::vector<std::int32_t>> parse_batches(const std::vector<std::string>& texts) {
  std::vector<std::int32_t> out;
  for (const std::string& text : texts) {
    const auto groups = parse_number<std::int32_t>(text);
    if (!groups || *groups < 1)
      return invalid_input(
          fmt::format("--batch {}: expected a number of prompts, 1 or more", text));
    if (std::ranges::find(out, *groups) != out.end())
      return invalid_input(fmt::format("--batch: {} is given twice", *groups));
    out.push_back(*groups);
  }
  return out;
}

Result<study::DeploymentOptions> to_options(const LadderOptions& command,
                                            const orchestrator::PipelineConfig& config) {
  if (command.effort < 1)
    return invalid_input(fmt::format("--effort: expected at least 1, found {}", command.effort));
  if (command.steps < 1)
    return invalid_input("--steps: expected at least 1, found 0");
  study::DeploymentOptions options;
  options.config = config;
  TEMPER_TRY(options.deployments, choose_rungs(command.rungs));
  for (const std::string& text : command.lengths) {
    TEMPER_TRY(const study::LengthSpread spread, study::parse_spread(text));
    options.spreads.push_back(spread);
  }
  if (options.spreads.empty())
    options.spreads =
        command.quick ? std::vector{study::default_spreads()[2]} : study::default_spreads();
  TEMPER_TRY(options.batches, parse_batches(command.batches));
  options.runs = command.quick ? std::min(command.effort, kQuickEffort) : command.effort;
  options.steady_updates = command.quick ? std::min(command.steps, kQuickSteps) : command.steps;
  options.threads = worker_threads(command.threads);
  return options;
}

Status write_files(const study::DeploymentComparison& ladder, const fs::path& folder) {
  const std::vector<study::DeploymentRow> rows = study::deployment_rows(ladder);
  TEMPER_TRY_STATUS(write_file_atomically(folder / "ladder.csv",
                                          to_csv(std::span<const study::DeploymentRow>(rows))));
  for (const study::DeploymentCell& cell : ladder.cells) {
    std::string name = fmt::format("{}-{}", cell.deployment, cell.spread.text());
    if (ladder.batches.size() > 1)
      name += fmt::format("-{}", cell.groups);
    std::ranges::replace(name, ':', '-');
    if (cell.tuned)
      TEMPER_TRY_STATUS(
          write_file_atomically(folder / (name + ".yaml"), to_yaml(cell.tuned->config)));
    if (cell.with_mechanisms)
      TEMPER_TRY_STATUS(write_file_atomically(folder / (name + "-means.yaml"),
                                              to_yaml(cell.with_mechanisms->config)));
  }
  return {};
}

Result<study::DeploymentComparison> climb(const LadderOptions& command,
                                          const orchestrator::PipelineConfig& config,
                                          std::ostream& err) {
  TEMPER_TRY(study::DeploymentOptions options, to_options(command, config));
  const std::size_t all = options.deployments.size() * options.spreads.size() *
                          std::max<std::size_t>(1, options.batches.size());
  if (!command.out.empty())
    TEMPER_TRY_STATUS(make_folder(command.out));
  options.on_cell = [&](const study::DeploymentComparison& so_far) {
    const study::DeploymentRow row = study::deployment_rows(so_far).back();
    err << fmt::format("{:>3} of {}  {} x {}  {:<16}{:<34}{:>7.1f}k tokens/s\n",
                       so_far.cells.size(),
                       all,
                       row.groups_per_update,
                       row.responses_per_group,
                       row.lengths,
                       so_far.deployment_of(so_far.cells.size() - 1).text,
                       row.tokens_per_s / 1e3)
        << std::flush;
    return command.out.empty() ? Status() : write_files(so_far, command.out);
  };
  return study::compare_deployments(options);
}

}  // namespace

int run_ladder(const LadderOptions& command, std::ostream& out, std::ostream& err) {
  const auto config = orchestrator::load_config(command.config, command.sets);
  if (!config)
    return fail(config.error(), err);
  const auto ladder = climb(command, *config, err);
  if (!ladder)
    return fail(ladder.error(), err);
  if (command.json)
    out << to_json(study::deployment_rows(*ladder), JsonStyle::Pretty) << '\n';
  else
    out << study::deployments_text(*ladder);
  beside(command.json, out, err) << constants_note(config);
  return 0;
}

Handler ladder_command(Flags& flags) {
  const auto options = std::make_shared<LadderOptions>();
  flags.pipeline(options->config, options->sets);
  flags.repeated(
      "--lengths", options->lengths, "Response lengths as mean:cap:p99/median (repeatable)");
  flags.list("--batch", options->batches, "Prompts of a step to compare (default: as in CONFIG)");
  flags.repeated(
      "--rung", options->rungs, "Only this deployment, by its id (repeatable; default: all)");
  flags.number("--effort",
               options->effort,
               "Runs per search; each deployment, batch and length distribution has two");
  flags.number("--steps", options->steps, "Steady-state steps that the figures cover");
  flags.count("--threads", options->threads, "Runs in parallel (default: one per core)");
  flags.flag("--quick", options->quick, "One length distribution and little effort");
  flags.text("--out", options->out, "Folder for ladder.csv and the best configurations");
  flags.json(options->json, "Print a JSON list, one object per deployment, batch and lengths");
  return [options] { return run_ladder(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
