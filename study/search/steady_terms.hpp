// What the closed form of steady_state.hpp is made of: the batch that a run draws, an
// engine's steps, and a configuration as the terms of the equations. Doubles are seconds and
// tokens.
#pragma once

#include "actors/simulation/packing.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "rollout/simulated/engine_cost.hpp"
#include "study/search/steady_state.hpp"

#include <algorithm>
#include <array>
#include <map>
#include <utility>
#include <vector>

namespace temper::study::steady {

/// What the first batch of the run draws.
struct BatchStatistics {
  static constexpr std::size_t kBins = 256;

  std::vector<Tokens> sequences;  ///< Prompt and response, of every response.
  double prompt = 0;              ///< Mean.
  double mean = 0;                ///< Of responses, as all below.
  double longest = 0;
  double residual = 0;   ///< Mean of what is left of one met at random: E[x^2] / (2 E[x]).
  double group_end = 0;  ///< Mean of the longest of a group.
  std::array<double, kBins + 2> longer{};     ///< Share longer than a bin's begin.
  std::array<double, kBins + 2> left_over{};  ///< Of `longer`: integral from there on, over mean.

  /// The packing of the first `count` sequences.
  const actors::Packing& packed(std::int64_t count, const actors::PackingLimits& limits) {
    const auto end = sequences.begin() + count;
    return packings_.try_emplace(count, std::vector(sequences.begin(), end)).first->second(limits);
  }
  /// Share longer than `tokens`.
  double survivors(double tokens) const { return look_up(longer, tokens); }
  /// Share of responses met at random that have more than `tokens` left.
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

/// An engine and its steps.
struct Engine {
  rollout::EngineCost cost;
  double replicas = 1;
  double cache = 0;  ///< Tokens of a replica.
  double swap = 0;   ///< Taking over new weights.
  /// Seconds, by prompts and the tokens of each.
  std::map<std::pair<std::int64_t, std::int64_t>, double> prefill{};

  explicit Engine(const actors::SimulationSettings& settings);

  /// Seconds of a decode step of `b` responses on each replica.
  double step(double b, double context);
  /// Seconds to prefill so many prompts of `tokens` each.
  double prefill_seconds(std::int64_t prompts, double tokens);
};

/// All that a configuration means for steady_equations.cpp.
struct SteadyTerms {
  const BatchStatistics& batch;
  Engine& engine;
  double eta = 0;
  double fresh = 0;  ///< Responses of a batch per replica.
  double slots = 0;  ///< Of a replica.
  double used = 0;   ///< Of these on average, where groups wait for them.
  double full = 0;   ///< The same, or what its cache holds of responses met at random.
  double update = 0, publish = 0, prefill = 0;  ///< prefill: with taking over weights.
  double scoring = 0;                           ///< The reference's pass over a batch.
  double scored = 0;                            ///< Scores of one group, without a queue.
  double report = 0;  ///< From the end of a response until its engine says so, the mean.
  double to_rollout = 0, to_training = 0;
  double return_share = 0;
  double group = 1;  ///< Responses of one.

  double context() const { return batch.prompt + batch.residual; }
  /// From a group's last response to its last score where the reference is busy for this share.
  double latency(double busy) const {
    return report + std::min(scoring + scored, scored * (1 + 0.5 / std::max(0.05, 1 - busy)));
  }
  /// Seconds that a response has its slot where all are taken: it is free again when the end has
  /// been said. Where the cache limits, another one waits in the engine.
  double held() const {
    const double decode = batch.mean * engine.step(full, context());
    return full < used ? decode : decode + report;
  }
};

/// The steady state of a configuration with these terms.
SteadyState settle(const SteadyTerms& terms, const orchestrator::PlacementConfig& cards);

}  // namespace temper::study::steady
