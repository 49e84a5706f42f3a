#include "study/forecast/whatif.hpp"

#include "actors/simulation/lengths.hpp"
#include "core/yaml_tree.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "study/machine/run_calibration.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <iterator>

namespace temper::study {
namespace {

namespace fs = std::filesystem;

constexpr int kRounds = 6;

/// Keys, or sections, that change the scheduler's decisions but not the time of work.
constexpr std::string_view kSchedulingKeys[] = {"staleness.",
                                                "stragglers.",
                                                "placement.",
                                                "rollout.replicas",
                                                "rollout.concurrency",
                                                "reference.replicas",
                                                "reward.replicas",
                                                "algorithm.groups_per_update",
                                                "algorithm.responses_per_group",
                                                "algorithm.minibatches",
                                                "checkpoint.every",
                                                "steps"};
/// For simulated runs: keys whose effect the cost model knows.
constexpr std::string_view kCostModelKeys[] = {"simulation.cluster",
                                               "simulation.clusters",
                                               "simulation.between.",
                                               "simulation.rollout.",
                                               "simulation.trainer.",
                                               "simulation.reference.",
                                               "simulation.reward.",
                                               "simulation.publication.",
                                               "simulation.checkpoint.",
                                               "simulation.experts.",
                                               "simulation.framework",
                                               "simulation.shared_host_links",
                                               "simulation.tensors.",
                                               "simulation.tools",
                                               "simulation.tools.",
                                               "rollout.on_new_weights"};

/// For local runs: the agent. Where the run does not describe it, these do, before and after the
/// change.
constexpr std::string_view kDescriptionKeys[] = {"simulation.tools", "simulation.tools."};

bool is_one_of(std::string_view key, std::span<const std::string_view> keys) {
  return std::ranges::any_of(keys, [&](std::string_view known) {
    return known.ends_with('.') ? key.starts_with(known) : key == known;
  });
}

/// Numbers and devices of a teacher's actors; its model and engine are those of its times.
bool is_of_actors_of_teacher(std::string_view key) {
  constexpr std::string_view kTeachers = "reference.teachers.";
  if (!key.starts_with(kTeachers))
    return false;
  const std::string_view of_teacher =
      key.substr(std::min(key.find('.', kTeachers.size()), key.size()));
  return of_teacher == ".replicas" || of_teacher == ".cards";
}

void collect_keys(const YamlNode& node, const std::string& key, std::vector<std::string>& to) {
  if (node.kind != YamlNode::Kind::Map || (node.entries.empty() && !key.empty()))
    return to.push_back(key);
  for (const YamlNode::Entry& entry : node.entries)
    collect_keys(entry.node, key.empty() ? entry.key : key + "." + entry.key, to);
}

/// The keys that are set, also those of a section that is set as a whole, and `~KEY` for a section
/// that is removed.
std::vector<std::string> keys_of(const std::vector<std::string>& sets) {
  std::vector<std::string> keys, values;
  std::ranges::partition_copy(
      sets, std::back_inserter(keys), std::back_inserter(values), [](const std::string& set) {
        return set.starts_with('~');
      });
  collect_keys(YamlDocument("--set", "{}", values).root(), "", keys);
  return keys;
}

std::vector<std::string> descriptions_in(const std::vector<std::string>& sets) {
  std::vector<std::string> out;
  std::ranges::copy_if(sets, std::back_inserter(out), [](const std::string& set) {
    return std::ranges::all_of(
        keys_of({set}), [](const std::string& key) { return is_one_of(key, kDescriptionKeys); });
  });
  return out;
}

/// Checks that the log or the cost model determines the effect of each key.
Status check_effect_known(const std::vector<std::string>& sets,
                          const orchestrator::PipelineConfig& config) {
  const bool simulated = config.hardware == orchestrator::HardwareKind::Simulated;
  for (const std::string& key : keys_of(sets)) {
    if (is_one_of(key, kSchedulingKeys) || is_of_actors_of_teacher(key) ||
        (simulated && is_one_of(key, kCostModelKeys)) ||
        (!simulated && is_one_of(key, kDescriptionKeys)))
      continue;
    return invalid_input(fmt::format(
        "{}: its effect cannot be determined from a recorded run, because {} would change",
        key,
        simulated ? "response lengths or the model" : "responses or engine times"));
  }
  return {};
}

struct RecordedRun {
  orchestrator::ResolvedPipeline pipeline;
  RunRecord record;
  Figures figures;
};

Result<RecordedRun> read_run(const fs::path& run, const std::vector<std::string>& descriptions) {
  RecordedRun out;
  TEMPER_TRY(out.record, read_run_record(run));
  TEMPER_TRY(orchestrator::PipelineConfig config, orchestrator::load_config(run / "config.yaml"));
  if (!config.simulation.tools && config.hardware == orchestrator::HardwareKind::Local) {
    TEMPER_TRY(config, orchestrator::load_config(run / "config.yaml", descriptions));
  }
  TEMPER_TRY(out.pipeline, orchestrator::resolve(std::move(config)));
  auto figures = figures_of_log(run / "events.log", out.pipeline);
  if (!figures) {
    return invalid_input(
        fmt::format("{}: the run did not complete ({}), so there is no baseline to compare with",
                    run.string(),
                    figures.error().context));
  }
  out.figures = *std::move(figures);
  return out;
}

/// Repeats the scheduling of one recorded run.
class Rescheduler {
 public:
  static Result<Rescheduler> make(const RecordedRun& recorded, const WhatifOptions& options) {
    Rescheduler rescheduler(recorded);
    if (recorded.pipeline.config.hardware == orchestrator::HardwareKind::Simulated) {
      TEMPER_TRY_STATUS(rescheduler.check_lengths());
      TEMPER_TRY(rescheduler.unchanged_, simulate(recorded.pipeline.config));
    } else {
      TEMPER_TRY_STATUS(rescheduler.set_levels(options.shape));
    }
    return rescheduler;
  }

