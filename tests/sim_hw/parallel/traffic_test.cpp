// Bytes that exchanges carry, and FLOP that passes count.
#include "core/random.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/memory/weights.hpp"
#include "sim_hw/model/flops.hpp"
#include "sim_hw/parallel/train_iteration.hpp"
#include "sim_hw/parallel/train_traffic.hpp"
#include "sim_hw/steps/parallel_decode.hpp"

#include <gtest/gtest.h>

namespace temper::sim_hw {
namespace {

/// One level, 1 B/s; only bytes take time.
Fabric bytes_alone() {
  Fabric f;
  f.levels[0] = {1e9, 1, 0, false};
  f.level_count = f.node_levels = 1;
  f.all_gather.slowdown = f.reduce_scatter.slowdown = f.dispatch.slowdown = 1;
  return f;
}

class Traffic : public testing::Test {
 protected:
  const ModelSpec& model(std::string_view name) { return **catalog_.model(name); }
  const HardwareSpec& hardware(std::string_view name) { return **catalog_.hardware(name); }
  Catalog catalog_ = Catalog::shipped();
};

TEST_F(Traffic, EqualsTheTimeIfOnlyBytesCostTime) {
  const Fabric f = bytes_alone();
  for (const std::int64_t n : {2, 3, 8, 64}) {
    const Group g{n, 1};
    EXPECT_DOUBLE_EQ(all_gather_traffic(f, g, 100).total(), 100.0 * static_cast<double>(n - 1));
    EXPECT_DOUBLE_EQ(all_gather_traffic(f, g, 100).total(), all_gather_seconds(f, g, 100));
    EXPECT_DOUBLE_EQ(reduce_scatter_traffic(f, g, 7).total(), reduce_scatter_seconds(f, g, 7));
    EXPECT_DOUBLE_EQ(all_reduce_traffic(f, g, 100).total(), all_reduce_seconds(f, g, 100));
    const MoeTraffic tokens{10, 4, 2};
    EXPECT_DOUBLE_EQ(moe_traffic(f, g, tokens).total(), moe_dispatch_seconds(f, g, tokens));
  }
  EXPECT_EQ(all_gather_traffic(f, {1, 1}, 100).total(), 0);
}

TEST_F(Traffic, CrossesTheLevelThatJoinsTheDevices) {
  // CloudMatrix: 2 dies in a package, 16 in a node, 768 in a supernode.
  const Fabric f = make_fabric(hardware("cm384"));
  // 16 ranks of a node: the other die of the package, the 14 of the other packages.
  const LevelBytes node = all_gather_traffic(f, {16, 1}, 10);
  EXPECT_DOUBLE_EQ(node.at[0], 10);
  EXPECT_DOUBLE_EQ(node.at[1], 140);
  EXPECT_DOUBLE_EQ(node.total(), 150);
  // 4 nodes: each port takes 3/64 of 640 B from other nodes, and passes on inside what 16 got.
  const LevelBytes nodes = all_gather_traffic(f, {64, 1}, 10);
  EXPECT_DOUBLE_EQ(nodes.at[2], 3 * 10);
  EXPECT_DOUBLE_EQ(nodes.at[0] + nodes.at[1], 15 * 40);
  // A pipeline neighbor in the same node, and in another node.
  EXPECT_DOUBLE_EQ(p2p_traffic(f, 4, 7).at[1], 7);
  EXPECT_DOUBLE_EQ(p2p_traffic(f, 16, 7).at[2], 7);
  EXPECT_EQ(p2p_traffic(f, 0, 7).total(), 0);
}

TEST_F(Traffic, OfAnEngineMatchesTheExchangesOfItsSteps) {
  const Fabric f = make_fabric(hardware("cm384"));
  const ModelSpec& spec = model("qwen3-30b-a3b");
  const RolloutLayout layout{2, 8, 16};
  const StepModel m = make_step_model(spec, 2, 16);
  // 32 sequences of a replica: after attention of each of 48 layers an all-reduce over 2 devices
  // of 32 x 2048 x 2 B: each sends 2 x half of it = 131072 B, all inside the package.
  // 16 tokens of a device go to 8 experts each, 15/16 of them on other devices, and come back; the
  // others of the replica gather their halves: 16 x 2048 x 2 B.
  const double reduced = 131072, copies = 16 * 8 * 4096, gathered = 65536;
  const double expected = 48 * (reduced + 2 * copies * 15 / 16 + gathered);
  EXPECT_NEAR(rollout_traffic(f, m, layout, 32).total(), expected, 1e-9 * expected);
}

TEST_F(Traffic, OfATrainingStepIsCountedLayerByLayer) {
  const Fabric f = make_fabric(hardware("cm384"));
  const Device d = make_device(hardware("cm384"));
  const ModelSpec& spec = model("qwen2.5-7b");
  Layout layout;
  layout.tp = 2;
  layout.pp = 2;
  layout.dp = 4;
  layout.zero = Zero::Optimizer;
  layout.sequence_parallel = SequenceParallel::On;
  TrainShape shape;
  shape.seq = 1024;
  shape.global_batch = 8 * 4;
  shape.recompute = Recompute::Full;
  const StepTraffic t = train_traffic(spec, d, f, layout, shape);
  // A plane of 1024 x 3584 x 2 B; its half is gathered or scattered, once each, by both devices:
  // forward twice (recompute) 4 times, backward 6 times, in 28 layers, of 8 micro-batches of 4
  // replicas. The head: 3 all-reduces of 4 B per token and one of a plane, over 2 devices.
  const double plane = 1024 * 3584 * 2, half = plane / 2;
  const double layers = 28 * (2 * 4 + 6) * half;
  const double head = 3 * 4 * 1024 + plane;
  const double of_micro_batch = 2 * (layers + head);
  EXPECT_NEAR(t.tensor.total(), 8 * 4 * of_micro_batch, 1e-9 * t.tensor.total());
  // One boundary, both directions, each of the 8 devices of a stage its half.
  EXPECT_NEAR(t.pipeline.total(), 8 * 2 * 8 * half, 1e-9 * t.pipeline.total());
  // Every parameter of a device: 3/4 of its FP32 gradient is sent, 3/4 of its weight received.
  const double parameters =
      stage_parameters(spec, layout, 0).total() + stage_parameters(spec, layout, 1).total();
  EXPECT_NEAR(t.data.total(), 8 * parameters * (4 + 2) * 0.75, 1e-9 * t.data.total());
  EXPECT_EQ(t.expert.total() + t.context.total(), 0);
  // A forward pass alone: 4 of the 14 halves of a layer, one boundary.
  const StepTraffic forward = forward_traffic(spec, d, f, layout, shape);
  EXPECT_NEAR(forward.tensor.total(), 8 * 4 * 2 * 28 * 4 * half, 1e-9 * t.tensor.total());
  EXPECT_NEAR(forward.pipeline.total(), t.pipeline.total() / 2, 1e-9 * t.pipeline.total());
  EXPECT_EQ(forward.data.total(), 0);
}

TEST_F(Traffic, OfOneDeviceIsZero) {
  const Fabric f = make_fabric(hardware("cm384"));
  TrainShape shape;
  shape.seq = 512;
  const StepTraffic t =
      train_traffic(model("qwen3-30b-a3b"), make_device(hardware("cm384")), f, {}, shape);
  EXPECT_EQ(t.total().total(), 0);
}

TEST_F(Traffic, ModelFlopsAreTwicePerParameterAndPair) {
  // Qwen2.5-7B: 28 layers, 28 heads of 128; 7.62e9 parameters, 0.545e9 of them the look-up.
  const ModelFlops flops(model("qwen2.5-7b"));
  EXPECT_DOUBLE_EQ(flops.per_pair, 2.0 * 28 * 28 * (128 + 128));
  EXPECT_NEAR(flops.per_token + flops.per_logit, 2 * 7.07e9, 0.01e9 * 2);
  EXPECT_DOUBLE_EQ(flops.per_logit, 2.0 * 152064 * 3584);
  TrainShape shape;
  shape.seq = 4096;
  shape.global_batch = 3;
  EXPECT_DOUBLE_EQ(model_flops(model("qwen2.5-7b"), shape),
                   3 * 3 * flops.forward(whole_sequence(4096)));
}

TEST_F(Traffic, PiecesOfASequenceAddUpToTheWholeTriangle) {
  ForwardWork all;
  double cached = 0;
  Random random(3, "pieces");
  for (int i = 0; i < 20; ++i) {
    const auto tokens = static_cast<double>(1 + random.below(500));
    all += continued(cached, tokens);
    cached += tokens;
  }
  EXPECT_EQ(all.tokens, cached);
  EXPECT_EQ(all.pairs, cached * (cached + 1) / 2);
}

}  // namespace
}  // namespace temper::sim_hw
