// Simulated runs whose reference has another model than the policy.
#include "core/hash.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"
#include "orchestrator/pipeline/switch_plan.hpp"
#include "orchestrator/pipeline/validate.hpp"
#include "tests/support/simulated_run.hpp"
#include "tests/support/small_pipeline.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

PipelineConfig pipeline(PlacementMode mode, const std::string& teacher) {
  PipelineConfig c = temper::testing::small_pipeline();
  c.simulation.reference.model = teacher;
  c.placement.mode = mode;
  if (traits_of(mode).shares)
    c.placement.rollout_cards = c.placement.reference_cards = 0;
  EXPECT_TRUE(validate(c).empty());
  return c;
}

struct Logged {
  testing::SimulatedOutcome ran;
  std::uint64_t log = 0;
  std::size_t records = 0;
};

Logged logged(const PipelineConfig& config) {
  Logged out;
  out.ran = testing::run_simulated(config, [&](const Record& record) {
    out.log = hash64(encode(record), out.log);
    ++out.records;
  });
  EXPECT_TRUE(out.ran.outcome.finish.ok) << out.ran.outcome.finish.reason;
  EXPECT_EQ(out.ran.audit.violations, std::vector<std::string>());
  return out;
}

TEST(TeacherRuns, ThePolicysModelByNameLeavesTheLogAsItIs) {
  for (const PlacementMode mode : {PlacementMode::Separate, PlacementMode::Fused}) {
    const Logged alone = logged(pipeline(mode, ""));
    const Logged named = logged(pipeline(mode, "qwen2.5-0.5b"));
    EXPECT_EQ(alone.log, named.log);
    EXPECT_EQ(alone.records, named.records);
    EXPECT_NE(alone.log, logged(pipeline(mode, "qwen2.5-1.5b")).log);
  }
}

double share_of(const testing::SimulatedOutcome& ran, actors::CardState state) {
  const auto found = ran.summary.utilization.states.find(state);
  return found == ran.summary.utilization.states.end() ? 0 : found->second;
}

TEST(TeacherRuns, ALargerTeacherKeepsItsCardsBusier) {
  for (const PlacementMode mode : {PlacementMode::Separate, PlacementMode::Fused}) {
    const Logged small = logged(pipeline(mode, ""));
    const Logged large = logged(pipeline(mode, "qwen2.5-7b"));
    EXPECT_GT(share_of(large.ran, actors::CardState::Reference),
              2 * share_of(small.ran, actors::CardState::Reference));
  }
}

TEST(TeacherRuns, ItsPeakIsThatOfTheLedger) {
  const PipelineConfig config = pipeline(PlacementMode::Separate, "qwen2.5-7b");
  const Logged ran = logged(config);
  const auto phases = actors::memory_phases(simulated_placement(resolve(config).value())).value();
  double predicted = 0;
  for (const actors::PhaseLedger& phase : phases)
    predicted = std::max(predicted, phase.group == "reference" ? phase.device() : 0);
  const auto& memory = ran.ran.summary.memory.value().at(actors::RoleKind::Reference);
  EXPECT_GT(memory.device.peak_bytes, 14e9);
  EXPECT_LE(memory.device.peak_bytes, predicted);
}

}  // namespace
}  // namespace temper::orchestrator