  const Figures& unchanged() const { return unchanged_; }
  Result<Figures> with(const orchestrator::PipelineConfig& config) const {
    if (config.hardware == orchestrator::HardwareKind::Simulated)
      return simulate(config);
    const RunRecord& record = recorded_->record;
    return forecast_run(config,
                        calibration_,
                        {[&record](GroupId group) { return record.prompt(group); },
                         [&record](ResponseId r, GroupId) { return record.response(r); }});
  }

 private:
  explicit Rescheduler(const RecordedRun& recorded) : recorded_(&recorded) {}

  /// Response lengths follow from response numbers and the run's seed; the log of another program
  /// version may differ.
  Status check_lengths() const {
    const orchestrator::ResolvedPipeline& pipeline = recorded_->pipeline;
    const actors::Lengths lengths(
        pipeline.simulation->config.response, pipeline.config.seed, actors::kResponseLengths);
    for (const auto& [response, tokens] : recorded_->record.finished()) {
      const Tokens now = lengths.of(response.value(), recorded_->record.group_of(response).value());
      if (now.count() == tokens)
        continue;
      return invalid_input(fmt::format(
          "response {} has {} tokens in the log, but {} by the run's configuration: another "
          "program version made the log; repeat the run",
          response,
          tokens,
          now.count()));
    }
    return {};
  }

  Status set_levels(const std::optional<MachineModel>& shape) {
    calibration_ = shape ? *shape : recorded_->record.calibration(recorded_->pipeline.config);
    for (int round = 0;; ++round) {
      TEMPER_TRY(unchanged_, with(recorded_->pipeline.config));
      if (round == kRounds)
        return {};
      std::map<actors::CardState, double> factors;
      for (const auto& [state, seconds] : recorded_->record.spans()) {
        const double now = unchanged_.spans[state];
        factors[state] = now > 0 && seconds > 0 ? seconds / now : 1;
      }
      scale(calibration_, factors);
    }
  }

