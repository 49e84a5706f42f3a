#include "study/search/tune_machine.hpp"

#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "study/machine/machine_run.hpp"
#include "study/search/tune_judge.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace temper::study {
namespace {

constexpr std::int32_t kMostEngines = 2;

/// Every placement, bound and number of engines, for each combination that the user varies.
Result<std::vector<VariedConfig>> machine_points(const TuneOptions& options,
                                                 const std::vector<double>& etas,
                                                 const orchestrator::PipelineConfig& given) {
  TEMPER_TRY(const std::vector<VariedConfig> varied, varied_configs(options));
  std::vector<VariedConfig> all;
  for (const VariedConfig& combination : varied) {
    for (const orchestrator::PlacementMode mode : options.modes) {
      for (const double eta : etas) {
        for (std::int32_t n = 1; n <= std::min(given.placement.cards, kMostEngines); ++n) {
          VariedConfig one = combination;
          one.sets.push_back(fmt::format("placement.mode={}", name_of(mode)));
          one.sets.push_back(fmt::format("staleness.bound={:g}", eta));
          one.sets.push_back(fmt::format("rollout.replicas={}", n));
          TEMPER_TRY(one.config, options.config.load_valid(one.sets));
          all.push_back(std::move(one));
        }
      }
    }
  }
  return all;
}

/// Lengths of a recorded run, cut to this run's limit; without a record, the calibration's.
RecordedLengths lengths_of(const TuneOptions& options, Tokens most) {
  RecordedLengths out;
  if (options.lengths) {
    out.response = [&run = *options.lengths, most](ResponseId r, GroupId) {
      return std::min(run.response(r), most);
    };
  }
  return out;
}

/// Error of the fits behind a forecast of the given configuration (tune.hpp).
double forecast_error(const MachineModel& calibration, const Figures& given) {
  constexpr std::pair<actors::CardState, std::string_view> kKinds[] = {
      {actors::CardState::Decode, ": decode"},
      {actors::CardState::Prefill, ": prefill"},
      {actors::CardState::Train, ": update"},
      {actors::CardState::Reference, ": reference"}};
  double weights = 0, sum = 0;
  for (const auto& [state, kind] : kKinds) {
    const auto spent = given.whole.states.find(state);
    if (spent == given.whole.states.end())
      continue;
    double error = 0;
    int fits = 0;
    for (const MachineFit& fit : calibration.fits) {
      if (!fit.constants.ends_with(kind))
        continue;
      error += fit.error;
      ++fits;
    }
    if (fits == 0)
      continue;
    weights += spent->second;
    sum += spent->second * error / fits;
  }
  return (weights > 0 ? sum / weights : 0) + calibration.others;
}

}  // namespace

Result<std::vector<VariedConfig>> varied_configs(const TuneOptions& options) {
  TEMPER_TRY(const auto varied, combinations(options.vary));
  std::vector<VariedConfig> out;
  for (const std::vector<std::string>& words : varied) {
    VariedConfig one{options.sets, fmt::format("{}", fmt::join(words, " ")), {}};
    one.sets.insert(one.sets.end(), words.begin(), words.end());
    TEMPER_TRY(one.config, options.config.load_valid(one.sets));
    out.push_back(std::move(one));
  }
  return out;
}

Result<TuneResult> tune_machine(const TuneOptions& options,
                                const std::vector<double>& etas,
                                const orchestrator::PipelineConfig& given) {
  TEMPER_TRY(const std::vector<VariedConfig> all, machine_points(options, etas, given));
  const TuneJudge judge(options);
  TuneResult out;
  out.objective = options.objective;
  std::vector<orchestrator::PipelineConfig> configs{given};
  out.tried.push_back(
      {tune_row(given, orchestrator::resolve_placement(given), "as given", ""), given, {}});
  for (const VariedConfig& one : all) {
    Status fits = check_forecastable(one.config, *options.calibration);
    if (fits)
      fits = check_rules(one.config);
    if (!fits) {
      ++out.refused[fits.error().context];
      continue;
    }
    configs.push_back(one.config);
    const orchestrator::PlacementConfig cards = orchestrator::resolve_placement(one.config);
    out.tried.push_back({tune_row(one.config, cards, "local", one.text), one.config, {}});
  }
  out.screened = all.size();
  out.fitting = configs.size() - 1;
  const auto results = forecast_all(configs,
                                    *options.calibration,
                                    {options.threads,
                                     1,
                                     [&](std::size_t done, std::size_t of) {
                                       if (options.on_progress)
                                         options.on_progress({"predicted runs", done, of, ""});
                                     }},
                                    lengths_of(options, given.sampling.max_new_tokens));
  for (std::size_t i = 0; i < results.size(); ++i)
    judge.fill(out.tried[i], results[i], &Figures::whole);
  if (results.front())
    out.error = forecast_error(*options.calibration, *results.front());
  TEMPER_TRY_STATUS(judge.choose(out));
  return out;
}

}  // namespace temper::study
