// Evaluations as the scheduler orders them, and what the auditor says of one that is not as it
// should be.
#include "orchestrator/record/audit.hpp"
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "tests/support/scheduler_world.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using testing::Chaos;
using testing::World;

ActorSpec actor(std::string name, actors::RoleKind role, std::int32_t concurrency = 0) {
  return {std::move(name), role, {CardId(0)}, concurrency};
}

SchedulerConfig config_of(std::uint64_t every) {
  SchedulerConfig c;
  c.steps = 7;
  c.groups_per_update = 2;
  c.responses_per_group = 2;
  c.staleness_bound = 1;
  c.actors = {actor("rollout-0", actors::RoleKind::Rollout, 8),
              actor("rollout-1", actors::RoleKind::Rollout, 8),
              actor("reward-0", actors::RoleKind::Reward),
              actor("trainer-0", actors::RoleKind::Trainer)};
  c.evaluation = {every, 5, 3, 0.5, true};
  return c;
}

struct Seen {
  std::vector<command::Evaluated> evaluations;
  std::vector<std::uint64_t> checkpoints;
  std::vector<Record> records;
};

Seen play(const SchedulerConfig& config, const Chaos& chaos = {}) {
  Seen seen;
  World world(config, chaos, 1);
  world.on_record = [&](const Record& record) {
    seen.records.push_back(record);
    for (const Command& command : record.commands) {
      if (const auto* evaluated = std::get_if<command::Evaluated>(&command))
        seen.evaluations.push_back(*evaluated);
      if (const auto* save = std::get_if<command::SaveCheckpoint>(&command))
        seen.checkpoints.push_back(save->version.value());
    }
  };
  const testing::Played played = world.play();
  EXPECT_TRUE(played.finish.ok) << played.why();
  EXPECT_TRUE(played.audit.violations.empty()) << played.audit.violations.front();
  return seen;
}

std::vector<std::uint64_t> versions_of(const Seen& seen) {
  std::vector<std::uint64_t> out;
  for (const command::Evaluated& e : seen.evaluations)
    out.push_back(e.version.value());
  return out;
}

/// What the auditor says of the records once `change` had its way with each.
std::vector<std::string> audit(const std::vector<Record>& records,
                               const std::function<void(Record&)>& change) {
  Auditor auditor;
  for (Record record : records) {
    change(record);
    auditor.feed(record);
  }
  return auditor.report().violations;
}

TEST(Evaluation, ComesBeforeTheFirstUpdateThenEverySoManyAndAfterTheLast) {
  EXPECT_EQ(versions_of(play(config_of(3))), (std::vector<std::uint64_t>{0, 3, 6, 7}));
}

TEST(Evaluation, OfEveryVersionLeavesNoneOut) {
  EXPECT_EQ(versions_of(play(config_of(1))), (std::vector<std::uint64_t>{0, 1, 2, 3, 4, 5, 6, 7}));
}

TEST(Evaluation, IsNotThereUnlessAskedFor) {
  const Seen seen = play(config_of(0));
  EXPECT_TRUE(seen.evaluations.empty());
  EXPECT_EQ(seen.checkpoints, (std::vector<std::uint64_t>{7})) << "that of the end";
}

TEST(Evaluation, HasACheckpointOfEveryVersionButTheFirst) {
  EXPECT_EQ(play(config_of(3)).checkpoints, (std::vector<std::uint64_t>{3, 6, 7}));
}

TEST(Evaluation, AsksEveryProblemSoManyTimesOfOneVersion) {
  std::map<std::uint64_t, std::set<ResponseId>> of_version;
  for (const Record& record : play(config_of(3)).records) {
    for (const Command& command : record.commands) {
      const auto* dispatch = std::get_if<command::Dispatch>(&command);
      if (dispatch != nullptr && is_evaluation(dispatch->lease))
        of_version[dispatch->version.value()].insert(dispatch->responses.begin(),
                                                     dispatch->responses.end());
    }
  }
  ASSERT_EQ(of_version.size(), 4U);
  for (const auto& [version, responses] : of_version)
    EXPECT_EQ(responses.size(), 15U) << "5 problems, 3 each";
}

TEST(Evaluation, OfCardsThatTakeTurnsEndsToo) {
  SchedulerConfig config = config_of(2);
  config.actors[0].takes_turns = config.actors[1].takes_turns = true;
  EXPECT_EQ(versions_of(play(config)), (std::vector<std::uint64_t>{0, 2, 4, 6, 7}));
}

TEST(Evaluation, OfAHybridUsesItsOwnEnginesOnly) {
  SchedulerConfig config = config_of(2);
  config.actors[1].takes_turns = true;
  const Seen seen = play(config);
  EXPECT_EQ(versions_of(seen), (std::vector<std::uint64_t>{0, 2, 4, 6, 7}));
  for (const Record& record : seen.records) {
    for (const Command& command : record.commands) {
      const auto* dispatch = std::get_if<command::Dispatch>(&command);
      if (dispatch != nullptr && is_evaluation(dispatch->lease)) {
        EXPECT_EQ(dispatch->actor.value(), 0U);
      }
    }
  }
}

TEST(Evaluation, SurvivesEnginesAndVerifiersThatDie) {
  const Seen seen = play(config_of(3), {.crash = 0.02, .hang = 0.01});
  ASSERT_FALSE(seen.evaluations.empty());
  EXPECT_EQ(seen.evaluations.back().version.value(), 7U);
}

