#include "cli/study/plan_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/study/constants_note.hpp"
#include "core/files.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/plan/plan_words.hpp"
#include "sim_hw/plan/rollout_request.hpp"
#include "sim_hw/plan/train_advice.hpp"
#include "sim_hw/validation/unmeasured.hpp"
#include "study/plan/config_plan_report.hpp"
#include "study/plan/plan_pipeline.hpp"
#include "study/plan/rollout_plan_report.hpp"
#include "study/plan/train_plan_report.hpp"
#include "study/simulate/simulate.hpp"

#include <fmt/format.h>

#include <array>
#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

using sim_hw::KindMetric;

constexpr KindMetric kTraining[] = {
    {"train_iteration", "time"}, {"train_step", "time"}, {"rl_iteration", "update"}};

constexpr KindMetric kRollout[] = {{"decode_step", "time"}, {"rl_iteration", "rollout"}};

/// The streams for the result and for notes.
struct Streams {
  std::ostream& out;
  std::ostream& err;
};

struct PlanSubject {
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  std::string hardware_name;
  std::string model_name;
  const sim_hw::HardwareSpec* hardware = nullptr;
  const sim_hw::ModelSpec* model = nullptr;
  std::int64_t cards = 0;
};

Status read_subject(const sim_hw::Params& params, PlanSubject& subject) {
  TEMPER_TRY(subject.hardware_name, params.text("hardware"));
  TEMPER_TRY(subject.model_name, params.text("model"));
  TEMPER_TRY(subject.hardware, subject.catalog.hardware(subject.hardware_name));
  TEMPER_TRY(subject.model, subject.catalog.model(subject.model_name));
  TEMPER_TRY(subject.cards, sim_hw::cards_of(params, *subject.hardware));
  return {};
}

/// The command line that repeats the question.
std::string question(const PlanOptions& options) {
  std::string out = "temper plan";
  for (const std::string& word : options.words)
    out += " " + word;
  for (const std::string& set : options.sets)
    out += " --set " + set;
  return out;
}

Status write_pipeline(const PlanOptions& options,
                      const orchestrator::PipelineConfig& config,
                      std::string_view about) {
  return write_file_atomically(
      options.out,
      fmt::format("# From `{}`.\n# {}\n{}", question(options), about, to_yaml(config)));
}

/// The response lengths of a rollout question, as settings of a pipeline.
Result<actors::LengthConfig> response_lengths(const sim_hw::Params& params,
                                              const sim_hw::RolloutLengths& lengths) {
  actors::LengthConfig out;
  out.cap = Tokens(static_cast<std::int64_t>(lengths.longest - lengths.prompt));
  if (params.has("lengths")) {
    out.kind = actors::LengthKind::Trace;
    TEMPER_TRY(out.trace, params.text("lengths"));
    return out;
  }
  out.mean = lengths.response;
  TEMPER_TRY(out.p99_over_median, params.number("p99_over_median", 1));
  out.kind = out.p99_over_median > 1 ? actors::LengthKind::Lognormal : actors::LengthKind::Constant;
  return out;
}

/// Whether people read stdout. If not, notes go to stderr.
bool for_people(const PlanOptions& options) {
  return !options.json && !options.emit;
}

/// Prints the note about unmeasured constants.
Status say_unmeasured(const PlanOptions& options,
                      sim_hw::Catalog& catalog,
                      const sim_hw::HardwareSpec& hardware,
                      std::span<const KindMetric> kinds,
                      Streams to) {
  TEMPER_TRY(const auto note, sim_hw::unmeasured_note(catalog, hardware, kinds));
  if (note)
    beside(!for_people(options), to.out, to.err) << note->text();
  return {};
}

