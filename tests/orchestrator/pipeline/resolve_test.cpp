#include "orchestrator/pipeline/resolve.hpp"

#include "core/msgpack.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <vector>

namespace temper::orchestrator {
namespace {

std::string as_bytes(const std::vector<ActorSpec>& slots) {
  std::string out;
  for (const ActorSpec& slot : slots)
    out += encode(slot);
  return out;
}

std::string as_yaml(PlacementConfig placement) {
  PipelineConfig config;
  config.placement = std::move(placement);
  return to_yaml(config);
}

TEST(Resolve, EveryShippedConfigurationGivesWhatItsPartsGive) {
  int shipped = 0;
  for (const auto& entry : std::filesystem::directory_iterator(TEMPER_SOURCE_DIR "/configs")) {
    if (entry.path().extension() != ".yaml")
      continue;
    SCOPED_TRACE(entry.path().filename().string());
    ++shipped;
    // A model that is downloaded is left out; the rest of the configuration is checked.
    const bool downloads = entry.path().stem() == "smollm2";
    const std::vector<std::string> sets(downloads ? 1 : 0, "model.path=''");
    const auto config = load_config(entry.path(), sets);
    ASSERT_TRUE(config) << config.error().context;
    const auto pipeline = resolve(*config);
    ASSERT_TRUE(pipeline) << pipeline.error().context;
    EXPECT_EQ(to_yaml(pipeline->config), to_yaml(*config));
    const PlacementConfig placement = resolve_placement(*config);
    EXPECT_EQ(as_yaml(pipeline->placement), as_yaml(placement));
    EXPECT_EQ(as_bytes(pipeline->slots), as_bytes(actor_slots(*config, placement)));
    EXPECT_EQ(as_bytes(scheduler_config(*pipeline).actors), as_bytes(pipeline->slots));
    ASSERT_EQ(pipeline->simulation.has_value(), config->hardware == HardwareKind::Simulated);
    if (!pipeline->simulation)
      continue;
    const auto run = resolve_simulation(*config, placement);
    ASSERT_TRUE(run) << run.error().context;
    EXPECT_EQ(encode(actors::SimulationSettings{*pipeline->simulation}),
              encode(actors::SimulationSettings{*run}));
  }
  EXPECT_GE(shipped, 7);
}

TEST(Resolve, TheCardsAloneNeedNoDescriptionOfTheHardware) {
  PipelineConfig config;
  config.hardware = HardwareKind::Simulated;
  config.simulation.cluster = "there is no such cluster";
  config.placement.cards = 4;
  EXPECT_FALSE(resolve(config));
  const ResolvedPipeline pipeline = resolve_cards(config);
  EXPECT_FALSE(pipeline.simulation);
  EXPECT_EQ(pipeline.slots.size(), 4U);  // A rollout, a reference, a reward, the trainer.
}

TEST(ActorsFromNow, KeepTheirPlacesWhoeverComesAndGoes) {
  PipelineConfig config;
  const auto slots = [&](std::int32_t replicas) {
    config.rollout.replicas = replicas;
    return resolve_cards(config).slots;
  };
  const auto text = [](const std::vector<ActorSpec>& actors) {
    std::string out;
    for (const ActorSpec& a : actors)
      out += (a.away ? "(" + a.name + ")" : a.name) + " ";
    return out;
  };
  auto actors = slots(2);
  EXPECT_EQ(text(actors), "rollout-0 rollout-1 reference-0 reward-0 trainer ");
  actors = actors_from_now(actors, slots(3));
  EXPECT_EQ(text(actors), "rollout-0 rollout-1 reference-0 reward-0 trainer rollout-2 ");
  actors = actors_from_now(actors, slots(1));
  EXPECT_EQ(text(actors), "rollout-0 (rollout-1) reference-0 reward-0 trainer (rollout-2) ");
  actors = actors_from_now(actors, slots(2));
  EXPECT_EQ(text(actors), "rollout-0 rollout-1 reference-0 reward-0 trainer (rollout-2) ");
}

}  // namespace
}  // namespace temper::orchestrator
