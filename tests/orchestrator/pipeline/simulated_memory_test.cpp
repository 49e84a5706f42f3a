#include "orchestrator/pipeline/simulated_memory.hpp"

#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_memory.hpp"
#include "core/files.hpp"
#include "core/random.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "tests/support/simulated_drive.hpp"
#include "tests/support/small_pipeline.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace temper::orchestrator {
namespace {

using actors::memory_phases;
using actors::PhaseLedger;
using actors::ReferencePlace;
using actors::SimulatedPlacement;

actors::SimulatedRun run_of(const char* model) {
  return actors::testing::settings_of("cm384", model);
}

/// 718B on 384 cards: 256 for 8 rollout engines of 64 devices, 128 for the trainer.
SimulatedPlacement large() {
  SimulatedPlacement p;
  p.run = run_of("pangu-ultra-moe-718b");
  p.rollout_cards = 256;
  p.run.trainer_cards = 128;
  p.run.config.response.cap = Tokens(16384);
  p.run.config.rollout.tp = 4;
  p.run.config.rollout.ep = 64;
  p.run.config.rollout.kv_share = 0.5;
  p.run.config.trainer = {.tp = 8, .pp = 8, .ep = 32, .micro_batch_tokens = 8192};
  p.engines = 8;
  return p;
}

std::vector<std::string> names(const std::vector<PhaseLedger>& phases) {
  std::vector<std::string> out;
  for (const PhaseLedger& phase : phases)
    out.push_back(std::string(phase.group) + " " + std::string(phase.phase));
  return out;
}

const PhaseLedger& phase(const std::vector<PhaseLedger>& phases, std::string_view name) {
  return *std::ranges::find(phases, name, &PhaseLedger::phase);
}

TEST(SimulatedMemory, OlderVersionsOfAnEngineTakeMemoryFromItsCache) {
  SimulatedPlacement p = large();
  p.run.model = run_of("qwen2.5-7b").model;
  p.run.config.rollout = {.tp = 4, .ep = 1, .kv_share = 0.5};
  p.run.config.trainer = {.tp = 4, .pp = 1, .ep = 1, .micro_batch_tokens = 8192};
  const actors::ActorMemory alone = actors::rollout_memory(actors::own_engine(p));
  p.run.older_versions = 2;
  const actors::ActorMemory with = actors::rollout_memory(actors::own_engine(p));
  EXPECT_EQ(alone.device.older_weights, 0);
  EXPECT_EQ(with.device.older_weights, 2 * alone.device.weights);
  EXPECT_EQ(with.device.weights, alone.device.weights);
  EXPECT_NEAR(alone.device.kv_cache - with.device.kv_cache,
              0.5 * with.device.older_weights,
              0.01 * with.device.older_weights);
}

TEST(SimulatedMemory, SeparateCardsHaveTheirOwnPhases) {
  const auto phases = memory_phases(large());
  ASSERT_TRUE(phases) << phases.error().context;
  EXPECT_EQ(names(*phases),
            (std::vector<std::string>{"rollout rollout", "trainer train", "trainer publish"}));
}

TEST(SimulatedMemory, SharedCardsFollowTheOrderOfTheSwitch) {
  SimulatedPlacement p = large();
  p.mode = PlacementMode::Colocated;
  p.run.trainer_cards = p.rollout_cards = 256;
  const auto phases = memory_phases(p);
  ASSERT_TRUE(phases) << phases.error().context;
  EXPECT_EQ(names(*phases),
            (std::vector<std::string>{"shared train",
                                      "shared offload_optimizer",
                                      "shared reshard",
                                      "shared bind",
                                      "shared kv_alloc",
                                      "shared rollout",
                                      "shared free_kv",
                                      "shared onload"}));
  // The cache comes last: the trainer's state is offloaded by then, and both weights coexist
  // without it.
  EXPECT_EQ(phase(*phases, "reshard").parts[0].memory.device.weights,
            phase(*phases, "train").parts[0].memory.device.weights);
  EXPECT_EQ(phase(*phases, "reshard").parts[1].memory.device.kv_cache, 0);
  EXPECT_EQ(phase(*phases, "kv_alloc").parts[0].memory.device.weights, 0);
  EXPECT_GT(phase(*phases, "kv_alloc").parts[1].memory.device.kv_cache, 0);
  EXPECT_EQ(phase(*phases, "train").parts[1].memory.device.weights, 0);
}

TEST(SimulatedMemory, AnEngineThatStaysOnItsCardsRenewsItsWeightsBesideItsFullCache) {
  SimulatedPlacement p = large();
  p.mode = PlacementMode::Colocated;
  p.one_by_one = true;
  p.run.trainer_cards = p.rollout_cards = 256;
  const auto phases = memory_phases(p);
  ASSERT_TRUE(phases) << phases.error().context;
  const actors::ActorMemory rollout = phase(*phases, "rollout").parts[1].memory;
  const actors::ActorMemory renewed = phase(*phases, "renew").parts[1].memory;
  EXPECT_GT(rollout.device.kv_cache, 0);
  EXPECT_EQ(renewed.device.kv_cache, rollout.device.kv_cache);
  EXPECT_EQ(renewed.device.weights, rollout.device.weights) << "one version on the device";
  EXPECT_EQ(renewed.host.weights, rollout.host.weights + rollout.device.weights) << "one staged";
  EXPECT_GT(renewed.device.total(), rollout.device.total()) << "a piece of it in transit";
}

TEST(SimulatedMemory, NothingOfTheTrainerIsLostWhileItIsParked) {
  SimulatedPlacement p = large();
  p.mode = PlacementMode::Colocated;
  p.run.trainer_cards = p.rollout_cards = 256;
  for (const bool on_host : {false, true}) {
    p.run.config.trainer.optimizer_on_host = on_host;
    const auto phases = memory_phases(p);
    ASSERT_TRUE(phases) << phases.error().context;
    const actors::ActorMemory train = phase(*phases, "train").parts[0].memory;
    for (const std::string_view name : {"kv_alloc", "rollout", "free_kv"}) {
      const actors::ActorMemory parked = phase(*phases, name).parts[0].memory;
      EXPECT_EQ(parked.host.weights, train.device.weights);
      EXPECT_EQ(parked.host.optimizer, train.device.optimizer + train.host.optimizer);
      EXPECT_EQ(parked.device.total(), train.device.reserve);
    }
  }
}

TEST(SimulatedMemory, LedgersSumToTheirParts) {
  const auto phases = memory_phases(large());
  ASSERT_TRUE(phases);
  for (const PhaseLedger& phase : *phases) {
    double device = 0;
    double host = 0;
    for (const auto& part : phase.parts) {
      for (const auto& [name, bytes] : part.memory.device.entries())
        device += bytes;
      for (const auto& [name, bytes] : part.memory.host.entries())
        host += bytes;
    }
    EXPECT_DOUBLE_EQ(device, phase.device());
    EXPECT_DOUBLE_EQ(host, phase.host());
  }
}

TEST(SimulatedMemory, TheLargeModelFitsItsCards) {
  const Status status = check_memory(large());
  EXPECT_TRUE(status) << status.error().context;
}

TEST(SimulatedMemory, ACacheThatIsTooLargeIsRefusedWithAShareThatFits) {
  SimulatedPlacement p = large();
  p.run.config.rollout.kv_share = 1;
  const Status status = check_memory(p);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::OutOfMemory);
  EXPECT_EQ(status.error().context.find("rollout cards in phase rollout need "), 0U)
      << status.error().context;
  EXPECT_NE(status.error().context.find("rollout KV cache"), std::string::npos);
  const std::string_view key = "nearest: simulation.rollout.kv_share = ";
  const auto at = status.error().context.find(key);
  ASSERT_NE(at, std::string::npos) << status.error().context;
  const double share = std::stod(status.error().context.substr(at + key.size()));
  p.run.config.rollout.kv_share = share;
  EXPECT_TRUE(check_memory(p));
  p.run.config.rollout.kv_share = share + 0.01;
  EXPECT_FALSE(check_memory(p));
}

