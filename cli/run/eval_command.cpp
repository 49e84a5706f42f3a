#include "cli/run/eval_command.hpp"

#include "cli/command/exit_code.hpp"
#include "core/json.hpp"
#include "core/temporary_folder.hpp"
#include "orchestrator/metrics/report.hpp"
#include "orchestrator/model_export/model_export.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/record/best_audit.hpp"
#include "orchestrator/run/evaluation_source.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "orchestrator/start/start_run.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <memory>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;
using orchestrator::PipelineConfig;

struct Evaluation {
  std::string what;
  std::uint64_t version = 0;
  std::uint64_t problems = 0, samples = 0;
  orchestrator::EvaluationPoint point;
};

void describe(auto& v, Evaluation& e) {
  v.field(1, "what", e.what);
  v.field(2, "version", e.version);
  v.field(3, "problems", e.problems);
  v.field(4, "samples", e.samples);
  v.field(5, "failed", e.point.failed);
  v.field(6, "pass_1", e.point.pass_1);
  v.field(7, "pass_k", e.point.pass_k);
  v.field(8, "reward", e.point.reward);
  v.field(9, "seconds", e.point.seconds);
  v.field(10, "pass_1_low", e.point.pass_1_low);
  v.field(11, "pass_1_high", e.point.pass_1_high);
}

/// The flags as configuration settings.
std::vector<std::string> sets_of(const EvalOptions& o) {
  std::vector<std::string> sets = o.sets;
  sets.emplace_back("evaluation.every=1");
  if (!o.task.empty())
    sets.push_back("evaluation.path=" + fs::absolute(o.task).string());
  if (o.problems > 0)
    sets.push_back(fmt::format("evaluation.problems={}", o.problems));
  if (o.samples > 0)
    sets.push_back(fmt::format("evaluation.samples={}", o.samples));
  if (o.samples > 1)
    sets.emplace_back("evaluation.greedy=false");
  return sets;
}

/// Turns the configuration into an evaluation: no training, no outputs besides the result.
void make_evaluation_of(PipelineConfig& config, const fs::path& folder) {
  config.run_dir = folder.string();
  config.steps = 0;
  config.evaluation.keep_best = false;
  config.samples.share = 0;
  config.tracking.tensorboard = false;
  config.alarms.enabled = false;
}

/// Exports the weights of the run as the base checkpoint of the evaluation. Returns their version.
Result<std::uint64_t> provide_base(orchestrator::ModelExport what, const fs::path& folder) {
  if (!what.version && !what.best) {
    TEMPER_TRY(const auto best, orchestrator::verify_best(what.run));
    what.best = best.state != orchestrator::BestState::None;
  }
  what.to = orchestrator::RunDir(folder).base();
  what.type = actors::StoredType::Float32;
  what.merge = true;
  TEMPER_TRY(const auto exported, orchestrator::export_model(what));
  return exported.version.value();
}

/// Sets the number of problems: --problems; else all of --task; else evaluation.problems, limited
/// to the held-out problems of the task. `base`: model folder; empty: model.path.
Status choose_problems(const EvalOptions& options, const fs::path& base, PipelineConfig& config) {
  const std::int32_t wanted = config.evaluation.problems;
  config.evaluation.problems = 0;
  TEMPER_TRY(const auto source, orchestrator::make_evaluation_source(config, base));
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  const auto there = static_cast<std::int32_t>(std::min(source->held_out_size(), kMost));
  if (there == 0) {
    return invalid_input(
        "the task holds out no problems (task.held_out is 0); give a file of problems: --task "
        "FILE");
  }
  if (options.problems > there) {
    return invalid_input(
        fmt::format("--problems: expected at most {} (all held-out problems), found {}",
                    there,
                    options.problems));
  }
  const bool all = options.problems == 0 && !options.task.empty();
  config.evaluation.problems = all ? there : std::min(wanted, there);
  return {};
}

