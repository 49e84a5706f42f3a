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

TEST(SwitchPlan, HasTheStagesOfTheFramework) {
  SimulatedPlacement p = shipped("a3_128_r1_671b");
  const SwitchPlan ideal = predict_switch(p);
  sim_hw::FrameworkSpec framework;
  framework.publication = {{"gather", std::chrono::seconds(5), {}, {}, {}}};
  framework.role_switch = {{"pin", std::chrono::seconds(1), {}, {}, {}}};
  p.run.framework = framework;
  const SwitchPlan plan = predict_switch(p);
  const auto added = [](const std::vector<PredictedState>& with,
                        const std::vector<PredictedState>& without,
                        std::string_view state) {
    return seconds_of(with, state) - seconds_of(without, state);
  };
  EXPECT_NEAR(added(plan.to_rollout, ideal.to_rollout, "reshard"), 5, 1e-9);
  EXPECT_NEAR(added(plan.to_rollout, ideal.to_rollout, "bind"), 0, 1e-9);
  EXPECT_NEAR(added(plan.to_rollout, ideal.to_rollout, "offload_optimizer"), 1, 1e-9);
  for (const char* state : {"onload_reference", "offload_reference", "onload_optimizer"})
    EXPECT_NEAR(added(plan.to_training, ideal.to_training, state), 1, 1e-9) << state;
}

TEST(SwitchPlan, ACacheAllocatedFirstLeavesLessRoomForItself) {
  const OtherOrders others = predict_other_orders(shipped("a3_128_r1_671b"));
  ASSERT_TRUE(others.kv_share_last && others.kv_share_first);
  EXPECT_LT(*others.kv_share_first, *others.kv_share_last);
  EXPECT_GT(others.weights_first, 0);
}

}  // namespace
}  // namespace temper::orchestrator