TEST(SimulatedMemory, WeightsThatLeaveNoRoomAreRefusedWithMoreExpertParallelism) {
  SimulatedPlacement p = large();
  p.run.config.rollout.ep = 16;
  const Status status = check_memory(p);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().context.find("nearest: simulation.rollout.ep = "), std::string::npos)
      << status.error().context;
}

TEST(SimulatedMemory, RedundantExpertsThatDoNotFitAreRefused) {
  SimulatedPlacement p = large();
  p.run.config.rollout.redundant_experts = 512;  // 8 on each device, beside 4.
  const Status status = check_memory(p);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().context.find("nearest: simulation.rollout.redundant_experts = 0"),
            std::string::npos)
      << status.error().context;
  p.run.config.rollout.redundant_experts = 0;
  EXPECT_TRUE(check_memory(p));
}

TEST(SimulatedMemory, ATrainerThatIsTooSmallIsRefusedWithItsLedger) {
  SimulatedPlacement p = large();
  p.run.config.trainer.pp = 1;
  const Status status = check_memory(p);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().context.find("trainer cards in phase train need "), 0U)
      << status.error().context;
  EXPECT_NE(status.error().context.find("nearest: simulation.trainer.ep = "), std::string::npos)
      << status.error().context;
}

TEST(SimulatedMemory, ActivationsThatDoNotFitAreRefusedWithFullRecomputation) {
  SimulatedPlacement p = large();
  p.run.config.trainer.activations = sim_hw::ActivationPolicy::Auto;
  EXPECT_TRUE(check_memory(p));
  // Only as much host memory as the optimizer states need: nothing can be swapped.
  p.run.config.trainer.activations = sim_hw::ActivationPolicy::Swap;
  const double parked =
      actors::parked(actors::trainer_memory(p.run), actors::Gradients::Dropped).total();
  const auto per_node = static_cast<double>(p.run.cluster.devices_per_node());
  p.run.cluster.host.memory = Bytes(static_cast<std::int64_t>(parked * per_node) + 1);
  const Status status = check_memory(p);
  ASSERT_FALSE(status);
  EXPECT_NE(status.error().context.find("nearest: simulation.trainer.activations = full"),
            std::string::npos)
      << status.error().context;
}

