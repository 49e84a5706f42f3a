#include "orchestrator/pipeline/switch_plan.hpp"

#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_memory.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulated_memory.hpp"

#include <gtest/gtest.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

using actors::SimulatedPlacement;

SimulatedPlacement shipped(const std::string& name) {
  const auto config = load_config(std::string(TEMPER_SOURCE_DIR) + "/configs/" + name + ".yaml");
  EXPECT_TRUE(config) << config.error().context;
  const auto pipeline = resolve(*config);
  EXPECT_TRUE(pipeline) << pipeline.error().context;
  return simulated_placement(*pipeline);
}

double seconds_of(const std::vector<PredictedState>& states, std::string_view name) {
  return std::ranges::find(states, name, &PredictedState::state)->seconds;
}

TEST(SwitchPlan, StatesFollowTheirOrder) {
  const SwitchPlan plan = predict_switch(shipped("a3_128_r1_671b"));
  std::vector<std::string_view> names;
  for (const PredictedState& state : plan.to_rollout)
    names.push_back(state.state);
  EXPECT_EQ(names,
            (std::vector<std::string_view>{"offload_optimizer", "reshard", "bind", "allocate_kv"}));
  EXPECT_EQ(plan.to_training.back().state, "onload_optimizer");
}

TEST(SwitchPlan, WhatIsMovedTakesItsBytesOverTheLinkOfEachDevice) {
  const SimulatedPlacement p = shipped("a3_128_r1_671b");
  const actors::ActorMemory trainer = actors::trainer_memory(p.run);
  const double bytes = trainer.device.weights + trainer.device.optimizer;
  // 151 GB/s for a die of CloudMatrix, and the latency of one copy.
  const double link = bytes / 151e9;
  EXPECT_NEAR(seconds_of(predict_switch(p).to_rollout, "offload_optimizer"), link, 0.01 * link);
}

TEST(SwitchPlan, ACacheAllocatedFirstLeavesLessRoomForItself) {
  const OtherOrders others = predict_other_orders(shipped("a3_128_r1_671b"));
  ASSERT_TRUE(others.kv_share_last && others.kv_share_first);
  EXPECT_LT(*others.kv_share_first, *others.kv_share_last);
  EXPECT_GT(others.weights_first, 0);
}

}  // namespace
}  // namespace temper::orchestrator
