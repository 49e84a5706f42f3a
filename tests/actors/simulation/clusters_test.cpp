// Roles in two clusters: the traffic between them, and the work that waits for it.
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/simulated_reference.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "sim_hw/network/hosts.hpp"
#include "sim_hw/network/reshard.hpp"
#include "tests/support/simulated_drive.hpp"

#include <gtest/gtest.h>

#include <numeric>

namespace temper::actors {
namespace {

RoleCluster cluster(std::int64_t index, std::string_view name) {
  RoleCluster out;
  out.index = index;
  out.hardware = *sim_hw::Catalog::shipped().hardware(name).value();
  out.port = *sim_hw::outermost_port(out.hardware);
  return out;
}

/// 2 engines of 8 cm384 cards each (16 dies, tp 4) and a trainer on 16 H800 (tp 8, dp 2), linked by
/// `bandwidth`. The rollout role is selected.
SimulationSettings apart(BytesPerSecond bandwidth) {
  SimulationSettings s = testing::settings_of("nvidia-h800", "qwen3-32b");
  s.config.clusters = {{"cm384", 16, {}}, {"nvidia-h800", 16, {}}};
  s.config.between = {bandwidth, std::chrono::milliseconds(1)};
  s.config.trainer.tp = 8;
  s.config.rollout.tp = 4;
  s.trainer_cards = 16;
  s.cards = 8;
  s.rollout_cards = 16;
  s.clusters =
      RoleClusters{cluster(1, "nvidia-h800"), cluster(0, "cm384"), cluster(1, "nvidia-h800")};
  look_at(s, RoleKind::Rollout);
  return s;
}

/// Bytes of the model in 16 bits.
double weight_bytes(const SimulatedRun& run) {
  const sim_hw::WeightVolume v = sim_hw::weight_volume(served_model(run), 2);
  return std::accumulate(v.layers.begin(), v.layers.end(), v.first + v.last);
}

WeightPublication published(const SimulationSettings& s) {
  return publish_weights(sim_hw::make_fabric(s.cluster), s);
}

TEST(Clusters, CostsOfARoleUseItsOwnHardware) {
  SimulationSettings s = apart(BytesPerSecond(1e9));
  EXPECT_EQ(s.cluster.name, "cm384");
  EXPECT_EQ(rollout_layout(s).dp, 4);   // 8 cards are 16 dies
  EXPECT_EQ(trainer_layout(s).dp, 2);   // 16 cards are 16 devices
  EXPECT_EQ(device_capacity(s), 64e9);  // of a die
  look_at(s, RoleKind::Trainer);
  EXPECT_EQ(s.cluster.name, "nvidia-h800");
  EXPECT_EQ(trainer_layout(s).dp, 2);
  EXPECT_EQ(device_capacity(s), 80e9);
  EXPECT_EQ(all_hardware(s).size(), 2U);
}

TEST(Clusters, RelayedWeightsCrossTheLinkOnce) {
  // 32.8 G parameters in 16 bits over 1 GB/s: 65.5 s, far more than any port takes. A device of an
  // engine (tp 4) has a quarter, 16.4 GB in 17 buckets, each 10 us (start-up) and 1 ms late. The
  // last bucket's copy to the host, 16.4 GB / 17 over 151 GB/s, comes behind: 6 ms; and each
  // bucket's copy takes 9.6 us to begin.
  const SimulationSettings s = apart(BytesPerSecond(1e9));
  const double bytes = weight_bytes(s);
  EXPECT_NEAR(bytes, 65.5e9, 0.1e9);
  const double network = bytes / 1e9 + 17 * (10e-6 + 1e-3);
  const double host = bytes / 4 / 151e9 / 17;
  const WeightPublication p = published(s);
  EXPECT_NEAR(p.seconds, network + host + 17 * 9.6e-6, 1e-6);
  // Of the whole weights that cross, half are counted at either engine: its share of the first
  // replica, which all of them stand for.
  const std::size_t link = s.cluster.levels.size();
  EXPECT_NEAR(p.received.at[link], bytes / 2, 1);
  EXPECT_NEAR(p.received.total(), 4 * bytes, 1);  // 4 replicas of an engine
}

TEST(Clusters, BroadcastWeightsCrossTheLinkOncePerReplica) {
  SimulationSettings s = apart(BytesPerSecond(1e9));
  s.config.publication.mode = PublicationMode::Broadcast;
  EXPECT_NEAR(published(s).seconds, 8 * weight_bytes(s) / 1e9, 0.1);
}

TEST(Clusters, PortsAreTheLimitOfAWideLink) {
  // A die of cm384 takes its 16.4 GB over 24.5 GB/s of RoCE, of which transfers reach 0.85: 0.787
  // s. A device of the trainer sends an eighth of the weights for the first replica: 8.2 GB over 50
  // GB/s x 0.815, 0.2 s.
  const SimulationSettings s = apart(BytesPerSecond(1e15));
  const double port = weight_bytes(s) / 4 / 24.5e9 / 0.85;
  EXPECT_NEAR(port, 0.787, 0.001);
  const double host = weight_bytes(s) / 4 / 151e9 / 17;
  EXPECT_NEAR(published(s).seconds, port + 17 * (10e-6 + 1e-3 + 9.6e-6) + host, 1e-3);
}

TEST(Clusters, AConfiguredPortReplacesTheDefault) {
  SimulationSettings s = apart(BytesPerSecond(1e15));
  s.config.clusters[0].port = BytesPerSecond(3.125e9);
  s.clusters->rollout.port = BytesPerSecond(3.125e9);
  EXPECT_NEAR(published(s).seconds, weight_bytes(s) / 4 / 3.125e9 / 0.85, 0.05);
}

TEST(Clusters, CountsPayloadsByDirection) {
  SimulationSettings s = apart(BytesPerSecond(1e9));
  const PayloadTokens batch{.responses = 10, .prompt = Tokens(1000), .response = Tokens(50000)};
  // 10 x 64, 1000 x 4, 50000 x 8.
  EXPECT_EQ(to_trainer(s, batch).bytes, 640 + 4000 + 400000);
  // The reference is beside the trainer: ids of all tokens cross on their way to it.
  EXPECT_EQ(to_reference(s, batch).bytes, 640 + 4 * 51000);
  s.clusters->reference = s.clusters->rollout;  // or its log-probs on their way from it
  EXPECT_EQ(to_trainer(s, batch).bytes, 640 + 4000 + 600000);
  EXPECT_EQ(to_reference(s, batch).bytes, 0);
  s.response_weight = 8;  // a sampled run
  EXPECT_EQ(to_trainer(s, batch).bytes, 8 * (640 + 4000 + 600000));
  // Messages over TCP: 1.05 of it on the wire, at 1 GB/s, and a millisecond.
  const double bytes = to_trainer(s, batch).bytes;
  EXPECT_NEAR(to_trainer(s, batch).seconds, 1e-3 + sim_hw::wire_bytes(bytes, 1 << 20) / 1e9, 1e-12);
  s.clusters.reset();
  EXPECT_EQ(to_trainer(s, batch).bytes, 0);
  EXPECT_EQ(to_trainer(s, batch).seconds, 0);
}

TEST(Clusters, AReferenceWaitsForTheResponsesItScores) {
  SimulationSettings s = apart(BytesPerSecond(1e6));
  look_at(s, RoleKind::Reference);
  s.cards = 8;
  const CountedScore work{LeaseId(1), std::vector<Tokens>(16, Tokens(4096)), Tokens(0)};
  const auto ended = [&](const SimulationSettings& settings) {
    SimulatedReference reference(settings);
    testing::Driven d(reference);
    EXPECT_TRUE(d.start());
    EXPECT_TRUE(d.run());
    const Time begin = d.now();
    EXPECT_TRUE(d.send(work));
    EXPECT_TRUE(d.run());
    EXPECT_EQ(d.all<CountedScored>().size(), 1U);
    Duration received{};
    for (const Span& span : d.spans())
      received += span.state == CardState::WeightSync ? span.end - span.begin : Duration{};
    return std::pair(d.all<CountedScored>().front().first - begin, received);
  };
  // 16 x (4096 x 4 + 64) bytes over 1 MB/s: 0.26 s.
  const Crossing crossing =
      to_reference(s, {.responses = 16, .prompt = {}, .response = Tokens(16 * 4096)});
  EXPECT_EQ(crossing.bytes, 16 * (4096 * 4 + 64));
  const auto [with, received] = ended(s);
  EXPECT_EQ(received, from_seconds(crossing.seconds));
  s.clusters.reset();
  const auto [without, nothing] = ended(s);
  EXPECT_EQ(nothing, Duration{});
  EXPECT_EQ(with - without, received);
}

}  // namespace
}  // namespace temper::actors