TEST(SimulatedMemory, SwappedActivationsAreOnTheHostWhileTrainingOnly) {
  SimulatedPlacement p = large();
  p.run.config.trainer.activations = sim_hw::ActivationPolicy::Swap;
  const auto phases = memory_phases(p);
  ASSERT_TRUE(phases) << phases.error().context;
  EXPECT_GT(phase(*phases, "train").host(), phase(*phases, "publish").host());
}

TEST(SimulatedMemory, ALayoutThatDoesNotDivideIsNamed) {
  SimulatedPlacement p = large();
  p.run.config.rollout.ep = 48;
  const Status status = check_memory(p);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().context.find("rollout: ep=48 does not divide the 256 experts"), 0U)
      << status.error().context;
  p = large();
  p.engines = 7;
  EXPECT_FALSE(check_memory(p));
}

TEST(SimulatedMemory, AnEagleDraftIsOnTheCardsThroughoutAndNotSent) {
  SimulatedPlacement p = large();
  p.mode = PlacementMode::Fused;
  p.run.trainer_cards = p.rollout_cards = 256;
  const auto without = memory_phases(p);
  p.run.config.rollout.speculation = {
      .depth = 3, .acceptance = 0.5, .method = sim_hw::Draft::Eagle};
  const auto phases = memory_phases(p);
  ASSERT_TRUE(without && phases) << phases.error().context;
  const double draft = actors::frozen_draft_bytes(actors::switching_engine(p));
  EXPECT_GT(draft, 1e8);
  for (std::size_t i = 0; i < phases->size(); ++i) {
    const PhaseLedger& each = (*phases)[i];
    EXPECT_NEAR(each.parts[1].memory.device.weights,
                (*without)[i].parts[1].memory.device.weights + draft,
                1)
        << each.phase;
    EXPECT_EQ(each.parts[1].memory.host.weights, 0) << each.phase;
  }
}

TEST(SimulatedMemory, AReferenceThatTakesTurnsIsOnTheCardsOnlyToScore) {
  SimulatedPlacement p = large();
  p.mode = PlacementMode::Fused;
  p.run.trainer_cards = p.rollout_cards = 256;
  p.reference = ReferencePlace::InTurn;
  p.reference_cards = 256;
  const auto phases = memory_phases(p);
  ASSERT_TRUE(phases) << phases.error().context;
  const double weights = phase(*phases, "score").parts[2].memory.device.weights;
  EXPECT_GT(weights, 0);
  for (const PhaseLedger& each : *phases) {
    const actors::ActorMemory& reference = each.parts[2].memory;
    const bool here = each.phase == "score" || each.phase == "onload_reference";
    EXPECT_EQ(reference.device.weights, here ? weights : 0) << each.phase;
    EXPECT_EQ(reference.host.weights, each.phase == "score" ? 0 : weights) << each.phase;
    if (here) {
      EXPECT_EQ(each.parts[0].memory.device.weights + each.parts[1].memory.device.weights, 0);
    }
  }
}

