#include "study/simulate/sweep.hpp"

#include "core/files.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "study/simulate/layouts.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::study {
namespace {

bool is_fitted(std::string_view key) {
  for (const char* fitted : {"tp", "pp", "vpp", "cp", "ep", "micro_batch_tokens"}) {
    if (key == fmt::format("simulation.trainer.{}", fitted))
      return true;
  }
  return key == "simulation.rollout.ep" || key == "simulation.rollout.kv_share";
}

/// Makes configurations from sets, each with its layout if requested.
class ConfigurationMaker {
 public:
  ConfigurationMaker(const SweepOptions& options, std::string text)
      : options_(options), text_(std::move(text)) {}

  /// Outer error: of the whole sweep. Inner error: of this configuration only.
  Result<Result<orchestrator::PipelineConfig>> make(const std::vector<std::string>& sets) {
    auto read = read_yaml<orchestrator::PipelineConfig>(options_.config.string(), text_, sets);
    if (!read.issues.empty())
      return invalid_input(render(locate(read.document, std::move(read.issues))));
    orchestrator::PipelineConfig config = std::move(read.value);
    if (config.hardware != orchestrator::HardwareKind::Simulated)
      return invalid_input("hardware: found local, expected `simulated` for a sweep");
    orchestrator::set_simulated_defaults(
        config, [&](const std::string& key) { return read.places.contains(key); });
    if (options_.steady_updates > 0)
      config.steps =
          steps_for(options_.steady_updates, static_cast<std::int32_t>(config.staleness.bound));
    if (options_.layouts == SweepOptions::Layouts::AsGiven)
      return Result<orchestrator::PipelineConfig>(std::move(config));
    TEMPER_TRY(LayoutChooser * chooser, chooser_for(config));
    const orchestrator::PlacementConfig cards = orchestrator::resolve_placement(config);
    return chooser->complete(std::move(config), cards);
  }

 private:
  /// Shared by all configurations that differ only in settings that a chooser decides or allows.
  Result<LayoutChooser*> chooser_for(const orchestrator::PipelineConfig& config) {
    orchestrator::PipelineConfig alike = config;
    alike.steps = 1;
    alike.staleness = {};
    alike.placement = {};
    alike.rollout = {};
    alike.reference = alike.reward = {};
    alike.simulation.rollout = {};
    const actors::TrainerEngineConfig& trainer = config.simulation.trainer;
    alike.simulation.trainer = {};
    alike.simulation.trainer.optimizer_on_host = trainer.optimizer_on_host;
    alike.simulation.trainer.layer_balance = trainer.layer_balance;
    alike.simulation.trainer.mechanisms = trainer.mechanisms;
    const std::string key = to_yaml(alike);
    auto known = choosers_.find(key);
    if (known == choosers_.end()) {
      TEMPER_TRY(const orchestrator::ResolvedPipeline like, orchestrator::resolve(config));
      TEMPER_TRY(LayoutChooser chooser, LayoutChooser::create(like));
      known = choosers_.emplace(key, std::move(chooser)).first;
    }
    return &known->second;
  }

  const SweepOptions& options_;
  const std::string text_;
  std::map<std::string, LayoutChooser> choosers_;
};

/// A configuration to run, and its point.
struct Job {
  std::size_t point = 0;
  std::vector<std::size_t> any;
};

void note_refused(SweepPoint& point, const std::string& reason) {
  ++point.refused;
  if (point.reason.empty())
    point.reason = reason;
}

void keep_if_best(SweepPoint& point,
                  const Job& job,
                  const orchestrator::PipelineConfig& config,
                  const Figures& figures) {
  if (point.figures && figures.steady.sustained_per_s <= point.figures->steady.sustained_per_s)
    return;
  point.any = job.any;
  point.config = config;
  point.figures = figures;
}

Status check_axes(const SweepOptions& options) {
  if (options.over.empty())
    return invalid_input("nothing to sweep; give --over key=value,value");
  std::vector<std::string> seen;
  for (const auto* axes : {&options.over, &options.any}) {
    for (const SweepAxis& axis : *axes) {
      for (const std::string& key : axis.keys) {
        if (std::ranges::find(seen, key) != seen.end())
          return invalid_input(fmt::format("{}: given twice in --over or --any", key));
        seen.push_back(key);
        if (options.layouts == SweepOptions::Layouts::Fitted && is_fitted(key))
          return invalid_input(fmt::format("{}: set by --fit; remove one of the two", key));
      }
    }
  }
  const std::size_t over = combination_count(options.over), any = combination_count(options.any);
  if (over > kMostCombinations || any > kMostCombinations || over * any > kMostCombinations)
    return invalid_input(fmt::format("the sweep has more than {} combinations; give fewer values",
                                     kMostCombinations));
  return {};
}

}  // namespace

Result<Sweep> run_sweep(const SweepOptions& options) {
  TEMPER_TRY_STATUS(check_axes(options));
  TEMPER_TRY(std::string text, read_file(options.config));
  ConfigurationMaker maker(options, std::move(text));
  Sweep sweep{options.over, options.any, {}};
  std::vector<Job> jobs;
  std::vector<orchestrator::PipelineConfig> configs;
  for (std::size_t p = 0; p < combination_count(options.over); ++p) {
    SweepPoint& point = sweep.points.emplace_back();
    point.over = combination(options.over, p);
    for (std::size_t a = 0; a < combination_count(options.any); ++a) {
      Job job{p, combination(options.any, a)};
      std::vector<std::string> sets = options.sets;
      add_sets(sets, options.over, point.over);
      add_sets(sets, options.any, job.any);
      TEMPER_TRY(auto config, maker.make(sets));
      ++point.tried;
      if (!config) {
        note_refused(point, config.error().context);
        continue;
      }
      jobs.push_back(std::move(job));
      configs.push_back(*std::move(config));
    }
  }
  const auto results = simulate_all(configs, options.simulate);
  for (std::size_t i = 0; i < jobs.size(); ++i) {
    SweepPoint& point = sweep.points[jobs[i].point];
    if (results[i])
      keep_if_best(point, jobs[i], configs[i], *results[i]);
    else
      note_refused(point, results[i].error().context);
  }
  return sweep;
}

}  // namespace temper::study
