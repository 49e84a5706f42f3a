#include "core/yaml.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/validate.hpp"
#include "study/simulate/layouts.hpp"
#include "study/sweep/sweep.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <span>

namespace temper::study {
namespace {

using Config = orchestrator::PipelineConfig;

// --- Validation

bool is_fitted(std::string_view key) {
  for (const char* fitted : {"tp", "pp", "vpp", "cp", "ep", "micro_batch_tokens"}) {
    if (key == fmt::format("simulation.trainer.{}", fitted))
      return true;
  }
  return key == "simulation.rollout.ep" || key == "simulation.rollout.kv_share";
}

/// The axes with the flags that gave them.
std::vector<std::pair<std::string_view, const SweepAxis*>> axes_of(const SweepOptions& options) {
  std::vector<std::pair<std::string_view, const SweepAxis*>> out;
  for (const SweepAxis& axis : options.over)
    out.emplace_back("--over", &axis);
  for (const SweepAxis& axis : options.any)
    out.emplace_back("--any", &axis);
  return out;
}

/// Whether the keys are equal, or one is the section of the other.
bool overlap(std::string_view a, std::string_view b) {
  const auto [shorter, longer] =
      std::minmax(a, b, [](auto x, auto y) { return x.size() < y.size(); });
  return longer.starts_with(shorter) &&
         (longer.size() == shorter.size() || longer[shorter.size()] == '.');
}

/// A key that two options set is an error.
Status check_keys(const SweepOptions& options) {
  std::vector<std::pair<std::string, std::string>> taken{{"run_dir", "is set by the sweep"}};
  if (!options.seeds.empty())
    taken.emplace_back("seed", "is set by --seeds");
  if (options.steps > 0)
    taken.emplace_back("steps", "is set by --steps");
  if (options.steady_steps > 0)
    taken.emplace_back("steps", "is set by --steady");
  for (const auto& [flag, axis] : axes_of(options)) {
    for (const std::string& key : axis->keys) {
      for (const auto& [other, why] : taken) {
        if (overlap(other, key))
          return invalid_input(
              fmt::format("{} {}: {} {}; remove it", flag, axis->name(), key, why));
      }
      if (options.layouts == SweepOptions::Layouts::Fitted && is_fitted(key))
        return invalid_input(fmt::format("{}: set by --fit; remove one of the two", key));
      taken.emplace_back(key, fmt::format("is already set by {}", flag));
    }
  }
  for (const std::string& set : options.sets) {
    for (const auto& [key, why] : taken) {
      if (set.starts_with(key + "="))
        return invalid_input(fmt::format("--set {}: {} {}; remove it", set, key, why));
    }
  }
  return {};
}

/// The first error in the values of an axis by themselves.
Status check_values(const SweepOptions& options) {
  for (const auto& [flag, axis] : axes_of(options)) {
    for (std::size_t place = 0; place < axis->values.size(); ++place) {
      std::vector<std::string> sets = options.sets;
      std::ranges::move(axis->sets(place), std::back_inserter(sets));
      TEMPER_TRY(const auto loaded, options.config.load(sets));
      if (!loaded.value_issues().empty()) {
        const ConfigIssue& issue = loaded.value_issues().front();
        return invalid_input(fmt::format(
            "{} {}={}: {}: {}", flag, axis->name(), axis->text(place), issue.key, issue.message));
      }
      if (std::ranges::count(std::span(axis->values).first(place), axis->values[place]) > 0) {
        return invalid_input(
            fmt::format("{} {}: {} is given twice", flag, axis->name(), axis->text(place)));
      }
    }
  }
  return {};
}

Status check(const SweepOptions& options) {
  if (!std::isfinite(options.target_reward))
    return invalid_input("--target-reward: expected a number");
  if (options.steps > 0 && options.steady_steps > 0)
    return invalid_input("--steps and --steady: give one of the two");
  if (options.over.empty())
    return invalid_input("nothing to sweep; give --over key=value,value");
  TEMPER_TRY_STATUS(check_keys(options));
  TEMPER_TRY(const auto loaded, options.config.load(options.sets));
  if (!loaded.value_issues().empty())
    return invalid_input(render(loaded.value_issues()));
  TEMPER_TRY_STATUS(check_values(options));
  std::size_t runs = std::max<std::size_t>(1, options.seeds.size());
  for (const auto& [flag, axis] : axes_of(options)) {
    runs *= axis->values.size();
    if (runs > kMostCombinations) {
      return invalid_input(fmt::format(
          "the sweep has more than {} runs; give fewer values or seeds", kMostCombinations));
    }
  }
  return {};
}

// --- Configurations

/// Makes configurations from sets, each with its layout if requested.
class ConfigurationMaker {
 public:
  explicit ConfigurationMaker(const SweepOptions& options) : options_(options) {}