/// Sets `stopped` if a signal ended the evaluation.
Result<Evaluation> evaluate(const EvalOptions& options, bool& stopped) {
  TEMPER_TRY(const TemporaryFolder folder, TemporaryFolder::create("temper-eval-"));
  Evaluation out;
  out.what = options.what;
  fs::path file = options.config;
  std::vector<std::string> sets = sets_of(options);
  TEMPER_TRY(const orchestrator::ModelExport run, orchestrator::parse_export_source(options.what));
  std::error_code ignored;
  const bool of_run = fs::exists(run.run / "config.yaml", ignored);
  if (of_run && file.empty())
    file = run.run / "config.yaml";
  if (file.empty()) {
    return invalid_input(
        fmt::format("{} is not a run folder; to evaluate a model folder, name a configuration with "
                    "engines, task "
                    "and verifier: temper eval {} --config CONFIG",
                    options.what,
                    options.what));
  }
  if (!of_run) {
    const bool is_path = fs::exists(options.what, ignored);  // Otherwise a name, such as smollm2.
    sets.push_back("model.path=" + (is_path ? fs::absolute(options.what).string() : options.what));
  }
  TEMPER_TRY(PipelineConfig config, orchestrator::load_config(file, sets));
  if (orchestrator::is_simulated(config)) {
    return invalid_input(fmt::format(
        "{}: a run on simulated hardware has no weights to evaluate; expected hardware: local",
        file.string()));
  }
  TEMPER_TRY_STATUS(
      choose_problems(options, of_run ? orchestrator::RunDir(run.run).base() : fs::path(), config));
  make_evaluation_of(config, folder.path());
  if (of_run) {
    TEMPER_TRY(out.version, provide_base(run, folder.path()));
  }
  TEMPER_TRY(const auto finish,
             orchestrator::start_run_quietly(config, orchestrator::ExistingRun::Refuse, nullptr));
  stopped = finish.stopped;
  if (!finish.ok)
    return Error{ErrorCode::Unavailable, "the evaluation ended early: " + finish.reason};
  TEMPER_TRY(const auto recorded, orchestrator::read_run(folder.path()));
  if (!recorded.summary.evaluation)
    return Error{ErrorCode::Internal, "the evaluation finished without a result"};
  const orchestrator::EvaluationSummary& e = *recorded.summary.evaluation;
  out.problems = e.problems;
  out.samples = e.samples;
  out.point = e.points.back();
  return out;
}

}  // namespace

int run_eval(const EvalOptions& options) {
  orchestrator::ignore_write_signals();
  bool stopped = false;
  const auto found = evaluate(options, stopped);
  if (!found) {
    const int code = fail(found.error());
    return stopped ? kStopped : code;
  }
  if (options.json) {
    fmt::print("{}\n", to_json(*found, JsonStyle::Pretty));
    return 0;
  }
  fmt::print(
      "{}, version {}: pass@1 {:.4f} [{:.3f}, {:.3f}]{} reward {:.4f} on {} problems, {} {} "
      "each{}, {:.1f} s\n",
      found->what,
      found->version,
      found->point.pass_1,
      found->point.pass_1_low,
      found->point.pass_1_high,
      found->samples > 1 ? fmt::format(", pass@{} {:.4f},", found->samples, found->point.pass_k)
                         : std::string(","),
      found->point.reward,
      found->problems,
      found->samples,
      found->samples == 1 ? "response" : "responses",
      found->point.failed > 0 ? fmt::format(", {} failed", found->point.failed) : std::string(),
      found->point.seconds);
  return 0;
}

Handler eval_command(Flags& flags) {
  const auto options = std::make_shared<EvalOptions>();
  flags.argument(
      "what",
      options->what,
      "Run folder (its best weights, else the newest checkpoint), RUN@STEP, RUN@best, or a model "
      "folder");
  flags.text(
      "--config", options->config, "For a model folder: YAML with engines, task and verifier");
  flags.text("--task", options->task, "JSONL file of problems (default: the held-out problems)");
  flags.count("--problems",
              options->problems,
              "Number of problems (default: all of --task, else evaluation.problems)");
  flags.count("--samples", options->samples, "Responses per problem; more than 1 are sampled");
  flags.sets(options->sets);
  flags.json(options->json);
  return [options] { return run_eval(*options); };
}

}  // namespace temper::cli