SimulatedPlacement random_placement(Random& random,
                                    const std::vector<actors::SimulatedRun>& bases) {
  const auto power = [&](std::uint64_t most) { return std::int64_t{1} << random.below(most + 1); };
  SimulatedPlacement p;
  p.run = bases[random.below(bases.size())];
  actors::SimulationConfig& c = p.run.config;
  const actors::PlacementTraits& mode =
      actors::kPlacementModes[random.below(actors::kPlacementModes.size())];
  p.mode = mode.value;
  p.rollout_cards = power(8);
  p.run.trainer_cards = mode.exclusive_rollout ? power(8) : p.rollout_cards;
  p.engines = std::min(p.rollout_cards, power(4));
  p.reference = random.chance(0.3)      ? ReferencePlace::None
                : mode.shares_reference ? ReferencePlace::InTurn
                                        : ReferencePlace::Own;
  p.references = power(2);
  p.reference_cards = mode.shares_reference ? p.run.trainer_cards : power(6);
  p.concurrency = static_cast<std::int32_t>(power(10));
  c.prompt.mean = static_cast<double>(power(12));
  c.prompt.cap = Tokens(power(12));
  c.response.cap = Tokens(power(15));
  const std::int64_t devices = p.rollout_cards / p.engines * 2;
  c.rollout.tp = power(3);
  c.rollout.ep = p.run.model.moe ? std::min(devices, power(8)) : 1;
  c.rollout.kv_share = 0.1 + 0.9 * random.uniform();
  c.rollout.prefill_tokens = power(15);
  c.trainer.tp = power(3);
  c.trainer.pp = power(4);
  c.trainer.cp = random.chance(0.2) ? 2 : 1;
  c.trainer.ep = p.run.model.moe ? power(6) : 1;
  c.trainer.micro_batch_tokens = power(15);
  c.trainer.optimizer_on_host = random.chance(0.7);
  if (random.chance(0.5))
    p.run.reference_model = bases[random.below(bases.size())].model;
  if (random.chance(0.3))
    c.reference = {.model = {}, .tp = power(3), .pp = power(2), .ep = power(6), .cp = {}};
  return p;
}

/// Fullest device of each role alone, from the ledgers of sim_hw, with the roles that share its
/// cards.
double independent_peak(const SimulatedPlacement& p) {
  actors::SimulationSettings engine{p.run};
  engine.concurrency = p.concurrency;
  engine.cards = p.rollout_cards / p.engines;
  engine.colocated = traits_of(p.mode).shares;
  const double train = actors::trainer_memory(p.run).device.total();
  const actors::ActorMemory rollout = actors::rollout_memory(engine);
  double reference = 0;
  if (p.reference != ReferencePlace::None) {
    actors::SimulationSettings s{p.run};
    s.model = p.run.reference_model.value_or(p.run.model);
    s.cards = p.reference_cards / p.references;
    reference = actors::reference_memory(s).device.total();
  }
  if (!traits_of(p.mode).shares)
    return std::max({train, rollout.device.total(), reference});
  const bool in_turn = p.reference == ReferencePlace::InTurn;
  const double shared = std::max({train, rollout.device.total(), in_turn ? reference : 0}) +
                        (in_turn ? 2 : 1) * sim_hw::kFrameworkReserve;
  return std::max(shared, reference);
}

TEST(SimulatedMemory, TenThousandPlacementsAreRefusedOrFitInEveryPhase) {
  std::vector<actors::SimulatedRun> bases;
  for (const char* model : {"pangu-ultra-moe-718b", "qwen3-30b-a3b", "qwen2.5-7b", "qwen2.5-72b"})
    bases.push_back(run_of(model));
  Random random(1, "placements");
  std::size_t accepted = 0;
  std::set<PlacementMode> modes;
  for (int i = 0; i < 10000; ++i) {
    const SimulatedPlacement p = random_placement(random, bases);
    const double device = actors::device_capacity(p.run);
    const double host = actors::host_capacity(p.run);
    const auto phases = memory_phases(p);
    if (!phases) {
      ASSERT_FALSE(phases.error().context.empty());
      continue;
    }
    const bool fits = std::ranges::all_of(*phases, [&](const PhaseLedger& phase) {
      return phase.device() <= device && phase.host() <= host;
    });
    // The search for a nearest change is slow, so only a few refusals are checked for it.
    if (!fits && i % 100 != 0)
      continue;
    const Status status = check_memory(p);
    ASSERT_EQ(fits, status.has_value()) << (status ? std::string() : status.error().context);
    if (!fits)
      continue;
    ++accepted;
    modes.insert(p.mode);
    ASSERT_LE(independent_peak(p), device);
  }
  EXPECT_GT(accepted, 300U);
  EXPECT_EQ(modes.size(), actors::kPlacementModes.size());
}