  /// Fills in the configuration of a job, or the reason why it cannot run. Error: of the whole
  /// sweep.
  Status make(SweepJob& job, const std::vector<std::string>& sets) {
    TEMPER_TRY(const auto loaded, options_.config.load(sets));
    if (!loaded.value_issues().empty())
      return invalid_input(render(loaded.value_issues()));
    job.config = loaded.config();
    if (options_.steps > 0)
      job.config.steps = options_.steps;
    if (options_.steady_steps > 0) {
      job.config.steps =
          steps_for(options_.steady_steps, static_cast<std::int32_t>(job.config.staleness.bound));
    }
    if (options_.layouts == SweepOptions::Layouts::Fitted)
      TEMPER_TRY_STATUS(fit(job));
    if (const Status status = check_rules(job.config); !status)
      refuse(job, status.error());
    return {};
  }

 private:
  static void refuse(SweepJob& job, const Error& error) {
    if (job.run.end == SweepEnd::Ran)
      job.run.reason = error.context;
    job.run.end = SweepEnd::NotRun;
  }

  Status fit(SweepJob& job) {
    if (job.config.hardware != orchestrator::HardwareKind::Simulated)
      return invalid_input("hardware: found local, expected `simulated` for --fit");
    TEMPER_TRY(LayoutChooser * chooser, chooser_for(job.config));
    auto fitted = chooser->complete(job.config, orchestrator::resolve_placement(job.config));
    if (!fitted) {
      refuse(job, fitted.error());
      return {};
    }
    job.config = *std::move(fitted);
    const actors::TrainerEngineConfig& t = job.config.simulation.trainer;
    job.run.trainer =
        fmt::format("tp {} pp {} cp {} ep {} {}", t.tp, t.pp, t.cp, t.ep, t.micro_batch_tokens);
    job.run.kv_share = job.config.simulation.rollout.kv_share;
    return {};
  }

  /// Shared by all configurations that differ only in settings that a chooser decides or allows.
  Result<LayoutChooser*> chooser_for(const Config& config) {
    Config alike = config;
    alike.steps = 1;
    alike.staleness = {};
    alike.placement = {};
    alike.rollout = {};
    alike.reference = {};
    alike.reward = {};
    alike.simulation.rollout = {};
    const actors::TrainerEngineConfig& trainer = config.simulation.trainer;
    alike.simulation.trainer = {};
    alike.simulation.trainer.optimizer_on_host = trainer.optimizer_on_host;
    alike.simulation.trainer.layer_balance = trainer.layer_balance;
    alike.simulation.trainer.mechanisms = trainer.mechanisms;
    alike.simulation.trainer.activations = trainer.activations;
    alike.simulation.trainer.mtp = trainer.mtp;
    alike.simulation.trainer.data_balance = trainer.data_balance;
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
  std::map<std::string, LayoutChooser> choosers_;
};

}  // namespace

bool is_real_run(const Config& config) {
  return config.hardware == orchestrator::HardwareKind::Local ||
         config.policy == actors::PolicyKind::Torch;
}

Result<std::vector<SweepJob>> sweep_jobs(const SweepOptions& options) {
  TEMPER_TRY_STATUS(check(options));
  ConfigurationMaker maker(options);
  std::vector<SweepAxis> axes = options.over;
  axes.insert(axes.end(), options.any.begin(), options.any.end());
  std::vector<SweepJob> jobs;
  for (std::size_t n = 0; n < combination_count(axes); ++n) {
    const std::vector<std::size_t> places = combination(axes, n);
    SweepJob job;
    for (std::size_t i = 0; i < axes.size(); ++i)
      std::ranges::copy(axes[i].values[places[i]], std::back_inserter(job.values));
    std::vector<std::string> sets = options.sets;
    add_sets(sets, axes, places);
    TEMPER_TRY_STATUS(maker.make(job, sets));
    for (std::size_t i = 0; i < std::max<std::size_t>(1, options.seeds.size()); ++i) {
      if (!options.seeds.empty())
        job.config.seed = options.seeds[i];
      job.run.seed = job.config.seed;
      jobs.push_back(job);
    }
  }
  const auto runs = [](const SweepJob& job) { return job.run.end != SweepEnd::NotRun; };
  if (std::ranges::none_of(jobs, runs)) {
    const auto names = short_names(keys_of(options.over, options.any));
    return invalid_input(fmt::format("no configuration of the sweep can run; {}: {}",
                                     setting_text(names, jobs.front().values),
                                     jobs.front().run.reason));
  }
  return jobs;
}

}  // namespace temper::study
