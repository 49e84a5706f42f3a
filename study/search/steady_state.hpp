// The steady state of an RL run on simulated hardware in closed form: microseconds where the run
// itself takes a second. A search uses it to rank its points (tune.hpp); runs decide.
//
// One number is sought: the seconds per update, the least that satisfies every limit at once. The
// update, the reference and generation must each keep up; the longest response of a batch must be
// generated, scored and trained within eta + 1 updates; and the slots and the KV cache limit how
// many responses an engine decodes. steady_equations.cpp states the equation of each placement
// above the function that solves it, steady_terms.hpp the terms they are made of.
//
// Assumptions: the staleness rule `exact` (others are judged as if they were it); lengths as the
// first batch of the run draws them; no preemption; lending starts and ends in no time but its
// switch. Constants: those of the hardware. Doubles are seconds and tokens. No part of the
// scheduler or the simulation enters: tests and docs/tune.md hold the two against each other.
#pragma once

#include "actors/simulation/simulation_config.hpp"
#include "core/result.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <memory>

namespace temper::study {

/// What an update waits for in the end.
enum class Pace { Update, Reference, LongAnswers, Slots, Turns };

struct SteadyState {
  double seconds_per_update = 0;
  double trained_per_s = 0;  ///< Tokens of prompts and responses.
  double staleness_mean = 0;
  Pace pace = Pace::Update;
};

/// Remembers the costs of layouts that it has met. One thread.
class SteadyStateModel {
 public:
  /// `run`: of a ResolvedPipeline.
  explicit SteadyStateModel(actors::SimulatedRun run);
  ~SteadyStateModel();
  SteadyStateModel(SteadyStateModel&&) noexcept;
  SteadyStateModel& operator=(SteadyStateModel&&) noexcept;

  /// Requires: a configuration whose rules hold (study/simulate/simulate.hpp), with the cluster,
  /// model, lengths, seed and trainer mechanisms of that one; `cards` are its placement, resolved.
  SteadyState operator()(const orchestrator::PipelineConfig& config,
                         const orchestrator::PlacementConfig& cards);

 private:
  class Costs;
  std::unique_ptr<Costs> costs_;
};

}  // namespace temper::study

template <>
struct temper::EnumNames<temper::study::Pace> {
  using P = study::Pace;
  static constexpr std::array<std::pair<P, std::string_view>, 5> value{
      {{P::Update, "update"},
       {P::Reference, "reference"},
       {P::LongAnswers, "long answers"},
       {P::Slots, "slots"},
       {P::Turns, "turns"}}};
};