  const RecordedRun* recorded_;
  MachineModel calibration_;
  Figures unchanged_;
};

}  // namespace

Result<Whatif> whatif(const WhatifOptions& options) {
  if (options.sets.empty())
    return invalid_input("nothing to change; give --set key=value");
  TEMPER_TRY(const RecordedRun recorded, read_run(options.run, descriptions_in(options.sets)));
  TEMPER_TRY(const orchestrator::PipelineConfig other,
             orchestrator::load_config(options.run / "config.yaml", options.sets));
  TEMPER_TRY_STATUS(check_effect_known(options.sets, recorded.pipeline.config));
  TEMPER_TRY(const Rescheduler rescheduler, Rescheduler::make(recorded, options));
  TEMPER_TRY(const Figures figures, rescheduler.with(other));

  Whatif out;
  out.run = options.run.string();
  out.changed = fmt::format("{}", fmt::join(options.sets, " "));
  out.recorded = run_figures(recorded.figures);
  out.unchanged = run_figures(rescheduler.unchanged());
  out.counterfactual = run_figures(figures);
  out.recorded_lengths = std::ssize(recorded.record.finished());
  out.error = out.unchanged.trained_per_s / out.recorded.trained_per_s - 1;
  out.expected = out.counterfactual;
  const auto expected = [&](double RunFigures::*figure) {
    return out.recorded.*figure * out.counterfactual.*figure / out.unchanged.*figure;
  };
  out.expected.trained_per_s = expected(&RunFigures::trained_per_s);
  out.expected.generated_per_s = expected(&RunFigures::generated_per_s);
  out.expected.seconds = expected(&RunFigures::seconds);
  out.regret_per_s = out.expected.trained_per_s - out.recorded.trained_per_s;
  out.regret_s = out.recorded.seconds - out.expected.seconds;
  const double gain = out.regret_per_s / out.recorded.trained_per_s;
  if (std::abs(gain) > std::abs(out.error))
    out.verdict = gain > 0 ? Whatif::Verdict::Wins : Whatif::Verdict::Loses;
  return out;
}

std::string whatif_text(const Whatif& w) {
  std::string out = fmt::format("{:<34} {:>16} {:>14} {:>9} {:>8} {:>10}\n",
                                "",
                                "trained tokens/s",
                                "generated/s",
                                "wall s",
                                "busy",
                                "staleness");
  const auto line = [&](const std::string& what, const RunFigures& f) {
    out += fmt::format("{:<34} {:>16.1f} {:>14.1f} {:>9.2f} {:>7.1f}% {:>10.2f}\n",
                       what,
                       f.trained_per_s,
                       f.generated_per_s,
                       f.seconds,
                       100 * f.busy,
                       f.staleness_mean);
  };
  line("recorded", w.recorded);
  line("rescheduled, unchanged", w.unchanged);
  line("rescheduled, with the change", w.counterfactual);
  line("expected, with the change", w.expected);
  out += fmt::format("changed: {}\n", w.changed);
  out += fmt::format("error on unchanged settings {:+.1f} % of trained tokens/s\n", 100 * w.error);
  const double gain = 100 * w.regret_per_s / w.recorded.trained_per_s;
  out += fmt::format(
      "regret {:+.1f} trained tokens/s ({:+.1f} %), {:+.2f} s: ", w.regret_per_s, gain, w.regret_s);
  switch (w.verdict) {
    case Whatif::Verdict::Wins:
      out += "the change wins by more than the error on unchanged settings\n";
      break;
    case Whatif::Verdict::Loses:
      out += "the recorded settings win by more than the error on unchanged settings\n";
      break;
    case Whatif::Verdict::Same:
      out += "the difference is within the error on unchanged settings\n";
      break;
  }
  return out;
}

}  // namespace temper::study
