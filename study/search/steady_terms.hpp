// The terms of the closed form in steady_state.hpp: the batch that a run draws, an engine's steps,
// and the terms of a configuration. Doubles are seconds and tokens.
#pragma once

#include "actors/simulation/packing.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "rollout/simulated/prefill_instance.hpp"
#include "study/search/steady_state.hpp"
#include "study/simulate/first_batch.hpp"

#include <algorithm>
#include <array>
#include <deque>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace temper::study::steady {

/// A response of the first batch.
struct ResponseWork {
  double sampled = 0;  ///< Tokens that it decodes; the others are results of tools.
  double calls = 0;
  double waiting = 0;  ///< Seconds that its tools take.
};

/// The results that responses of a batch get from tools.
struct ToolResults {
  static constexpr std::size_t kQuantiles = 64;

  double per_token = 0;  ///< Results per decoded token; 0: no response calls a tool.
  double mean = 0;       ///< Tokens.
  double before = 0;     ///< Mean tokens of a response before one, with its prompt.
  std::array<double, kQuantiles> quantiles{};  ///< Tokens, ascending.

  /// Expected length of the longest of a Poisson number of results, 0 if there is none: the
  /// integral over x of the chance that one exceeds x.
  double longest(double expected) const;
};

/// How long the responses of a batch stay in an engine, in decode steps of this engine. Without
/// tools a response decodes in each, so these are tokens. One that waits for a tool lets the engine
/// do `waiting` over the seconds of a step without it. Its calls are spread evenly over its stay.
struct Lifetimes {
  static constexpr std::size_t kBins = 256;

  double prompt = 0;  ///< Mean prompt length, in tokens.
  double mean = 0;    ///< Mean stay, like all below.
  double longest = 0;
  double residual = 0;         ///< Mean rest of a random response in the engine: E[x^2] / (2 E[x]).
  double group_end = 0;        ///< Mean of the longest of a group.
  double tokens_per_step = 1;  ///< Tokens, results included, of a response in the engine.
  double decoding = 1;         ///< Share of the responses in the engine that decode.
  using Table = std::array<double, kBins + 2>;
  Table longer{};     ///< Share longer than the start of each bin.
  Table decoders{};   ///< Share longer than that and decoding.
  Table left_over{};  ///< Integral of `longer` from each bin on, over the mean.

  /// Share of responses that stay longer than `steps`.
  double survivors(double steps) const { return look_up(longer, steps); }
  /// Share of responses that decode after `steps`.
  double decoding_survivors(double steps) const { return look_up(decoders, steps); }
  /// Share of responses in the engine with more than `steps` left.
  double residual_survivors(double steps) const { return look_up(left_over, steps); }

 private:
  double look_up(const Table& table, double steps) const {
    const double at = std::max(0.0, steps / longest * kBins);
    if (at >= kBins)
      return 0;
    const auto bin = static_cast<std::size_t>(at);
    const double rest = at - static_cast<double>(bin);
    return table[bin] * (1 - rest) + table[bin + 1] * rest;
  }
};

/// The first batch of the run.
class BatchStatistics {
 public:
  BatchStatistics(const orchestrator::PipelineConfig& config,
                  const actors::SimulationConfig& simulation);

  /// The packing of the first `count` sequences.
  const actors::Packing& packed(std::int64_t count, const actors::PackingLimits& limits) {
    const auto end = sequences_.begin() + count;
    return packings_.try_emplace(count, std::vector(sequences_.begin(), end)).first->second(limits);
  }
  std::int64_t size() const { return std::ssize(sequences_); }
  double prompt() const { return prompt_; }  ///< Mean length.
  double tokens() const { return tokens_; }  ///< Mean length of a response.
  const ToolResults& results() const { return results_; }
  bool has_calls() const { return results_.per_token > 0; }
  /// The stays if a decode step takes this long and a response misses `steps_per_call` more steps
  /// after each answer. Both matter only with calls, then rounded to 2 % and to half a step.
  const Lifetimes& lifetimes(double seconds_per_step, double steps_per_call);

 private:
  void add_calls(const actors::ToolConfig& tools, std::uint64_t seed, const FirstBatch& first);
  Lifetimes compute(double seconds_per_step, double steps_per_call) const;

