// What a critic adds to a simulated update.
#include "tests/support/simulated_drive.hpp"
#include "trainer/simulated/update_cost.hpp"

#include <gtest/gtest.h>

namespace temper::trainer {
namespace {

actors::SimulationSettings critic_settings() {
  actors::SimulationSettings s = actors::testing::settings_of("cm384", "qwen2.5-7b");
  s.config.trainer = {.tp = 2, .pp = 2, .micro_batch_tokens = 8192};
  s.config.response.kind = actors::LengthKind::Constant;
  s.config.response.mean = 4096;
  return s;
}

TEST(UpdateCost, ACriticCostsAForwardPassAndAStepOfItsOwn) {
  actors::SimulationSettings s = critic_settings();
  s.config.trainer.optimizer_on_host = true;
  const std::vector<Tokens> batch(32, Tokens(8192));
  const UpdateCost alone = UpdateModel(s)(batch);
  s.critic = true;
  const UpdateCost both = UpdateModel(s)(batch);
  const double step = alone.total() - alone.host_transfer;
  const double values = both.critic - step;
  EXPECT_GT(values, 0.15 * alone.pipeline);
  EXPECT_LT(values, 0.5 * alone.pipeline);
  // The moments of both go to the host; only a latency does not double.
  EXPECT_NEAR(both.host_transfer, 2 * alone.host_transfer, 0.01 * alone.host_transfer);
  EXPECT_NEAR(both.total(),
              alone.total() + both.critic + both.host_transfer - alone.host_transfer,
              1e-9 * both.total());
  EXPECT_NEAR(both.flops, alone.flops * (2 + 1.0 / 3), 1e-6 * alone.flops);
  EXPECT_EQ(both.swapped_optimizer, 2 * alone.swapped_optimizer);
  EXPECT_EQ(both.memory.device.weights, 2 * alone.memory.device.weights);
  EXPECT_EQ(both.memory.device.gradients, 2 * alone.memory.device.gradients);
  EXPECT_EQ(both.memory.host.optimizer, 2 * alone.memory.host.optimizer);
  EXPECT_EQ(both.memory.device.activations, alone.memory.device.activations);
}

}  // namespace
}  // namespace temper::trainer
