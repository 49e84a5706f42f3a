// Host memory of whole simulated runs: what the ledger predicts, and what the actors held.
#include "orchestrator/pipeline/card_shares.hpp"
#include "tests/orchestrator/run/virtual/placed_runs.hpp"

#include <algorithm>
#include <cmath>

namespace temper::orchestrator::testing {
namespace {

/// Most bytes of the role's part of host memory in any phase, before the run.
double most_of(const std::vector<actors::PhaseLedger>& ledger, std::string_view role) {
  double most = 0;
  for (const actors::PhaseLedger& phase : ledger) {
    for (const auto& part : phase.parts)
      most = std::max(most, part.role == role ? part.memory.host.total() : 0);
  }
  return most;
}

void expect_predicted(const std::string& name,
                      const std::map<actors::RoleKind, RoleMemory>& memory,
                      const ResolvedPipeline& pipeline) {
  const std::vector<actors::PhaseLedger> ledger = memory_ledger(pipeline);
  for (const auto& [role, of] : memory) {
    const auto peak = static_cast<double>(of.host.peak_bytes);
    const auto predicted = static_cast<double>(of.host.predicted_bytes);
    EXPECT_LE(predicted, most_of(ledger, name_of(role)) + 1) << name << ": " << name_of(role);
    EXPECT_LE(predicted, 1.1 * peak) << name << ": " << name_of(role);
    // The prediction omits the caches of responses, which fit in what no role needs.
    const double caches = role == actors::RoleKind::Rollout ? *pipeline.host_left : 0;
    EXPECT_LE(peak, 1.1 * predicted + caches) << name << ": " << name_of(role);
  }
}

TEST(HostMemory, IsPredictedWithinATenthInEveryPlacement) {
  int kept = 0, renewed = 0, parked = 0;
  for (const auto& [name, config] : placed_runs()) {
    const ResolvedPipeline pipeline = resolve(config).value();
    const std::vector<actors::PhaseLedger> ledger = memory_ledger(pipeline);
    const SimulatedOutcome ran = run_simulated(config);
    ASSERT_TRUE(ran.outcome.finish.ok) << name << ": " << ran.outcome.finish.reason;
    const auto& memory = ran.summary.memory.value();
    expect_predicted(name, memory, pipeline);
    if (!traits_of(config.placement.mode).alternates())
      continue;
    // On cards that the trainer has or had, engines hold caches, but no second version.
    const RoleMemory& rollout = memory.at(actors::RoleKind::Rollout);
    std::int64_t all = rollout.host.peak_bytes - rollout.host.predicted_bytes;
    for (const auto& [role, of] : memory)
      all += role == actors::RoleKind::Rollout ? 0 : of.host.peak_bytes;
    EXPECT_LE(all, rollout.host.capacity_bytes) << name;
    const bool prepares = config.stragglers.prepare;
    kept += prepares && static_cast<double>(memory.at(actors::RoleKind::Trainer).host.peak_bytes) >
                            0.9 * most_of(ledger, "trainer");
    renewed += rollout.host.predicted_bytes > 0 ? 1 : 0;
    parked += rollout.host.peak_bytes > rollout.host.predicted_bytes ? 1 : 0;
  }
  EXPECT_GT(kept, 0) << "gradients are kept on the smallest share";
  EXPECT_GT(renewed, 0) << "a version arrives beside the one in use";
  EXPECT_GT(parked, 0) << "caches of interrupted responses are parked";
}

}  // namespace
}  // namespace temper::orchestrator::testing