Status plan_training(const PlanOptions& options, const sim_hw::Params& params, Streams to) {
  PlanSubject subject;
  TEMPER_TRY_STATUS(read_subject(params, subject));
  sim_hw::TrainProblem problem(*subject.model, *subject.hardware, subject.cards);
  TEMPER_TRY(const sim_hw::TrainPlanRequest request,
             sim_hw::train_plan_request(params, *subject.hardware, problem));
  study::TrainPlanReport report{problem,
                                subject.hardware->name,
                                subject.cards,
                                sim_hw::search_train(problem, request.space, request.shape, {}),
                                {},
                                {}};
  if (report.search.best.empty())
    return sim_hw::no_plan(problem, request, report.search);
  if (request.max_seconds && report.search.best.front().total() > *request.max_seconds)
    return sim_hw::too_slow(problem, request, report.search.best.front());
  if (params.has("compare")) {
    TEMPER_TRY(const std::string layout, params.text("compare"));
    TEMPER_TRY(report.compared, sim_hw::plan_with(problem, request, layout));
  }
  TEMPER_TRY(report.spread, sim_hw::error_spread(subject.catalog, *subject.hardware, kTraining));
  if (options.emit) {
    TEMPER_TRY(const std::string flags,
               study::emit(*options.emit, problem, *subject.hardware, report.search.best.front()));
    to.out << flags;
  } else {
    to.out << (options.json ? study::train_plan_json(report) : study::train_plan_text(report));
  }
  TEMPER_TRY_STATUS(say_unmeasured(options, subject.catalog, *subject.hardware, kTraining, to));
  if (!options.svg.empty())
    TEMPER_TRY_STATUS(write_file_atomically(options.svg, study::train_plan_svg(report)));
  if (!options.out.empty()) {
    TEMPER_TRY(const orchestrator::PipelineConfig config,
               study::pipeline_of({subject.hardware_name, subject.model_name, *subject.hardware},
                                  problem,
                                  report.search.best.front()));
    TEMPER_TRY_STATUS(write_pipeline(options,
                                     config,
                                     "A pipeline trains with ZeRO 1, sequence parallelism and full "
                                     "recomputation, regardless of the plan's choice."));
  }
  return {};
}

Status plan_rollout(const PlanOptions& options, const sim_hw::Params& params, Streams to) {
  PlanSubject subject;
  TEMPER_TRY_STATUS(read_subject(params, subject));
  sim_hw::RolloutProblem problem(*subject.model, *subject.hardware, subject.cards);
  TEMPER_TRY(const sim_hw::RolloutPlanRequest request,
             sim_hw::rollout_plan_request(params, ".", problem));
  study::RolloutPlanReport report{
      problem, subject.cards, sim_hw::search_rollout(problem, request.space), {}, {}};
  if (report.search.best.empty())
    return sim_hw::no_plan(problem, request, report.search);
  if (params.has("compare")) {
    TEMPER_TRY(const std::string layout, params.text("compare"));
    TEMPER_TRY(report.compared, sim_hw::plan_with(problem, request, layout));
  }
  TEMPER_TRY(report.spread, sim_hw::error_spread(subject.catalog, *subject.hardware, kRollout));
  if (options.emit) {
    TEMPER_TRY(const std::string flags,
               study::emit(*options.emit, problem, report.search.best.front()));
    to.out << flags;
  } else {
    to.out << (options.json ? study::rollout_plan_json(report) : study::rollout_plan_text(report));
  }
  TEMPER_TRY_STATUS(say_unmeasured(options, subject.catalog, *subject.hardware, kRollout, to));
  if (!options.svg.empty())
    TEMPER_TRY_STATUS(write_file_atomically(options.svg, study::rollout_plan_svg(report)));
  if (!options.out.empty()) {
    TEMPER_TRY(const actors::LengthConfig responses, response_lengths(params, problem.lengths));
    TEMPER_TRY(const orchestrator::PipelineConfig config,
               study::pipeline_of({subject.hardware_name, subject.model_name, *subject.hardware},
                                  problem,
                                  report.search.best.front(),
                                  responses));
    TEMPER_TRY_STATUS(
        write_pipeline(options, config, "Trainer and engines time-share their cards."));
  }
  return {};
}

/// Loads a pipeline. Errors in the layouts that the plan replaces are ignored.
Result<orchestrator::PipelineConfig> load_to_plan(const PlanOptions& options) {
  TEMPER_TRY(orchestrator::LoadedConfig loaded,
             orchestrator::read_config(options.words.front(), options.sets));
  std::vector<ConfigIssue> issues = loaded.issues();
  std::erase_if(issues, [](const ConfigIssue& issue) {
    return issue.key == "simulation" || issue.key == "simulation.trainer" ||
           issue.key == "simulation.rollout";
  });
  if (!issues.empty())
    return config_error(issues);
  return loaded.config();
}

