// Whole simulated runs of random placements and workloads, with the shipped engines: each is
// refused before it starts or ends well, stays within its memory and passes the audit. TEMPER_RUNS
// sets how many (the default keeps the test short).
#include "core/random.hpp"
#include "orchestrator/pipeline/validate.hpp"
#include "tests/support/simulated_run.hpp"
#include "tests/support/small_pipeline.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <map>
#include <set>

namespace temper::orchestrator {
namespace {

std::uint64_t runs() {
  const char* text = std::getenv("TEMPER_RUNS");
  return text == nullptr ? 60 : std::strtoull(text, nullptr, 10);
}

/// A teacher of another shape, or the policy's, for a third of the runs each.
actors::ReferenceEngineConfig random_reference(Random& random) {
  constexpr std::array kTeachers{"qwen2.5-1.5b", "qwen2.5-14b", "qwen3-30b-a3b", "qwen2.5-72b"};
  actors::ReferenceEngineConfig c;
  const std::uint64_t third = random.below(3);
  if (third > 0)
    c.model = kTeachers[random.below(kTeachers.size())];
  if (third > 1) {
    c.tp = std::int64_t{1} << random.below(3);
    c.pp = std::int64_t{1} << random.below(2);
    c.ep = c.model == "qwen3-30b-a3b" ? std::int64_t{1} << random.below(3) : 1;
  }
  return c;
}

PipelineConfig random_pipeline(Random& random) {
  const auto power = [&](std::uint64_t most) {
    return static_cast<std::int32_t>(1) << random.below(most + 1);
  };
  PipelineConfig c = temper::testing::small_pipeline();
  c.steps = 1 + random.below(4);
  c.algorithm.groups_per_update = power(4);
  c.algorithm.responses_per_group = power(3);
  c.staleness.bound = static_cast<double>(random.below(4));
  const actors::PlacementTraits& mode =
      actors::kPlacementModes[random.below(actors::kPlacementModes.size())];
  c.placement.mode = mode.value;
  const bool everywhere = mode.alternates();
  const std::int32_t engine = power(2);
  c.rollout.replicas = everywhere ? 8 / engine : power(1);
  c.placement.rollout_cards = everywhere ? 0 : engine * c.rollout.replicas;
  c.reference.replicas = random.chance(0.3) ? 0 : 1;
  c.algorithm.kl = c.reference.replicas > 0 ? 0.01 : 0;
  const bool own_reference = !everywhere && !mode.shares_reference && c.reference.replicas > 0;
  c.placement.reference_cards = own_reference ? power(1) : 0;
  c.placement.cards =
      everywhere ? 8 : c.placement.rollout_cards + c.placement.reference_cards + engine * power(1);
  c.placement.lending = random.chance(0.5) ? LendingRule::Auto : LendingRule::Always;
  c.placement.return_share = random.uniform();
  c.rollout.concurrency = power(8);
  actors::SimulationConfig& s = c.simulation;
  constexpr std::array kModels{"qwen2.5-0.5b", "qwen2.5-7b", "qwen3-30b-a3b"};
  s.model = kModels[random.below(kModels.size())];
  s.prompt.mean = power(11);
  s.prompt.cap = Tokens(1 << 12);
  s.response.mean = power(12);
  s.response.p99_over_median = 1 + 9 * random.uniform();
  s.response.cap = Tokens(1 << 14);
  s.rollout.tp = power(2);
  s.rollout.ep = s.model == std::string("qwen3-30b-a3b") ? power(3) : 1;
  s.rollout.kv_share = 0.05 + 0.95 * random.uniform();
  s.trainer.tp = power(2);
  s.trainer.pp = power(1);
  s.trainer.ep = s.rollout.ep > 1 ? power(2) : 1;
  s.trainer.optimizer_on_host = random.chance(0.5);
  s.publication.link_share = 0.02 + 0.98 * random.uniform();
  c.algorithm.filter_equal_rewards = c.algorithm.responses_per_group > 1 && random.chance(0.3);
  c.rollout.on_new_weights = static_cast<rollout::OnNewWeights>(random.below(3));
  c.stragglers.predict_length = random.chance(0.5);
  c.stragglers.even_load = random.chance(0.5);
  s.response.sibling_correlation = random.uniform();
  if (everywhere && random.chance(0.5))
    c.placement.switching = Switching::OneByOne;
  return c;
}

/// It ends well, within its memory, and passes the audit.
testing::SimulatedOutcome run_within_limits(
    const PipelineConfig& config, const std::function<void(const Record&)>& on_record = nullptr) {
  testing::SimulatedOutcome ran = testing::run_simulated(config, on_record);
  EXPECT_TRUE(ran.outcome.finish.ok) << ran.outcome.finish.reason;
  EXPECT_EQ(ran.audit.violations, std::vector<std::string>());
  EXPECT_TRUE(ran.summary.memory.has_value());
  for (const auto& [role, memory] : ran.summary.memory.value()) {
    EXPECT_LE(memory.device.peak_bytes, memory.device.capacity_bytes) << name_of(role);
    EXPECT_LE(memory.host.peak_bytes, memory.host.capacity_bytes) << name_of(role);
  }
  return ran;
}

TEST(RandomRuns, AreRefusedOrStayWithinTheirMemoryAndTheirBound) {
  std::uint64_t refused = 0, without_turns = 0, teachers = 0;
  std::set<PlacementMode> modes;
  for (std::uint64_t seed = 0; seed < runs(); ++seed) {
    Random random(seed, "runs");
    PipelineConfig config = random_pipeline(random);
    config.simulation.reference = random_reference(random);
    if (!validate(config).empty()) {
      ++refused;
      continue;
    }
    SCOPED_TRACE(seed);
    const testing::SimulatedOutcome ran = run_within_limits(config);
    ASSERT_FALSE(HasFailure());
    modes.insert(config.placement.mode);
    without_turns += ran.summary.switches.count == 0 ? 1 : 0;
    teachers += config.reference.replicas > 0 && !config.simulation.reference.model.empty() ? 1 : 0;
  }
  EXPECT_EQ(modes.size(), actors::kPlacementModes.size());
  EXPECT_LT(refused, runs() * 9 / 10);
  RecordProperty("refused", static_cast<int>(refused));
  EXPECT_LT(without_turns, runs() - refused) << "some took turns";
  EXPECT_GT(teachers, runs() / 20);
}

TEST(RandomRuns, WithACriticOrAnAdapterStayWithinTheirMemoryAndTheirBound) {
  std::uint64_t critics = 0, single = 0, adapters = 0, finishing = 0;
  for (std::uint64_t seed = 0; seed < runs(); ++seed) {
    Random random(seed, "critics and adapters");
    PipelineConfig config = random_pipeline(random);
    const bool critic = random.chance(0.5);
    if (critic) {
      config.algorithm.name = trainer::AlgorithmName::PpoCritic;
      config.algorithm.filter_equal_rewards = false;
      config.algorithm.critic.warm_up_steps = static_cast<std::int32_t>(random.below(3));
    } else {
      config.model.lora = actors::LoraConfig{.rank = 8, .alpha = 16};
    }
    if (!validate(config).empty())
      continue;
    SCOPED_TRACE(seed);
    run_within_limits(config);
    ASSERT_FALSE(HasFailure());
    critics += critic ? 1 : 0;
    single += critic && config.algorithm.responses_per_group == 1 ? 1 : 0;
    adapters += critic ? 0 : 1;
    finishing += config.rollout.on_new_weights == rollout::OnNewWeights::Finish ? 1 : 0;
  }
  EXPECT_GT(critics, 0U);
  EXPECT_GT(single, 0U) << "groups of one";
  EXPECT_GT(adapters, 0U);
  EXPECT_GT(finishing, 0U);
}

TEST(RandomRuns, WithPrefillCardsStayWithinTheirMemoryAndTheirBound) {
  std::uint64_t ran = 0;
  std::set<PlacementMode> modes;
  for (std::uint64_t seed = 0; seed < 2 * runs(); ++seed) {
    Random random(seed, "prefill cards");
    PipelineConfig config = random_pipeline(random);
    const std::int32_t cards =
        traits_of(config.placement.mode).alternates() ? 8 : config.placement.rollout_cards;
    config.simulation.rollout.prefill_cards = cards / config.rollout.replicas / 2;
    if (config.simulation.rollout.prefill_cards == 0)
      continue;
    if (config.rollout.on_new_weights == rollout::OnNewWeights::Recompute)
      config.rollout.on_new_weights = rollout::OnNewWeights::KeepKv;
    if (random.chance(0.5)) {
      actors::ToolConfig& tools = config.simulation.tools.emplace();
      tools.turn.mean = 100;
      tools.result.mean = 200;
      tools.latency.mean = std::chrono::seconds(2);
    }
    if (!validate(config).empty())
      continue;
    SCOPED_TRACE(seed);
    const testing::SimulatedOutcome outcome = run_within_limits(config);
    ASSERT_FALSE(HasFailure());
    ASSERT_TRUE(outcome.summary.engines);
    EXPECT_GT(outcome.summary.engines->prefill_devices, 0);
    modes.insert(config.placement.mode);
    ++ran;
  }
  EXPECT_EQ(modes.size(), actors::kPlacementModes.size());
  EXPECT_GT(ran, runs() / 6);
}

TEST(RandomRuns, WithSeveralTeachersScoreEachResponseByItsOwn) {
  std::map<std::size_t, std::uint64_t> ran;
  std::set<PlacementMode> modes;
  for (std::uint64_t seed = 0; seed < 2 * runs(); ++seed) {
    Random random(seed, "teachers");
    PipelineConfig config = random_pipeline(random);
    if (config.reference.replicas == 0)
      continue;
    const std::uint64_t teachers = 2 + random.below(2);
    for (std::uint64_t t = 0; t < teachers; ++t) {
      const std::string name(1, static_cast<char>('a' + t));
      config.reference.teachers[name].replicas = t == 0 && teachers == 3 ? 2 : 1;
      actors::TaskSource& source = config.task.sources["of-" + name];
      source.weight = 0.5 + random.uniform();
      source.teacher = name;
    }
    if (config.placement.reference_cards > 0) {
      const std::int32_t more = 4 * config.placement.reference_cards;
      config.placement.cards += more - config.placement.reference_cards;
      config.placement.reference_cards = more;
    }
    if (!validate(config).empty())
      continue;
    SCOPED_TRACE(seed);
    std::set<std::uint32_t> scored;
    std::vector<ActorSpec> actors;
    const testing::SimulatedOutcome outcome = run_within_limits(config, [&](const Record& record) {
      if (const auto* now = actors_in(record.event))
        actors = *now;
      for (const Command& command : record.commands) {
        if (const auto* score = std::get_if<command::ScoreReference>(&command))
          scored.insert(*actors[score->actor.value()].teacher);
      }
    });
    ASSERT_FALSE(HasFailure());
    if (outcome.audit.groups_dispatched > 2 * teachers) {
      EXPECT_EQ(scored.size(), teachers);
    }
    modes.insert(config.placement.mode);
    ++ran[teachers];
  }
  EXPECT_GT(ran[2], 0U);
  EXPECT_GT(ran[3], 0U);
  EXPECT_GT(modes.size(), 1U);
}

}  // namespace
}  // namespace temper::orchestrator
