#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "tests/rollout/simulated/simulated_world.hpp"

#include <map>
#include <numeric>
#include <set>

namespace temper::rollout {
namespace {

using actors::CardState;
using actors::FinishReason;
using actors::SwitchAction;

std::int64_t sum(const std::vector<actors::Segment>& segments) {
  return std::accumulate(
      segments.begin(), segments.end(), std::int64_t{0}, [](std::int64_t n, const auto& s) {
        return n + s.tokens.count();
      });
}

actors::OutgoingMessage change(SwitchAction action) {
  return actors::outgoing(actors::Switch{action});
}

/// Stages and commits versions 1 to 3, cancels twice, with work throughout.
std::vector<Scheduled> busy_life(std::uint64_t seed) {
  auto messages = arriving(work(20, 8), 0, 8, seed);
  for (std::uint64_t v = 1; v <= 3; ++v) {
    messages.push_back(at(time_of(4.0 * static_cast<double>(v)), stage(v)));
    messages.push_back(
        at(time_of(4.0 * static_cast<double>(v) + 3.5), actors::CommitWeights{PolicyVersion(v)}));
  }
  messages.push_back(at(time_of(9.1), actors::Cancel{{ResponseId(3), ResponseId(40)}}));
  messages.push_back(at(time_of(14.7), actors::Cancel{{ResponseId(77)}}));
  std::stable_sort(
      messages.begin(), messages.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  return messages;
}

TEST(SimulatedRollout, EndsEveryResponseOnceWithItsLength) {
  auto s = small_engine();
  limit_cache(s, 3000);
  World world(s);
  world.run(arriving(work(30, 8), 0, 10, 1));
  std::set<ResponseId> seen;
  const actors::Lengths prompts(s.config.prompt, 1, actors::kPromptLengths);
  for (const auto& item : world.ended()) {
    EXPECT_TRUE(seen.insert(item.response).second);
    EXPECT_EQ(item.tokens.count(), length_of(s, item.response));
    EXPECT_EQ(sum(item.segments), item.tokens.count());
    EXPECT_EQ(item.lease, LeaseId(item.response.value() / 8 + 1));
    EXPECT_EQ(item.prompt, prompts.of(item.response.value() / 8));
    EXPECT_EQ(item.finish, item.tokens.count() == 1500 ? FinishReason::Length : FinishReason::End);
  }
  EXPECT_EQ(seen.size(), 240U);
  EXPECT_GT(world.actor().counters().preemptions, 0);
  EXPECT_LE(world.actor().counters().most_blocks, world.actor().counters().blocks);
  EXPECT_FALSE(world.actor().next_event());
}

TEST(SimulatedRollout, CountsAPrefixTowardsTheLength) {
  auto s = small_engine();
  s.config.response.kind = actors::LengthKind::Constant;
  World world(s);
  auto message = work(1, 3)[0];
  message.items[0].prefix = Tokens(299);
  message.items[1].prefix = Tokens(300);
  message.items[2].prefix = Tokens(100);
  world.run({at(Time{}, message)});
  std::map<ResponseId, std::int64_t> tokens;
  for (const auto& item : world.ended()) {
    EXPECT_EQ(item.finish, FinishReason::End);
    tokens[item.response] = item.tokens.count();
  }
  EXPECT_EQ(tokens,
            (std::map<ResponseId, std::int64_t>{
                {ResponseId(0), 1}, {ResponseId(1), 0}, {ResponseId(2), 200}}));
}

TEST(SimulatedRollout, SaysTheSameWheneverItIsAsked) {
  auto s = small_engine();
  limit_cache(s, 3000);
  s.config.report_every = std::chrono::milliseconds(300);
  for (const std::uint64_t seed : {1U, 2U, 3U}) {
    World once(s, seed);
    once.run(busy_life(seed));
    World again(s, seed);
    again.run(busy_life(seed));
    World cut(s, seed);
    cut.run(busy_life(seed), 5);
    EXPECT_EQ(once.sent(), again.sent());
    EXPECT_EQ(once.sent(), cut.sent());
    EXPECT_EQ(once.all<actors::WeightsCommitted>().size(), 3U);
    for (const auto& answer : once.all<actors::WeightsCommitted>())
      EXPECT_EQ(answer.error, "");
    // Everything that was not canceled in time has finished.
    std::set<ResponseId> missing;
    for (std::uint64_t r = 0; r < 160; ++r)
      missing.insert(ResponseId(r));
    for (const auto& item : once.ended())
      EXPECT_EQ(missing.erase(item.response), 1U);
    EXPECT_FALSE(missing.empty());
    for (const ResponseId r : missing)
      EXPECT_TRUE(r == ResponseId(3) || r == ResponseId(40) || r == ResponseId(77));
  }
}

TEST(SimulatedRollout, ReportsBusySpansThatDoNotOverlap) {
  auto s = small_engine();
  limit_cache(s, 3000);
  s.config.report_every = std::chrono::milliseconds(300);
  World world(s);
  world.run(busy_life(1));
  Time last{};
  std::set<CardState> states;
  for (const Sent& sent : world.sent()) {
    if (!sent.is<actors::Activity>())
      continue;
    for (const actors::Span& span : sent.as<actors::Activity>().spans) {
      EXPECT_GE(span.begin, last);
      EXPECT_GT(span.end, span.begin);
      EXPECT_LE(span.end, sent.at);
      last = span.end;
      states.insert(span.state);
    }
  }
  EXPECT_EQ(states,
            (std::set<CardState>{CardState::Prefill, CardState::Decode, CardState::WeightSync}));
  EXPECT_EQ(last, world.now());
}

TEST(SimulatedRollout, IsBusyFromWorkToLastReport) {
  World world(small_engine());
  world.run({at(time_of(10), work(1, 4)[0])});
  Duration busy{};
  Time first = Time::max();
  for (const auto& activity : world.all<actors::Activity>()) {
    for (const actors::Span& span : activity.spans) {
      if (span.state == CardState::WeightSync)
        continue;
      busy += span.end - span.begin;
      first = std::min(first, span.begin);
    }
  }
  EXPECT_EQ(first, time_of(10));
  EXPECT_EQ(first + busy, world.now());
}

TEST(SimulatedRollout, GoesOnUnderNewWeightsInANewSegment) {
  World world(small_engine());
  auto messages = std::vector<Scheduled>{at(Time{}, stage(1)), at(time_of(5), work(1, 8)[0])};
  messages.push_back(at(time_of(7), actors::CommitWeights{PolicyVersion(1)}));
  world.run(messages);
  bool mixed = false;
  for (const auto& item : world.ended()) {
    EXPECT_EQ(sum(item.segments), length_of(small_engine(), item.response));
    if (item.segments.size() == 2) {
      mixed = true;
      EXPECT_EQ(item.segments[0].version, PolicyVersion(0));
      EXPECT_EQ(item.segments[1].version, PolicyVersion(1));
    }
  }
  EXPECT_TRUE(mixed);
  ASSERT_EQ(world.all<actors::WeightsStaged>().size(), 1U);
  ASSERT_EQ(world.all<actors::WeightsCommitted>().size(), 1U);
  EXPECT_EQ(world.all<actors::WeightsCommitted>()[0].error, "");
}

TEST(SimulatedRollout, ComputesPrefixesAgainWhereAskedTo) {
  auto messages = std::vector<Scheduled>{at(Time{}, stage(1)), at(time_of(5), work(1, 8)[0])};
  messages.push_back(at(time_of(7), actors::CommitWeights{PolicyVersion(1)}));
  World keep(small_engine());
  keep.run(messages);
  World recompute(small_engine(), 1, OnNewWeights::Recompute);
  recompute.run(messages);
  EXPECT_GT(recompute.actor().counters().prefill_steps, keep.actor().counters().prefill_steps);
  EXPECT_EQ(recompute.actor().counters().decode_steps, keep.actor().counters().decode_steps);
  EXPECT_GT(recompute.now(), keep.now());
}

TEST(SimulatedRollout, StagesBesideGenerationAndSwapsBetweenSteps) {
  const auto s = small_engine();
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  World world(s);
  world.run({at(time_of(5), work(1, 8)[0]),
             at(time_of(5), stage(1)),
             at(time_of(60), actors::CommitWeights{PolicyVersion(1)})});
  for (const Sent& sent : world.sent()) {
    if (sent.is<actors::WeightsStaged>()) {
      EXPECT_EQ(sent.at, time_of(5) + from_seconds(actors::publish_seconds(fabric, s)));
    }
    if (sent.is<actors::WeightsCommitted>()) {
      EXPECT_EQ(sent.at, time_of(60) + from_seconds(actors::swap_seconds(fabric, s)));
    }
  }
  const auto spans = world.all<actors::Activity>().back().spans;
  EXPECT_EQ(spans.back().state, CardState::WeightSync);
}

TEST(SimulatedRollout, OnSharedCardsAVersionBesideWeightsInUseComesByWayOfItsHosts) {
  auto s = small_engine();
  s.colocated = true;
  const sim_hw::Fabric fabric = sim_hw::make_fabric(s.cluster);
  World world(s);
  world.run({at(time_of(5), stage(1)),
             at(time_of(60), actors::CommitWeights{PolicyVersion(1)}),
             at(time_of(70), stage(2)),
             at(time_of(120), actors::CommitWeights{PolicyVersion(2)})});
  std::vector<Time> times;
  for (const Sent& sent : world.sent()) {
    if (sent.is<actors::WeightsStaged>() || sent.is<actors::WeightsCommitted>())
      times.push_back(sent.at);
  }
  const auto after = [](double begin, double takes) {
    return time_of(begin) + from_seconds(takes);
  };
  EXPECT_EQ(times,
            (std::vector{after(5, actors::publish_seconds(fabric, s)),
                         after(60, actors::swap_seconds(fabric, s)),
                         after(70, actors::publish_beside(fabric, s).seconds),
                         after(120, actors::swap_beside_seconds(fabric, s))}));
  const double weights = actors::rollout_memory(s).device.weights;
  EXPECT_GT(actors::swap_beside_seconds(fabric, s), weights * fabric.to_device);
}

TEST(SimulatedRollout, GeneratesAsMuchWhileWeightsArrive) {
  auto s = small_engine();
  s.config.publication.mode = actors::PublicationMode::Broadcast;
  s.rollout_cards = 400;  // 200 engines to serve, so staging is slow.
  World alone(s);
  alone.run(arriving(work(20, 8), 0, 8, 1));
  World staging(s);
  auto messages = arriving(work(20, 8), 0, 8, 1);
  messages.push_back(at(time_of(4), stage(1)));
  std::stable_sort(
      messages.begin(), messages.end(), [](const auto& a, const auto& b) { return a.at < b.at; });
  const Duration publish = from_seconds(actors::publish_seconds(sim_hw::make_fabric(s.cluster), s));
  staging.run(messages);
  const auto reports = [](const World& world) {
    std::vector<Sent> out;
    for (const Sent& sent : world.sent()) {
      if (sent.is<actors::CountedGenerated>())
        out.push_back(sent);
    }
    return out;
  };
  EXPECT_EQ(reports(staging), reports(alone));
  EXPECT_EQ(staging.all<actors::WeightsStaged>().size(), 1U);
  const auto meanwhile = std::ranges::count_if(reports(staging), [&](const Sent& sent) {
    return sent.at > time_of(4) && sent.at < time_of(4) + publish;
  });
  EXPECT_GT(meanwhile, 3);
}

TEST(SimulatedRollout, RefusesWeightsThatAreNotStagedOrOlder) {
  World world(small_engine());
  world.run({at(time_of(5), actors::CommitWeights{PolicyVersion(1)}),
             at(time_of(5), stage(2)),
             at(time_of(20), actors::CommitWeights{PolicyVersion(2)}),
             at(time_of(21), stage(1)),
             at(time_of(40), actors::CommitWeights{PolicyVersion(1)})});
  const auto answers = world.all<actors::WeightsCommitted>();
  ASSERT_EQ(answers.size(), 3U);
  EXPECT_EQ(answers[0].error, "commit of version 1: it was not staged");
  EXPECT_EQ(answers[1].error, "");
  EXPECT_EQ(answers[2].error, "commit of version 1: the engine already has version 2");
}

TEST(SimulatedRollout, ReportsWhatWasSampledOfCancelledResponses) {
  World world(small_engine());
  world.run({at(time_of(5), work(1, 8)[0]),
             at(time_of(5.5), actors::Cancel{{ResponseId(2), ResponseId(5), ResponseId(999)}})});
  ASSERT_EQ(world.ended().size(), 8U);
  for (const auto& item : world.ended()) {
    const bool cancelled = item.response == ResponseId(2) || item.response == ResponseId(5);
    EXPECT_EQ(item.finish == actors::FinishReason::Interrupted, cancelled);
    EXPECT_GT(item.tokens, Tokens(0));
  }
}

TEST(SimulatedRollout, SaysNothingOfACancelledResponseThatHadNotBegun) {
  auto s = small_engine();
  s.concurrency = 4;
  World world(s);
  world.run({at(time_of(5), work(1, 8)[0]), at(time_of(5.01), actors::Cancel{{ResponseId(7)}})});
  for (const auto& item : world.ended())
    EXPECT_NE(item.response, ResponseId(7));
  EXPECT_EQ(world.ended().size(), 7U);
}

TEST(SimulatedRollout, HandsEverythingBackAndLengthsHoldElsewhere) {
  const auto s = small_engine();
  World first(s);
  const auto messages = work(6, 8);  // More than fit at once.
  std::vector<Scheduled> scheduled;
  for (const auto& m : messages)
    scheduled.push_back(at(time_of(5), m));
  scheduled.push_back({time_of(8), change(SwitchAction::Interrupt)});
  first.run(scheduled);
  EXPECT_EQ(first.all<actors::Switched>().size(), 1U);
  EXPECT_TRUE(first.sent().back().is<actors::Switched>());

  std::map<ResponseId, std::int64_t> tokens;
  std::vector<Scheduled> resumed;
  int running = 0;
  int waiting = 0;
  for (const auto& item : first.ended()) {
    EXPECT_EQ(sum(item.segments), item.tokens.count());
    tokens[item.response] += item.tokens.count();
    if (item.finish != FinishReason::Interrupted)
      continue;
    (item.tokens.count() > 0 ? running : waiting)++;
    actors::CountedGenerate again;
    again.lease = LeaseId(1000 + item.response.value());
    again.group = GroupId(item.response.value() / 8);
    again.items = {{item.response, item.tokens}};
    resumed.push_back(at(time_of(5), again));
  }
  EXPECT_GT(running, 0);
  EXPECT_GT(waiting, 0);
  EXPECT_EQ(tokens.size(), 48U);

  World second(s);
  second.run(resumed);
  for (const auto& item : second.ended()) {
    tokens[item.response] += item.tokens.count();
    EXPECT_EQ(item.lease, LeaseId(1000 + item.response.value()));
  }
  for (const auto& [response, count] : tokens)
    EXPECT_EQ(count, length_of(s, response));
}

TEST(SimulatedRollout, HandsBackWhatIsWithdrawnAndGoesOnWithTheRest) {
  const auto s = small_engine();
  World world(s);
  world.run({at(time_of(5), work(1, 8)[0]),
             at(time_of(5.5), actors::Withdraw{{ResponseId(2), ResponseId(5), ResponseId(999)}})});
  std::map<ResponseId, FinishReason> ends;
  for (const auto& item : world.ended()) {
    ends[item.response] = item.finish;
    EXPECT_EQ(sum(item.segments), item.tokens.count());
    const bool back = item.response == ResponseId(2) || item.response == ResponseId(5);
    EXPECT_EQ(item.finish == FinishReason::Interrupted, back);
    if (back) {
      EXPECT_LT(item.tokens.count(), length_of(s, item.response));
    }
  }
  EXPECT_EQ(ends.size(), 8U);
}

TEST(SimulatedRollout, GivesMemoryBackAndTakesItAgain) {
  auto s = small_engine();
  s.colocated = true;
  World world(s);
  world.run({at(time_of(1), work(1, 2)[0]),  // Waits for weights and cache.
             at(time_of(2), stage(0)),
             at(time_of(20), actors::CommitWeights{PolicyVersion(0)}),
             {time_of(21), change(SwitchAction::AllocateKv)},
             {time_of(100), change(SwitchAction::Interrupt)},
             {time_of(100), change(SwitchAction::FreeKv)},
             {time_of(100), change(SwitchAction::FreeWeights)},
             {time_of(100), change(SwitchAction::OnloadOptimizer)}});
  EXPECT_EQ(world.ended().size(), 2U);
  const auto answers = world.all<actors::Switched>();
  ASSERT_EQ(answers.size(), 5U);
  const actors::ActorMemory memory = actors::rollout_memory(s);
  const Bytes weights = actors::bytes_on(s, s.cards, memory.device.weights);
  const Bytes both = actors::bytes_on(s, s.cards, memory.device.weights + memory.device.kv_cache);
  EXPECT_EQ(answers[0].cost.device_before, weights);
  EXPECT_EQ(answers[0].cost.device_after, both);
  EXPECT_GT(answers[0].cost.duration, Duration(0));
  EXPECT_EQ(answers[1].cost.duration, Duration(0));
  EXPECT_EQ(answers[2].cost.device_after, weights);
  EXPECT_EQ(answers[3].cost.device_after, Bytes(0));
  for (int i = 0; i < 4; ++i)
    EXPECT_EQ(answers[static_cast<std::size_t>(i)].error, "");
  EXPECT_EQ(answers[4].error, "a rollout actor does not support the action onload_optimizer");
}

TEST(SimulatedRollout, KeepsItsMemoryWhileItHasWork) {
  World world(small_engine());
  world.run({at(time_of(5), work(1, 8)[0]),
             {time_of(6), change(SwitchAction::FreeKv)},
             {time_of(6), change(SwitchAction::FreeWeights)}});
  const auto answers = world.all<actors::Switched>();
  ASSERT_EQ(answers.size(), 2U);
  EXPECT_EQ(answers[0].error, "free_kv: the engine must be idle, but has 8 responses");
  EXPECT_EQ(answers[1].error, "free_weights: the engine must be idle, but has 8 responses");
  EXPECT_EQ(world.ended().size(), 8U);
}

TEST(SimulatedRollout, ReportsTogetherWithinTheInterval) {
  auto s = small_engine();
  s.config.report_every = std::chrono::seconds(1);
  World world(s);
  world.run(arriving(work(20, 8), 3, 5, 1));
  std::vector<Time> reports;
  for (const Sent& sent : world.sent()) {
    if (sent.is<actors::CountedGenerated>())
      reports.push_back(sent.at);
  }
  EXPECT_EQ(world.ended().size(), 160U);
  EXPECT_LT(reports.size(), 100U);
  for (std::size_t i = 0; i + 2 < reports.size(); ++i)
    EXPECT_GE(reports[i + 1] - reports[i], std::chrono::seconds(1));
}

TEST(SimulatedRollout, FailsAResponseThatNoReplicaCanHold) {
  auto s = small_engine();
  limit_cache(s, 800);
  s.config.response.kind = actors::LengthKind::Trace;
  s.config.response.lengths = {1500, 30};
  s.config.prompt.kind = actors::LengthKind::Constant;
  World world(s);
  world.run({at(time_of(5), work(1, 2)[0])});
  std::map<ResponseId, FinishReason> reasons;
  for (const auto& item : world.ended())
    reasons[item.response] = item.finish;
  EXPECT_EQ(reasons[ResponseId(0)], FinishReason::Failed);
  EXPECT_EQ(reasons[ResponseId(1)], FinishReason::End);
}

TEST(SimulatedRollout, RefusesToStartWhereWeightsDoNotFit) {
  auto s = small_engine();
  s.model = **sim_hw::Catalog::shipped().model("qwen3-235b-a22b");
  SimulatedRollout actor(s, 1, PolicyVersion(0));
  actors::Outbox out([](actors::OutgoingMessage) {});
  const Status status = actor.start(Time{}, out);
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::OutOfMemory);
  s = small_engine();
  s.config.rollout.tp = 3;
  EXPECT_FALSE(SimulatedRollout(s, 1, PolicyVersion(0)).start(Time{}, out));
}

}  // namespace
}  // namespace temper::rollout
