// A simulated engine with disaggregated prefill. Its times against a naive simulation:
// simulated_naive_test.cpp.
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "rollout/simulated/prefill_instance.hpp"
#include "tests/rollout/simulated/simulated_world.hpp"

#include <numeric>

namespace temper::rollout {
namespace {

using actors::CardState;

void set_constant(actors::LengthConfig& lengths, double mean) {
  lengths.kind = actors::LengthKind::Constant;
  lengths.mean = mean;
  lengths.cap = Tokens(static_cast<std::int64_t>(mean));
}

/// The end of the response; it is the only one that ends then.
Time end_of(const World& world, ResponseId response) {
  for (const Sent& sent : world.sent()) {
    if (sent.is<actors::CountedGenerated>() &&
        sent.as<actors::CountedGenerated>().items[0].response == response)
      return sent.at;
  }
  ADD_FAILURE() << "response " << response.value() << " did not end";
  return {};
}

/// When a response that begins at 10 s ends, with 16 long prompts arriving so many seconds later.
Time end_beside_prompts(actors::SimulationSettings s, double later) {
  set_constant(s.config.prompt, 4000);
  set_constant(s.config.response, 150);
  std::vector<Scheduled> messages{at(time_of(10), work(1, 1)[0])};
  for (const auto& message : work(16, 1, 1))
    messages.push_back(at(time_of(10 + later), message));
  World world(s);
  world.run(messages);
  return end_of(world, ResponseId(0));
}

TEST(DisaggregatedPrefill, DoesNotDelayResponsesThatDecode) {
  for (auto s : {small_engine(), disaggregated_engine()}) {
    const Time alone = end_beside_prompts(s, 1000);
    // Prompts arrive before its last steps, and need longer.
    const double late = seconds(alone) - 10 - 0.05;
    if (s.config.rollout.prefill_cards == 0)
      EXPECT_GT(end_beside_prompts(s, late), alone);
    else
      EXPECT_EQ(end_beside_prompts(s, late), alone);
  }
}

TEST(DisaggregatedPrefill, TakesTheComputationAndTheTransfersOfABatch) {
  const auto s = disaggregated_engine();
  const PrefillInstance instance(s);
  EngineCost cost(actors::prefill_instance(s));
  // Two devices of tp 2 are a replica: two prefill replicas, two that decode. 3 x 400 computed
  // tokens are 600 a replica, in two steps of at most 512; 1000 fetched ones are one sequence.
  std::deque<PrefillPiece> pieces{{400, 0}, {400, 0}, {400, 1000}};
  pieces[2].cached = 1000;
  const PrefillInstance::BatchCost batch = instance.cost(pieces);
  double computed = 0;
  for (std::deque<PrefillPiece> left = pieces; !left.empty(); cost.finish_prefill(left))
    computed += cost.prefill(left, 0);
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  const double token = actors::kv_token_bytes(s);
  EXPECT_DOUBLE_EQ(batch.seconds,
                   computed + sim_hw::p2p_seconds(fabric, 4, 1000 * token) +
                       sim_hw::p2p_seconds(fabric, 4, 600 * token));
  EXPECT_EQ(batch.steps, 2);
}

TEST(DisaggregatedPrefill, StartsWithTheWholePromptBeforeTheFirstToken) {
  auto s = disaggregated_engine();
  set_constant(s.config.prompt, 500);
  set_constant(s.config.response, 1);
  World world(s);
  world.run({at(time_of(10), work(1, 1)[0])});
  const PrefillInstance instance(s);
  EXPECT_EQ(time_in(world, CardState::Prefill), from_seconds(instance.cost({{500, 0}}).seconds));
  EXPECT_EQ(time_of(10) + time_in(world, CardState::Prefill) + time_in(world, CardState::Decode),
            end_of(world, ResponseId(0)));
}

TEST(DisaggregatedPrefill, SaysTheSameWheneverItIsAsked) {
  auto s = disaggregated_engine();
  actors::ToolConfig& tools = s.config.tools.emplace();
  tools.turn.mean = 100;
  tools.result.mean = 50;
  tools.latency.p99_over_median = 8;
  limit_cache(s, 3500);
  expect_the_same_whenever_asked(s);
}

TEST(DisaggregatedPrefill, AccountsForAllTimeFromWorkToLastReport) {
  auto s = disaggregated_engine();
  s.config.tools.emplace().latency.mean = std::chrono::seconds(10);
  World world(s);
  world.run({at(time_of(10), work(1, 8)[0])});
  Duration sum{};
  for (const CardState state : {CardState::Prefill, CardState::Decode, CardState::WaitTools})
    sum += time_in(world, state);
  EXPECT_EQ(time_of(10) + sum, world.now());
}

TEST(DisaggregatedPrefill, ReportsTheTimeOfEachInstance) {
  World world(disaggregated_engine());
  auto messages = arriving(work(12, 8), 10, 20, 1);
  messages.push_back(at(time_of(400), actors::Stop{}));
  world.run(messages);
  const auto reports = world.all<actors::Activity>();
  ASSERT_FALSE(reports.empty());
  ASSERT_TRUE(reports.back().usage);
  const auto& use = reports.back().usage->engine;
  ASSERT_TRUE(use);
  EXPECT_EQ(use->prefill_devices, 4);
  EXPECT_EQ(use->decode, time_in(world, CardState::Decode));
  EXPECT_GT(use->prefill, time_in(world, CardState::Prefill)) << "some of it beside decoding";
}

TEST(DisaggregatedPrefill, BeginsABatchAgainAfterNewWeights) {
  auto s = disaggregated_engine();
  set_constant(s.config.prompt, 4000);
  set_constant(s.config.response, 10);
  const double batch = PrefillInstance(s).cost({{4000, 0}}).seconds;
  const double commit = 10 + batch / 2;
  World world(s);
  world.run({at(time_of(1), stage(1)),
             at(time_of(10), work(1, 1)[0]),
             at(time_of(commit), actors::CommitWeights{PolicyVersion(1)})});
  const Duration swap = from_seconds(actors::swap_seconds(sim_hw::make_fabric(s.cluster), s));
  EXPECT_EQ(time_in(world, CardState::Prefill),
            time_of(commit) - time_of(10) + from_seconds(batch));
  ASSERT_EQ(world.ended().size(), 1U);
  EXPECT_EQ(end_of(world, ResponseId(0)),
            time_of(commit) + swap + from_seconds(batch) + time_in(world, CardState::Decode));
}

TEST(DisaggregatedPrefill, EndsWithItsOnlyResponse) {
  auto s = disaggregated_engine();
  set_constant(s.config.prompt, 4000);
  World world(s);
  const double soon = 10 + PrefillInstance(s).cost({{4000, 0}}).seconds / 2;
  world.run({at(time_of(10), work(1, 1)[0]), at(time_of(soon), actors::Cancel{{ResponseId(0)}})});
  EXPECT_EQ(world.now(), time_of(soon));
  EXPECT_TRUE(world.ended().empty());
}

TEST(DisaggregatedPrefill, ContinuesElsewhereWhatAnInterruptLeaves) {
  auto s = disaggregated_engine();
  World world(s);
  world.run({at(time_of(10), work(1, 8)[0]),
             at(time_of(12), actors::Switch{actors::SwitchAction::Interrupt}),
             at(time_of(13), work(1, 8)[0])});
  std::map<std::uint64_t, std::int64_t> tokens;
  for (const auto& ended : world.ended())
    tokens[ended.response.value()] += ended.tokens.count();
  for (const auto& ended : world.ended()) {
    if (ended.finish == actors::FinishReason::Interrupted)
      tokens[ended.response.value()] -= ended.tokens.count();
  }
  ASSERT_EQ(tokens.size(), 8U);
  for (const auto& [response, count] : tokens)
    EXPECT_EQ(count, length_of(s, ResponseId(response)));
}

TEST(DisaggregatedPrefill, FailsAResponseThatItsPrefillInstanceCannotHold) {
  auto s = disaggregated_engine();
  s.cards = 3;  // One prefill replica has all experts, and less room than one that decodes.
  s.config.rollout.prefill_cards = 1;
  limit_cache(s, 2500);
  set_constant(s.config.prompt, 500);
  set_constant(s.config.response, 1800);
  ASSERT_LT(actors::kv_tokens(actors::prefill_instance(s)), Tokens(2300));
  ASSERT_GT(actors::kv_tokens(s), Tokens(2300));
  World world(s);
  world.run({at(time_of(10), work(1, 1)[0])});
  ASSERT_EQ(world.ended().size(), 1U);
  EXPECT_EQ(world.ended()[0].finish, actors::FinishReason::Failed);
}

TEST(DisaggregatedPrefill, PublishesToBothInstances) {
  const auto s = disaggregated_engine();
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  auto decoding = small_engine();
  EXPECT_GT(actors::publish_seconds(fabric, s), actors::publish_seconds(fabric, decoding));
  // Both instances have the same layout, hence the same weights.
  const double received = actors::publish_weights(fabric, s).received.total();
  EXPECT_NEAR(received, 2 * actors::version_bytes(s) * 4, 1e-3 * received);
}

TEST(DisaggregatedPrefill, RejectsWhatItDoesNotModel) {
  const auto error_of = [](const actors::SimulationSettings& s, OnNewWeights on_new_weights) {
    SimulatedRollout actor(s, 1, PolicyVersion(0), on_new_weights);
    actors::Outbox out([](actors::OutgoingMessage) {});
    const Status started = actor.start(Time{}, out);
    return started ? "" : started.error().context;
  };
  auto s = disaggregated_engine();
  EXPECT_EQ(error_of(s, OnNewWeights::KeepKv), "");
  EXPECT_NE(error_of(s, OnNewWeights::Recompute), "");
  s.config.rollout.chunked_prefill = true;
  EXPECT_NE(error_of(s, OnNewWeights::KeepKv), "");
  s = disaggregated_engine();
  s.config.rollout.prefill_cards = 4;
  EXPECT_EQ(error_of(s, OnNewWeights::KeepKv),
            "prefill_cards=4 leaves none of the 4 cards of an engine to decode; nearest: "
            "prefill_cards=2");
  s = disaggregated_engine();
  s.config.rollout.tp = 4;
  s.config.rollout.prefill_cards = 1;
  s.cards = 3;
  EXPECT_NE(error_of(s, OnNewWeights::KeepKv).find("prefill_cards=1: tp=4"), std::string::npos);
}

}  // namespace
}  // namespace temper::rollout
