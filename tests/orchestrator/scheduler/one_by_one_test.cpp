// Engines that give up their cards one by one: what those that stay go on doing, and on how many
// cards the trainer works.
#include "tests/support/scheduler_world.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using actors::RoleKind;
using actors::SwitchAction;
using testing::Chaos;
using testing::World;

/// Four engines, a reference and a trainer on the same cards.
SchedulerConfig fused() {
  SchedulerConfig c;
  for (std::uint32_t i = 0; i < 4; ++i)
    c.actors.push_back({fmt::format("rollout-{}", i), RoleKind::Rollout, {CardId(i)}, 4, true});
  c.actors.push_back({"reference-0", RoleKind::Reference, {}, 0, true});
  c.actors.push_back({"reward-0", RoleKind::Reward, {}, 0});
  c.actors.push_back({"trainer", RoleKind::Trainer, {}, 0});
  c.steps = 8;
  c.groups_per_update = 6;
  c.responses_per_group = 2;
  c.staleness_bound = 2;
  c.max_restarts = 1000;
  c.stragglers.prepare = true;
  c.switching = Switching::OneByOne;
  c.shares = {1, 2, 3, 4};
  c.crowding = 0.5;
  return c;
}

/// Every record of runs in several worlds, in order.
void for_each_record(const SchedulerConfig& config,
                     const Chaos& chaos,
                     const std::function<void(const Record&)>& look) {
  for (std::uint64_t seed = 0; seed < 40; ++seed) {
    World world(config, chaos, seed);
    world.on_record = look;
    const testing::Played played = world.play();
    EXPECT_TRUE(played.finish.ok) << played.why();
    EXPECT_EQ(played.audit.violations, std::vector<std::string>{});
  }
}

/// Responses that engines have been given and not handed over or given back.
class InFlight {
 public:
  void note(const Record& record) {
    if (record.sequence == 0)
      of_.clear();
    if (const auto* generated = std::get_if<event::Generated>(&record.event)) {
      for (const auto& item : generated->items)
        of_[generated->actor].erase(item.response);
    }
    if (const auto* down = std::get_if<event::ActorDown>(&record.event))
      of_[down->actor].clear();
    for (const Command& command : record.commands) {
      if (const auto* dispatch = std::get_if<command::Dispatch>(&command))
        of_[dispatch->actor].insert(dispatch->responses.begin(), dispatch->responses.end());
      if (const auto* cancel = std::get_if<command::Cancel>(&command))
        of_[cancel->actor].erase(cancel->response);
    }
  }
  std::size_t of(ActorId engine) { return of_[engine].size(); }
  std::size_t all() const {
    std::size_t sum = 0;
    for (const auto& [engine, responses] : of_)
      sum += responses.size();
    return sum;
  }

 private:
  std::map<ActorId, std::set<ResponseId>> of_;
};

/// A response that was cancelled may still run when its engine hears of the next thing. An engine
/// that stayed and then had nothing more to do was told to free its memory beside such a one.
TEST(OneByOne, MemoryIsFreedOnlyAfterAnInterruptionAlsoWhereResponsesWereCancelled) {
  std::set<ActorId> interrupted;
  int freed = 0, cancelled = 0;
  for_each_record(fused(), {.hang = 0.01, .failed_sample = 0.2}, [&](const Record& record) {
    for (const Command& command : record.commands) {
      cancelled += std::holds_alternative<command::Cancel>(command) ? 1 : 0;
      if (const auto* launch = std::get_if<command::Launch>(&command))
        interrupted.insert(launch->actor);
      const auto* change = std::get_if<command::Switch>(&command);
      if (change == nullptr)
        continue;
      if (change->action == SwitchAction::Interrupt)
        interrupted.insert(change->actor);
      if (change->action == SwitchAction::AllocateKv)
        interrupted.erase(change->actor);
      if (change->action == SwitchAction::FreeKv) {
        ++freed;
        EXPECT_TRUE(interrupted.contains(change->actor)) << change->actor.value();
      }
    }
  });
  EXPECT_GT(freed, 100);
  EXPECT_GT(cancelled, 100);
}

TEST(OneByOne, AnEngineThatStaysGetsNewWeightsWhileItGenerates) {
  SchedulerConfig config = fused();
  config.steps = 24;
  for (ActorSpec& actor : config.actors)  // Three have room for what the bound admits.
    actor.concurrency = actor.role == RoleKind::Rollout ? 12 : 0;
  InFlight in_flight;
  int renewed = 0;
  for_each_record(config, {}, [&](const Record& record) {
    in_flight.note(record);
    for (const Command& command : record.commands) {
      if (const auto* commit = std::get_if<command::CommitWeights>(&command))
        renewed += in_flight.of(commit->actor) > 0 ? 1 : 0;
    }
  });
  EXPECT_GT(renewed, 40);
}

TEST(OneByOne, ATrainerHasAllCardsBeforeItBeginsWhatIsLeftWhenNobodyGenerates) {
  SchedulerConfig config = fused();
  config.staleness_bound = 0;
  InFlight in_flight;
  std::size_t cards = 4, prepared = 0;
  int updates = 0;
  for_each_record(config, {}, [&](const Record& record) {
    in_flight.note(record);
    for (const Command& command : record.commands) {
      if (const auto* change = std::get_if<command::Switch>(&command);
          change != nullptr && change->action == SwitchAction::OnloadOptimizer)
        cards = change->cards_of.size();
      if (const auto* prepare = std::get_if<command::Prepare>(&command))
        prepared += prepare->responses.size();
      if (const auto* train = std::get_if<command::Train>(&command)) {
        const std::size_t rest = train->responses.size() - std::exchange(prepared, 0);
        if (in_flight.all() > 0 || rest * 8 < train->responses.size())
          continue;
        ++updates;
        EXPECT_EQ(cards, 4U) << "for " << rest << " responses";
      }
    }
  });
  EXPECT_GT(updates, 100);
}

/// A batch of sixteen groups, in parts of two.
SchedulerConfig with_parts() {
  SchedulerConfig config = fused();
  config.groups_per_update = 16;
  return config;
}

TEST(OneByOne, ABatchIsScoredAndTrainedInPartsOfAnEighth) {
  std::size_t prepared = 0, scored = 0;
  for_each_record(with_parts(), {}, [&](const Record& record) {
    for (const Command& command : record.commands) {
      if (const auto* prepare = std::get_if<command::Prepare>(&command)) {
        ++prepared;
        EXPECT_LE(prepare->responses.size(), 4U);
      }
      if (const auto* score = std::get_if<command::ScoreReference>(&command)) {
        ++scored;
        EXPECT_LE(score->responses.size(), 4U);
      }
    }
  });
  EXPECT_GT(prepared, 400U);
  EXPECT_GT(scored, 400U);
}

TEST(OneByOne, BetweenPartsOfABatchTheTrainerGetsTheCardsOfEnginesThatRanEmpty) {
  std::size_t cards = 0;
  int grown = 0;
  bool preparing = false;
  for_each_record(with_parts(), {}, [&](const Record& record) {
    for (const Command& command : record.commands) {
      preparing |= std::holds_alternative<command::Prepare>(command);
      if (std::holds_alternative<command::Train>(command))
        preparing = false;
      const auto* change = std::get_if<command::Switch>(&command);
      if (change == nullptr || change->action != SwitchAction::OnloadOptimizer)
        continue;
      grown += preparing && change->cards_of.size() > cards ? 1 : 0;
      cards = change->cards_of.size();
    }
  });
  EXPECT_GT(grown, 40);
}

}  // namespace
}  // namespace temper::orchestrator
