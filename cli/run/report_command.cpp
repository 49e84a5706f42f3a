#include "cli/run/report_command.hpp"

#include "actors/simulation/role_clusters.hpp"
#include "cli/command/exit_code.hpp"
#include "cli/laboratory/laboratory.hpp"
#include "cli/run/html_report.hpp"
#include "cli/run/machines.hpp"
#include "cli/serve/run_files.hpp"
#include "cli/view/card_map.hpp"
#include "cli/view/terminal_view.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "core/text/numbers.hpp"
#include "orchestrator/metrics/report.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "orchestrator/pipeline/switch_plan.hpp"
#include "orchestrator/run/run_dir.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

/// nullopt if the run was not simulated or its configuration is missing.
std::optional<orchestrator::ResolvedPipeline> simulated_pipeline(
    const std::filesystem::path& run_dir) {
  const auto config = orchestrator::load_config(run_dir / "config.yaml");
  if (!config || config->hardware != orchestrator::HardwareKind::Simulated)
    return std::nullopt;
  auto pipeline = orchestrator::resolve(*config);
  if (!pipeline)
    return std::nullopt;
  return *std::move(pipeline);
}

/// Predicted states of a role switch, for a run with time-shared cards; else none.
orchestrator::PredictedStates predicted_states(const orchestrator::ResolvedPipeline& pipeline) {
  orchestrator::PredictedStates out;
  if (!traits_of(pipeline.placement.mode).shares)
    return out;
  const orchestrator::SwitchPlan plan =
      orchestrator::predict_switch(orchestrator::simulated_placement(pipeline));
  for (const auto& states : {plan.to_rollout, plan.to_training}) {
    for (const orchestrator::PredictedState& state : states)
      out[std::string(state.state)] = state.seconds;
  }
  return out;
}

std::string report_text(const orchestrator::RecordedRun& run, const ReportOptions& options) {
  const auto pipeline = simulated_pipeline(options.run);
  if (!pipeline)
    return orchestrator::summary_text(run.summary);
  const CardMap map = make_card_map(run.summary, run.config.actors, machines_of(*pipeline));
  return orchestrator::summary_text(run.summary, predicted_states(*pipeline)) + "\n" +
         render_card_map(map, options.width, options.colours) + "\n" +
         simulated_run_note(actors::all_hardware(*pipeline->simulation));
}

/// What the page knows of a run. Without live.json: nothing.
RunFiles files_of(const std::filesystem::path& run) {
  RunFiles files(run.filename(), run);
  files.update();
  return files;
}

/// A line for each kind of alarm that the run raised, with the latest one.
std::string alarms_text(const std::filesystem::path& run) {
  const RunFiles files = files_of(run);
  if (!files.live() || files.live()->alarms_raised.empty())
    return {};
  std::string text = "\nalarms\n";
  for (const auto& [kind, times] : files.live()->alarms_raised) {
    text += fmt::format("  {:<22} {} time{}", name_of(kind), times, times == 1 ? "" : "s");
    const auto& latest = files.live()->alarms;
    const auto last = std::find_if(
        latest.rbegin(), latest.rend(), [&, &k = kind](const auto& a) { return a.kind == k; });
    text +=
        last == latest.rend() ? "\n" : fmt::format(", at step {}: {}\n", last->step, last->text);
  }
  return text;
}

/// The state of a run whose log has no end.
std::string unfinished_text(const std::filesystem::path& run) {
  // A run that has just started has no live.json.
  return files_of(run).state() == RunState::Running || orchestrator::RunDir(run).in_progress()
             ? "the run is still running; these are its figures so far"
             : fmt::format(
                   "the run ended without a final record (killed?); resume it with `temper run "
                   "--resume {}`",
                   run.string());
}