Status plan_pipeline(const PlanOptions& options, Streams to) {
  if (options.words.size() != 1)
    return invalid_input("expected one pipeline YAML, or task=... and other key=value parameters");
  if (!options.svg.empty())
    return invalid_input(
        "--svg: expected task=train or task=rollout; the plan of a pipeline has no plot");
  TEMPER_TRY(const orchestrator::PipelineConfig config, load_to_plan(options));
  if (config.hardware != orchestrator::HardwareKind::Simulated) {
    return invalid_input(fmt::format(
        "{}: expected hardware: simulated, found hardware: local, whose layouts are fixed",
        options.words.front()));
  }
  TEMPER_TRY(study::ConfigPlan plan, study::plan_config(config));
  sim_hw::Catalog catalog = sim_hw::Catalog::shipped();
  study::ConfigPlanReport report{std::move(plan), {}, {}};
  const sim_hw::HardwareSpec& training = report.plan.trainer_hardware;
  const sim_hw::HardwareSpec& engines = report.plan.engine_hardware;
  TEMPER_TRY(report.training, sim_hw::error_spread(catalog, training, kTraining));
  TEMPER_TRY(report.rollout, sim_hw::error_spread(catalog, engines, kRollout));
  if (options.emit) {
    TEMPER_TRY(const sim_hw::ModelSpec* model, catalog.model(config.simulation.model));
    TEMPER_TRY(const std::string flags, study::emit(*options.emit, report.plan, *model));
    to.out << flags;
  } else {
    to.out << (options.json ? study::config_plan_json(report) : study::config_plan_text(report));
  }
  const std::array<const sim_hw::HardwareSpec*, 2> both{&training, &engines};
  beside(!for_people(options), to.out, to.err)
      << sim_hw::simulated_run_note(both) << tools_note(config);
  if (!options.out.empty()) {
    TEMPER_TRY_STATUS(study::check_rules(report.plan.config));
    TEMPER_TRY_STATUS(write_pipeline(
        options, report.plan.config, "The plan chose the layouts of trainer and rollout."));
  }
  return {};
}

Status plan(const PlanOptions& options, Streams to) {
  if (!options.words.empty() && options.words.front().find('=') == std::string::npos)
    return plan_pipeline(options, to);
  if (!options.sets.empty())
    return invalid_input("--set: expected a pipeline YAML; without one, write key=value");
  TEMPER_TRY(const sim_hw::Params params, sim_hw::Params::from_words(options.words));
  TEMPER_TRY(const std::string task, params.text("task"));
  if (task == "train")
    return plan_training(options, params, to);
  if (task == "rollout")
    return plan_rollout(options, params, to);
  if (task == "rl") {
    return invalid_input(
        "task=rl: expected train or rollout; `temper tune CONFIG` splits cards between the two");
  }
  return invalid_input(fmt::format("task={}: expected train, rollout or rl", task));
}

}  // namespace

int run_plan(const PlanOptions& options, std::ostream& out, std::ostream& err) {
  if (options.list) {
    out << fmt::format("task=train    hardware; {}\n", sim_hw::kTrainPlanParameters)
        << fmt::format("task=rollout  hardware; {}\n", sim_hw::kRolloutPlanParameters)
        << "CONFIG        the path of a pipeline on simulated hardware: trainer and rollout\n";
    return 0;
  }
  const Status status = plan(options, {out, err});
  if (status)
    return 0;
  const int code = fail(status.error(), err);
  if (status.error().code == ErrorCode::InvalidInput)
    err << "parameters of each task: temper plan --list\n";
  return code;
}

Handler plan_command(Flags& flags) {
  const auto options = std::make_shared<PlanOptions>();
  flags.arguments("words",
                  options->words,
                  "Pipeline YAML; or task=train|rollout, model=, hardware= and other parameters",
                  Need::Optional);
  flags.sets(options->sets, "Override a key of the pipeline: key=value (repeatable)");
  flags.text("--out", options->out, "Write a pipeline YAML with the best layouts");
  flags.text("--svg",
             options->svg,
             "Write an SVG plot of the plans: step time and memory, or tokens/s and time");
  std::vector<std::string> engines;
  engines.reserve(std::size(EnumNames<study::EmitTarget>::value));
  for (const auto& [engine, name] : EnumNames<study::EmitTarget>::value)
    engines.emplace_back(name);
  flags.choice(
      "--emit",
      engines,
      [options](std::size_t i) { options->emit = EnumNames<study::EmitTarget>::value[i].first; },
      "Print the best plan as flags of this engine instead of the report");
  flags.flag("--list", options->list, "List the parameters of each task");
  flags.json(options->json);
  return [options] { return run_plan(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
