// A configuration with everything derived from it: the actors, their cards and the simulated
// hardware. It is derived once, after validation, and passed on; nothing else derives a part of it.
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/scheduler/problems/problem_plan.hpp"
#include "orchestrator/scheduler/state/actor_spec.hpp"

#include <optional>
#include <vector>

namespace temper::orchestrator {

struct SchedulerConfig;

struct ResolvedPipeline {
  PipelineConfig config;
  PlacementConfig placement;     ///< resolve_placement().
  std::vector<ActorSpec> slots;  ///< actor_slots().
  /// resolve_simulation(); none on local hardware.
  std::optional<actors::SimulatedRun> simulation;
  /// Simulated: bytes of host memory per device that no role needs in any phase; none if some phase
  /// exceeds it.
  std::optional<double> host_left;
  std::vector<std::int32_t> shares;  ///< card_shares().
  std::vector<std::int32_t> parts;   ///< share_parts(); empty without shares.
  std::int64_t kv_slots = 0;         ///< kv_slots(); 0 without shares.
  /// read_problem_plan(), once a run is prepared whose engines get prompts; of other simulated
  /// runs, plan_without_prompts(). Otherwise it has no sources.
  ProblemPlan problems{};
};

/// Reads the descriptions and traces of a simulated configuration. Errors: those of
/// resolve_simulation(); none on local hardware.
Result<ResolvedPipeline> resolve(PipelineConfig config);

/// As resolve(), without the settings of simulated hardware: `simulation` is none. For runs whose
/// actors need no simulation settings.
ResolvedPipeline resolve_cards(PipelineConfig config);

/// The scheduler's part of the configuration.
SchedulerConfig scheduler_config(const ResolvedPipeline& pipeline);

/// How references score a batch.
struct ScoringPasses {
  /// Of one pass: a lease, or on time-shared cards the reference's share of the batch
  /// (orchestrator/scheduler/dispatch/scoring.cpp).
  std::int64_t responses = 1;
  double count = 1;  ///< Of the busiest reference.
  bool operator==(const ScoringPasses&) const = default;
};

/// The passes over a batch with `batch` responses. `placement`: resolve_placement() of the
/// configuration.
ScoringPasses scoring_passes(const PipelineConfig& config,
                             const PlacementConfig& placement,
                             std::int64_t batch);

}  // namespace temper::orchestrator
