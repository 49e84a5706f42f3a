// The steady state of an RL run on simulated hardware in closed form: microseconds instead of a
// second for a simulated run. A search ranks its points with it (tune.hpp); runs decide.
//
// The unknown is the number of seconds per update: the smallest that satisfies all limits at once.
// The update, the reference and generation must each keep up; the longest response of a batch must
// be generated, scored and trained within eta + 1 updates; slots and KV cache limit the responses
// that an engine decodes. steady_equations.cpp states the equation of each placement above the
// function that solves it; steady_terms.hpp has their terms.
//
// Assumptions: the staleness rule `exact` (others are judged as if they were exact); lengths and
// tool calls as the first batch of the run draws them; no preemption; lending costs only its
// switch. The calls of a response are spread evenly over its stay in an engine, none waits for a
// tool of the pool, and none is made again after an interruption. Constants: those of the hardware.
// Doubles are seconds and tokens. Uses no part of the scheduler or the simulation, so that tests
// can compare them.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/simulation/simulation_config.hpp"
#include "core/result.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <map>
#include <memory>

namespace temper::study {

/// What limits the rate of updates.
enum class Bottleneck { Update, Reference, LongAnswers, Slots, Turns };

struct SteadyState {
  double seconds_per_update = 0;
  double trained_per_s = 0;  ///< Tokens of prompts and responses.
  double staleness_mean = 0;
  Bottleneck bottleneck = Bottleneck::Update;
  double decode_seconds = 0;    ///< Per update, of the rollout's cards.
  double seconds_per_step = 0;  ///< Mean of the decode steps of an engine.
  double lent_seconds = 0;      ///< Per update, of lent trainer cards that decode.
  /// Estimated shares of the time of all cards; they add up to 1.
  std::map<actors::CardState, double> states;
};

/// Caches the costs of layouts. One thread.
class SteadyStateModel {
 public:
  /// `run`: from a ResolvedPipeline.
  explicit SteadyStateModel(actors::SimulatedRun run);
  ~SteadyStateModel();
  SteadyStateModel(SteadyStateModel&&) noexcept;
  SteadyStateModel& operator=(SteadyStateModel&&) noexcept;

  /// Requires: a valid configuration (study/simulate/simulate.hpp) with the cluster, model,
  /// framework, lengths, tools, seed and trainer mechanisms of `run`; `cards` is its resolved
  /// placement.
  SteadyState operator()(const orchestrator::PipelineConfig& config,
                         const orchestrator::PlacementConfig& cards);

 private:
  class Costs;
  std::unique_ptr<Costs> costs_;
};

}  // namespace temper::study

template <>
struct temper::EnumNames<temper::study::Bottleneck> {
  using P = study::Bottleneck;
  static constexpr std::array<std::pair<P, std::string_view>, 5> value{
      {{P::Update, "update"},
       {P::Reference, "reference"},
       {P::LongAnswers, "long answers"},
       {P::Slots, "slots"},
       {P::Turns, "turns"}}};
};