  std::vector<Tokens> sequences_;  ///< Prompt and response of every response.
  std::vector<ResponseWork> responses_;
  std::size_t group_size_ = 1;
  double prompt_ = 0, tokens_ = 0;
  ToolResults results_;
  std::map<std::int64_t, actors::Packings> packings_;
  std::map<std::pair<std::int64_t, std::int64_t>, Lifetimes> lifetimes_;
};

/// An engine and its step times.
class Engine {
 public:
  explicit Engine(const actors::SimulationSettings& settings);

  double replicas() const { return replicas_; }
  double cache() const { return cache_; }  ///< Tokens per replica.
  double swap() const { return swap_; }    ///< Switching to new weights.
  /// Seconds of a decode step with `b` responses on each replica.
  double step(double b, double context);
  /// Seconds to prefill this many prompts of `tokens` each.
  double prefill_seconds(std::int64_t prompts, double tokens);
  /// What the results that come in a decode step add to it, in seconds.
  double results_seconds(const ToolResults& results, double b);
  /// The same for caches of callers that others have taken: `expected` of them, of `tokens` each.
  double restore_seconds(double expected, double tokens);
  /// Steps that a response misses after an answer if a decode step takes this long.
  double steps_per_call(const ToolResults& results, double seconds_per_step) const;

 private:
  double prefill_all(std::deque<rollout::PrefillPiece> pieces, double decoding) const;
  double results_of_whole(const ToolResults& results, std::int64_t b) const;

  rollout::EngineCost cost_;
  std::optional<rollout::PrefillInstance> prefill_instance_;
  bool chunked_prefill_;
  double replicas_, cache_, swap_;
  // Caches of seconds.
  std::map<std::pair<std::int64_t, std::int64_t>, double> prompts_;  ///< By number and tokens.
  std::map<std::pair<const ToolResults*, std::int64_t>, double> results_;  ///< By b.
  std::map<std::int64_t, double> restored_;                                ///< By tokens.
};

/// The terms of a configuration for steady_equations.cpp.
struct SteadyTerms {
  const Lifetimes& batch;
  const ToolResults& results;
  Engine& engine;
  double eta = 0;
  double fresh = 0;  ///< Responses of a batch per replica.
  double slots = 0;  ///< Per replica.
  double used = 0;   ///< Mean number of used slots if groups wait for them.
  double full = 0;   ///< The same, or as many as decode what the cache holds at random progress.
  double update = 0, publish = 0, prefill = 0;  ///< prefill includes the switch to new weights.
  double scoring = 0;                           ///< The reference's pass over a batch.
  double scored = 0;                            ///< Scoring of one group without a queue.
  double report = 0;  ///< Mean time from the end of a response to its report.
  double to_rollout = 0, to_training = 0;
  double return_share = 0;
  double group = 1;  ///< Responses per group.

  double context() const { return batch.prompt + batch.residual * batch.tokens_per_step; }
  /// Tokens that a response caches itself: a group shares its prompt.
  double own(double context) const { return context - batch.prompt * (1 - 1 / group); }
  /// Seconds of a decode step while a replica has `there` responses, of which some wait for tools.
  double step(double there, double decoding, double context) const {
    const double seconds = engine.step(decoding, context);
    if (results.per_token == 0)
      return seconds;
    const double each = own(context);
    const double lost = (there * each - engine.cache()) / ((there - decoding) * each);
    const double returns = decoding * engine.replicas() * results.per_token;
    return seconds + engine.results_seconds(results, decoding) +
           engine.restore_seconds(returns * std::clamp(lost, 0.0, 1.0), each);
  }
  /// The same if the mean share of them decodes.
  double step(double there, double context) const {
    return step(there, there * batch.decoding, context);
  }
  /// Seconds from a group's last response to its last score if the reference is busy for this
  /// share.
  double latency(double busy) const {
    return report + std::min(scoring + scored, scored * (1 + 0.5 / std::max(0.05, 1 - busy)));
  }
  /// Seconds that a response holds its slot if all are taken: until its end is reported. If the
  /// cache limits, another response waits in the engine.
  double held() const {
    const double stay = batch.mean * step(full, context());
    return full < used ? stay : stay + report;
  }
};

/// The steady state of a configuration with these terms.
SteadyState solve_steady_state(const SteadyTerms& terms,
                               const orchestrator::PlacementConfig& cards);

}  // namespace temper::study::steady