/// Checks "reward.last>=0.9" against summary.json. Empty if it holds, else the value found.
Result<std::string> check_condition(const nlohmann::json& summary, std::string_view required) {
  const auto unknown = [&](std::string_view what) {
    return invalid_input(fmt::format(
        "--require {}: {}; expected a number of summary.json and a limit, e.g. 'reward.last>=0.9'",
        required,
        what));
  };
  const std::size_t sign = required.find_first_of("<>=");
  if (sign == std::string_view::npos)
    return unknown("found none of <=, <, =, >, >=");
  const bool equal = required.substr(sign + 1).starts_with('=');
  const std::string_view key = required.substr(0, sign);
  const auto wanted = parse_number<double>(required.substr(sign + (equal ? 2 : 1)));
  if (!wanted)
    return unknown(wanted.error().context);
  const nlohmann::json* at = &summary;
  for (std::size_t begin = 0, end = 0; at != nullptr && begin <= key.size(); begin = end + 1) {
    end = std::min(key.find('.', begin), key.size());
    const auto found = at->find(std::string(key.substr(begin, end - begin)));
    at = at->is_object() && found != at->end() ? &*found : nullptr;
  }
  if (at == nullptr || !at->is_number())
    return unknown(fmt::format("summary.json has no number {}", key));
  const auto is = at->get<double>();
  const char order = required[sign];
  const bool holds = (order == '=' || equal) && is == *wanted ? true
                     : order == '>'                           ? is > *wanted
                     : order == '<'                           ? is < *wanted
                                                              : false;
  return holds ? std::string()
               : fmt::format("{} is {}, expected {}", key, is, required.substr(sign));
}

/// Checks all --require. Returns the exit code.
int check_required(const ReportOptions& options,
                   const orchestrator::Summary& summary,
                   std::ostream& err) {
  if (options.required.empty())
    return kDone;
  const nlohmann::json json = parse_json(to_json(summary));
  int code = kDone;
  for (const std::string& required : options.required) {
    const auto why = check_condition(json, required);
    if (!why) {
      err << "temper: " << why.error().context << '\n';
      return kBadInput;
    }
    if (!why->empty()) {
      err << "temper: --require failed: " << *why << '\n';
      code = kFound;
    }
  }
  return code;
}

int write_html(const std::string& run, std::string file) {
  const auto page = html_report(run);
  if (file.empty())
    file = (std::filesystem::path(run) / "report.html").string();
  const Status written = page ? write_file_atomically(file, *page) : Status(page.error());
  if (!written)
    return fail(written.error(), std::cerr);
  std::cout << file << '\n';
  return 0;
}

}  // namespace

int run_report(const ReportOptions& options, std::ostream& out, std::ostream& err) {
  const Result<orchestrator::RecordedRun> run = orchestrator::read_run(options.run);
  if (!run)
    return fail(run.error(), err);
  if (options.format == ReportOptions::Format::Json) {
    out << to_json(run->summary, JsonStyle::Pretty) << '\n';
  } else {
    out << report_text(*run, options) << alarms_text(options.run);
  }
  if (!run->config_issue.empty())
    err << "temper: warning: " << run->config_issue
        << "; the report lacks the name, the seed, the hardware and the prices of the run\n";
  if (!run->damage.empty()) {
    err << "temper: " << run->damage << "\nThe figures cover the records before the damage.\n";
    return kFound;
  }
  if (!run->over)
    err << "temper: " << unfinished_text(options.run) << '\n';
  if (!run->torn.empty())
    err << "temper: warning: the last record of events.log is incomplete: " << run->torn
        << "; the figures cover the records before it\n";
  return check_required(options, run->summary, err);
}

Handler report_command(Flags& flags) {
  const auto options = std::make_shared<ReportOptions>();
  const auto json = std::make_shared<bool>(false);
  flags.argument("run", options->run, "Run folder");
  const auto html = std::make_shared<std::optional<std::string>>();
  flags.json(*json);
  flags.repeated("--require",
                 options->required,
                 "Exit with 3 unless this holds for a number of summary.json, e.g. "
                 "'reward.last>=0.9' (repeatable)");
  flags.flag_or_text(
      "--html", *html, "Write a self-contained HTML report (default: RUN/report.html)");
  return [options, json, html] {
    if (*html)
      return write_html(options->run, **html);
    const ViewOptions view = detect_view(STDOUT_FILENO, OutputForm::Auto);
    options->format = *json ? ReportOptions::Format::Json : ReportOptions::Format::Text;
    options->width = view_width(view);
    options->colours = view.colours;
    return run_report(*options, std::cout, std::cerr);
  };
}

}  // namespace temper::cli
