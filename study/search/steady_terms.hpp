// The terms of the closed form in steady_state.hpp: the batch that a run draws, an engine's steps,
// and the terms of a configuration. Doubles are seconds and tokens.
#pragma once

#include "actors/simulation/packing.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "rollout/simulated/prefill_instance.hpp"
#include "study/search/steady_state.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace temper::study::steady {

/// Statistics of the first batch of the run.
struct BatchStatistics {
  static constexpr std::size_t kBins = 256;

  std::vector<Tokens> sequences;  ///< Prompt and response of every response.
  double prompt = 0;              ///< Mean prompt length.
  double mean = 0;                ///< Mean response length, like all below.
  double longest = 0;
  double residual = 0;   ///< Mean remaining length of a random running response: E[x^2] / (2 E[x]).
  double group_end = 0;  ///< Mean of the longest of a group.
  std::array<double, kBins + 2> longer{};  ///< Share longer than the start of each bin.
  std::array<double, kBins + 2>
      left_over{};  ///< Integral of `longer` from each bin on, over the mean.

  /// The packing of the first `count` sequences.
  const actors::Packing& packed(std::int64_t count, const actors::PackingLimits& limits) {
    const auto end = sequences.begin() + count;
    return packings_.try_emplace(count, std::vector(sequences.begin(), end)).first->second(limits);
  }
  /// Share of responses longer than `tokens`.
  double survivors(double tokens) const { return look_up(longer, tokens); }
  /// Share of running responses with more than `tokens` left.
  double residual_survivors(double tokens) const { return look_up(left_over, tokens); }

 private:
  double look_up(const std::array<double, kBins + 2>& table, double tokens) const {
    const double at = std::max(0.0, tokens / longest * kBins);
    if (at >= kBins)
      return 0;
    const auto bin = static_cast<std::size_t>(at);
    const double rest = at - static_cast<double>(bin);
    return table[bin] * (1 - rest) + table[bin + 1] * rest;
  }

  std::map<std::int64_t, actors::Packings> packings_;
};

BatchStatistics draw(const orchestrator::PipelineConfig& config,
                     const actors::SimulationConfig& simulation);

/// An engine and its step times.
struct Engine {
  rollout::EngineCost cost;
  std::optional<rollout::PrefillInstance> prefill_instance{};
  double replicas = 1;
  double cache = 0;  ///< Tokens per replica.
  double swap = 0;   ///< Switching to new weights.
  /// Seconds, by number of prompts and tokens of each.
  std::map<std::pair<std::int64_t, std::int64_t>, double> prefill{};

  explicit Engine(const actors::SimulationSettings& settings);

  /// Seconds of a decode step with `b` responses on each replica.
  double step(double b, double context);
  /// Seconds to prefill this many prompts of `tokens` each.
  double prefill_seconds(std::int64_t prompts, double tokens);
};

/// The terms of a configuration for steady_equations.cpp.
struct SteadyTerms {
  const BatchStatistics& batch;
  Engine& engine;
  double eta = 0;
  double fresh = 0;  ///< Responses of a batch per replica.
  double slots = 0;  ///< Per replica.
  double used = 0;   ///< Mean number of used slots if groups wait for them.
  double full = 0;   ///< The same, or the responses that the cache holds at random progress.
  double update = 0, publish = 0, prefill = 0;  ///< prefill includes the switch to new weights.
  double scoring = 0;                           ///< The reference's pass over a batch.
  double scored = 0;                            ///< Scoring of one group without a queue.
  double report = 0;  ///< Mean time from the end of a response to its report.
  double to_rollout = 0, to_training = 0;
  double return_share = 0;
  double group = 1;  ///< Responses per group.

  double context() const { return batch.prompt + batch.residual; }
  /// Seconds from a group's last response to its last score if the reference is busy for this
  /// share.
  double latency(double busy) const {
    return report + std::min(scoring + scored, scored * (1 + 0.5 / std::max(0.05, 1 - busy)));
  }
  /// Seconds that a response holds its slot if all are taken: until its end is reported. If the
  /// cache limits, another response waits in the engine.
  double held() const {
    const double decode = batch.mean * engine.step(full, context());
    return full < used ? decode : decode + report;
  }
};

/// The steady state of a configuration with these terms.
SteadyState solve_steady_state(const SteadyTerms& terms,
                               const orchestrator::PlacementConfig& cards);

}  // namespace temper::study::steady