TEST(Evaluation, CallsTheFirstOfTheHighestFiguresTheBest) {
  double highest = -1;
  for (const command::Evaluated& e : play(config_of(1)).evaluations) {
    EXPECT_EQ(e.best, e.pass_1 > highest) << "version " << e.version.value();
    highest = std::max(highest, e.pass_1);
  }
}

/// Held-out problems 0 and 2 are those of `long`, 1, 3 and 4 those of `short`.
SchedulerConfig config_of_sources() {
  SchedulerConfig config = config_of(3);
  config.problems.sources = {{.name = "long", .stream = "long", .problems = 50, .held_out = 2},
                             {.name = "short", .stream = "short", .problems = 50, .held_out = 9}};
  return config;
}

TEST(Evaluation, HasTheFiguresOfEachSource) {
  const Seen seen = play(config_of_sources());
  ASSERT_FALSE(seen.evaluations.empty());
  for (const command::Evaluated& e : seen.evaluations) {
    ASSERT_EQ(e.sources.size(), 2U);
    const auto &of_long = e.sources[0], &of_short = e.sources[1];
    EXPECT_EQ(of_long.name, "long");
    EXPECT_EQ(of_long.problems, 2U);
    EXPECT_EQ(of_short.problems, 3U);
    EXPECT_EQ(of_long.passed + of_short.passed, e.passed);
    EXPECT_DOUBLE_EQ(of_short.pass_1, static_cast<double>(of_short.passed) / 9);
    EXPECT_NEAR((2 * of_long.reward + 3 * of_short.reward) / 5, e.reward, 1e-12);
  }
}

TEST(Evaluation, HasNoFiguresOfSourcesIfThereIsOneOrItsProblemsAreInAFile) {
  SchedulerConfig config = config_of_sources();
  config.problems.sources.pop_back();
  EXPECT_TRUE(play(config).evaluations.front().sources.empty());
  config = config_of_sources();
  for (ProblemSource& source : config.problems.sources)
    source.held_out = 0;
  EXPECT_TRUE(play(config).evaluations.front().sources.empty());
}

TEST(EvaluationAudit, FindsAFigureOfASourceThatTheRewardsDoNotGive) {
  const Seen seen = play(config_of_sources());
  const auto said = [&](const std::function<void(command::Evaluated&)>& change) {
    const auto all = audit(seen.records, [&](Record& record) {
      for (Command& command : record.commands) {
        if (auto* e = std::get_if<command::Evaluated>(&command))
          change(*e);
      }
    });
    return all.empty() ? std::string() : all.front();
  };
  EXPECT_EQ(said([](command::Evaluated&) {}), "");
  EXPECT_NE(said([](command::Evaluated& e) {
              e.sources[1].pass_1 += 0.01;
            }).find("3 problems of the source `short`"),
            std::string::npos);
  EXPECT_NE(said([](command::Evaluated& e) {
              e.sources.pop_back();
            }).find("reports 1 sources, expected 2"),
            std::string::npos);
}

TEST(EvaluationAudit, FindsAFigureThatTheRewardsDoNotGive) {
  const Seen seen = play(config_of(3));
  const auto said = audit(seen.records, [](Record& record) {
    for (Command& command : record.commands) {
      if (auto* e = std::get_if<command::Evaluated>(&command); e && e->version == PolicyVersion(3))
        e->pass_1 += 0.01;
    }
  });
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said.front().find("the evaluation of version 3 reports"), std::string::npos)
      << said.front();
}

TEST(EvaluationAudit, FindsTokensOfAnotherVersion) {
  const Seen seen = play(config_of(3));
  const auto said = audit(seen.records, [](Record& record) {
    auto* generated = std::get_if<event::Generated>(&record.event);
    if (generated == nullptr)
      return;
    for (auto& item : generated->items) {
      if (is_evaluation(item.lease) && item.segments.back().version == PolicyVersion(3))
        item.segments.back().version = PolicyVersion(2);
    }
  });
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said.front().find("has tokens of another version than 3"), std::string::npos);
}

TEST(EvaluationAudit, FindsAnEvaluationThatLeavesAProblemOut) {
  const Seen seen = play(config_of(3));
  const auto said = audit(seen.records, [](Record& record) {
    std::erase_if(record.commands, [](const Command& command) {
      const auto* dispatch = std::get_if<command::Dispatch>(&command);
      return dispatch != nullptr && dispatch->version == PolicyVersion(3) &&
             dispatch->group == GroupId(kFirstEvaluation + 1);
    });
  });
  ASSERT_FALSE(said.empty());
}

TEST(EvaluationAudit, FindsALastVersionThatWasNotEvaluated) {
  const Seen seen = play(config_of(3));
  const auto said = audit(seen.records, [](Record& record) {
    std::erase_if(record.commands, [](const Command& command) {
      const auto* e = std::get_if<command::Evaluated>(&command);
      return e != nullptr && e->version == PolicyVersion(7);
    });
  });
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said.back().find("before its last version was evaluated"), std::string::npos);
}

TEST(EvaluationAudit, FindsAnEvaluatedResponseInAnUpdate) {
  const Seen seen = play(config_of(3));
  const auto said = audit(seen.records, [](Record& record) {
    for (Command& command : record.commands) {
      if (auto* train = std::get_if<command::Train>(&command))
        train->certificate.groups.front().group = GroupId(kFirstEvaluation);
    }
  });
  ASSERT_FALSE(said.empty());
  EXPECT_NE(said.front().find("was never dispatched"), std::string::npos) << said.front();
}

}  // namespace
}  // namespace temper::orchestrator