/// Two engines and a trainer on eight cards, whose hosts have `host` bytes of memory.
PipelineConfig one_by_one(const test::TemporaryFolder& folder, Bytes host) {
  std::string text = read_file(TEMPER_SOURCE_DIR "/configs/hardware/cm384.yaml").value();
  constexpr std::string_view kMemory = "memory: 1.5TB";
  text.replace(text.find(kMemory), kMemory.size(), fmt::format("memory: {}B", host.count()));
  EXPECT_TRUE(write_file_atomically(folder / "cluster.yaml", text));
  PipelineConfig c = temper::testing::small_pipeline();
  c.simulation.cluster = (folder / "cluster.yaml").string();
  c.placement.mode = PlacementMode::Colocated;
  c.placement.rollout_cards = c.placement.reference_cards = 0;
  c.reference.replicas = 0;
  c.placement.switching = Switching::OneByOne;
  return c;
}

TEST(CardShares, GradientsNeedRoomWhereTheyAreKeptAndAreRefusedWithoutIt) {
  const test::TemporaryFolder folder;
  const PipelineConfig large = one_by_one(folder, Bytes(1'500'000'000'000));
  const SimulatedPlacement whole = simulated_placement(resolve(large).value());
  const auto phases = memory_phases(whole);
  ASSERT_TRUE(phases) << phases.error().context;
  double host = 0;
  for (const PhaseLedger& p : *phases)
    host = std::max(host, p.host());
  const double gradients = actors::trainer_memory(whole.run).device.gradients;
  ASSERT_GT(gradients, 0);
  // Host memory for half of them in addition to the rest; sixteen devices per host.
  PipelineConfig c =
      one_by_one(folder, Bytes(static_cast<std::int64_t>((host + gradients / 2) * 16)));
  EXPECT_EQ(resolve(c)->shares.back(), 2) << "all cards";
  EXPECT_EQ(check_simulation(c, resolve_placement(c)).size(), 0U);
  c.stragglers.prepare = true;
  EXPECT_EQ(resolve(c)->shares, std::vector<std::int32_t>());
  const auto broken = check_simulation(c, resolve_placement(c));
  ASSERT_EQ(broken.size(), 1U);
  EXPECT_EQ(broken.front().keys.front(), "stragglers.prepare");
}

TEST(CardShares, LeaveRoomForCachesBesideTheGradientsThatAreKeptOnTheSmallest) {
  const test::TemporaryFolder folder;
  PipelineConfig c = one_by_one(folder, Bytes(1'500'000'000'000));
  const ResolvedPipeline dropped = resolve(c).value();
  c.stragglers.prepare = true;
  const ResolvedPipeline kept = resolve(c).value();
  ASSERT_EQ(kept.shares, (std::vector<std::int32_t>{1, 2}));
  const SimulatedPlacement whole = simulated_placement(kept);
  const double capacity = actors::host_capacity(whole.run);
  const actors::ActorMemory all = actors::trainer_memory(whole.run);
  const double renewed = actors::parked(all, actors::Gradients::Dropped).total() +
                         actors::rollout_memory(actors::switching_engine(whole)).device.weights;
  // Half of the devices hold twice the optimizer states each, and the gradients of a part.
  SimulatedPlacement half = whole;
  half.run.trainer_cards /= 2;
  const actors::ActorMemory trainer = actors::trainer_memory(half.run);
  const double parked = actors::parked(trainer, actors::Gradients::Kept).total();
  EXPECT_GT(parked, actors::parked(trainer, actors::Gradients::Dropped).total());
  EXPECT_NEAR(*kept.host_left, capacity - std::max(renewed, parked), 1);
  EXPECT_LE(*kept.host_left, *dropped.host_left);
}

}  // namespace
}  // namespace temper::orchestrator
