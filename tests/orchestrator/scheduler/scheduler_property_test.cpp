// Invariants of the scheduler over many random schedules, judged by the auditor, which shares no
// code with it. TEMPER_SCHEDULES sets how many (the default keeps the test short; the README's
// figure was taken with 1,000,000), TEMPER_FIRST_SCHEDULE the seed of the first.
#include "core/hash.hpp"
#include "core/json.hpp"
#include "core/msgpack.hpp"
#include "orchestrator/record/replay.hpp"
#include "tests/support/scheduler_world.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <map>
#include <optional>
#include <set>

namespace temper::orchestrator::testing {
namespace {

std::uint64_t number(const char* name, std::uint64_t otherwise) {
  const char* text = std::getenv(name);
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}

std::uint64_t schedules() {
  return number("TEMPER_SCHEDULES", 4000);
}

Chaos random_chaos(Random& random) {
  const auto maybe = [&](double p) { return random.chance(0.5) ? p * random.uniform() : 0.0; };
  return {.crash = maybe(0.05),
          .trainer_crash = maybe(0.05),
          .hang = maybe(0.02),
          .late_result = maybe(0.5),
          .failed_sample = maybe(0.2),
          .stop = maybe(0.05),
          .refuse_onload = maybe(0.3),
          .lie = 0,
          .scale = maybe(0.1),
          .lost_tensors = maybe(0.5),
          .lost_in_batch = maybe(0.2)};
}

/// How often the rarer means were used.
struct Means {
  std::uint64_t prepared = 0;   ///< Groups were promised to an update.
  std::uint64_t parts = 0;      ///< The trainer had the cards of some engines, not of all.
  std::uint64_t beside = 0;     ///< Something was dispatched while it had.
  std::uint64_t held_back = 0;  ///< An engine waited because the trainer was fed.
  std::uint64_t evaluated = 0;  ///< A version was evaluated.
  std::uint64_t came = 0;       ///< An actor was launched that the run began without.
  std::uint64_t went = 0;       ///< One was taken away, and ended.
  bool away = false;            ///< The trainer has some cards now.
  std::uint64_t drawn = 0;      ///< Problems were drawn while some were set aside.
  std::set<std::string_view> rules, placements;
  std::map<std::size_t, std::uint64_t> scored;  ///< Batches by number of teachers.
  std::uint64_t blocked = 0;     ///< Batches of a teacher while another has lost all its actors.
  std::set<std::uint32_t> down;  ///< Actors that are lost or not started yet.

  void note_scoring(const command::ScoreReference& c, const SchedulerConfig& config) {
    if (!config.problems.teachers)
      return;
    ++scored[config.problems.teacher_count()];
    std::set<std::uint32_t> up;
    for (std::uint32_t i = 0; i < config.actors.size(); ++i) {
      if (config.actors[i].teacher && !down.contains(i))
        up.insert(*config.actors[i].teacher);
    }
    EXPECT_TRUE(up.contains(*config.actors[c.actor.value()].teacher));
    blocked += up.size() < config.problems.teacher_count() ? 1 : 0;
  }

  void note(const Record& record, const SchedulerConfig& config) {
    std::size_t turning = 0;
    for (const ActorSpec& actor : config.actors)
      turning += actor.takes_turns && actor.role == actors::RoleKind::Rollout ? 1 : 0;
    if (record.sequence == 0 || std::holds_alternative<event::Resumed>(record.event)) {
      for (std::uint32_t i = 0; i < config.actors.size(); ++i)
        down.insert(i);
    }
    if (const auto* ready = std::get_if<event::ActorReady>(&record.event))
      down.erase(ready->actor.value());
    for (const Command& command : record.commands) {
      if (const auto* lost = std::get_if<command::Discard>(&command))
        down.insert(lost->actor.value());
      if (const auto* score = std::get_if<command::ScoreReference>(&command))
        note_scoring(*score, config);
      prepared += std::holds_alternative<command::Prepare>(command) ? 1 : 0;
      went += std::holds_alternative<command::Retire>(command) ? 1 : 0;
      if (const auto* launch = std::get_if<command::Launch>(&command)) {
        came += launch->actor.value() >= config.actors.size() ? 1 : 0;
        down.insert(launch->actor.value());
      }
      evaluated += std::holds_alternative<command::Evaluated>(command) ? 1 : 0;
      if (const auto* dispatch = std::get_if<command::Dispatch>(&command))
        drawn += dispatch->draw && dispatch->draw->set_aside > 0 ? 1 : 0;
      beside += away && std::holds_alternative<command::Dispatch>(command) ? 1 : 0;
      if (const auto* wait = std::get_if<command::Waiting>(&command))
        held_back += wait->cause.kind == WaitKind::TrainerDemand ? 1 : 0;
      const auto* change = std::get_if<command::Switch>(&command);
      if (change == nullptr)
        continue;
      if (!change->cards_of.empty() && change->cards_of.size() < turning) {
        ++parts;
        away = true;
      } else if (change->action == actors::SwitchAction::OffloadOptimizer) {
        away = false;
      }
    }
    if (record.sequence == 0 || std::holds_alternative<event::Resumed>(record.event))
      away = false;
  }
};

TEST(SchedulerProperty, EveryScheduleEndsWithinTheBoundAndConservesGroups) {
  std::uint64_t events = 0, trained = 0, voided = 0, stopped = 0, filtered = 0, lost = 0;
  std::uint64_t lost_in_batch = 0, several = 0;
  Means means;
  const std::uint64_t first = number("TEMPER_FIRST_SCHEDULE", 0);
  for (std::uint64_t seed = first; seed < first + schedules(); ++seed) {
    Random random(seed, "schedule");
    const SchedulerConfig config = random_config(random);
    means.rules.insert(name_of(config.staleness_rule));
    means.placements.insert(config.placement());
    const Chaos chaos = random_chaos(random);
    World world(config, chaos, seed);
    world.on_record = [&](const Record& record) { means.note(record, config); };
    // A deadline of two minutes is many events where just_in_time asks again every millisecond.
    const Played played = world.play(500000);
    ASSERT_FALSE(played.stuck) << "seed " << seed << " after " << played.events
                               << " events: " << to_json(config);
    ASSERT_TRUE(played.audit.violations.empty())
        << "seed " << seed << ": " << played.audit.violations.front() << " " << to_json(config);
    if (played.audit.bound) {
      ASSERT_LE(played.audit.max_staleness, *played.audit.bound) << "seed " << seed;
    }
    if (config.one_version) {
      ASSERT_LE(played.most_versions, config.staleness_bound + 1) << "seed " << seed;
      several += played.most_versions > 1 ? 1 : 0;
    }
    if (config.staleness_rule == StalenessRuleKind::Exact) {
      ASSERT_EQ(played.audit.bound, config.staleness_bound) << "seed " << seed;
      ASSERT_EQ(played.audit.groups_evicted, 0U) << "seed " << seed;
    }
    const bool refused =
        played.finish.reason && played.finish.reason->kind == ReasonKind::OptimizerRefused;
    ASSERT_TRUE(played.finish.ok || played.finish.stopped || (refused && chaos.refuse_onload > 0))
        << "seed " << seed << ": " << played.why();
    if (played.finish.ok) {
      ASSERT_EQ(played.audit.steps, config.steps) << "seed " << seed;
      ASSERT_EQ(played.audit.groups_outstanding, 0U) << "seed " << seed;
      ASSERT_EQ(played.audit.groups_trained,
                config.steps * static_cast<std::uint64_t>(config.groups_per_update))
          << "seed " << seed;
    }
    events += played.events;
    trained += played.audit.groups_trained;
    voided += played.audit.voided;
    stopped += played.finish.stopped ? 1 : 0;
    filtered += played.audit.groups_filtered;
    lost += played.responses_lost;
    lost_in_batch += played.lost_in_batch;
  }
  // The worlds were not all quiet ones.
  EXPECT_GT(trained, schedules());
  EXPECT_GT(voided, 0U);
  EXPECT_GT(stopped, 0U);
  EXPECT_GT(filtered, 0U);
  EXPECT_GT(lost, 0U);
  EXPECT_GT(lost_in_batch, 0U);
  EXPECT_GT(several, 0U);
  EXPECT_GT(means.prepared, 0U);
  EXPECT_GT(means.parts, 0U);
  EXPECT_GT(means.beside, 0U);
  EXPECT_GT(means.held_back, 0U);
  EXPECT_GT(means.evaluated, 0U);
  EXPECT_GT(means.drawn, 0U);
  EXPECT_GT(means.came, 0U);
  EXPECT_GT(means.went, 0U);
  EXPECT_GT(means.scored[2], 0U);
  EXPECT_GT(means.scored[3], 0U);
  EXPECT_GT(means.blocked, 0U) << "a teacher that is lost does not hold up the others";
  EXPECT_EQ(means.rules.size(), kStalenessRules.size());
  EXPECT_EQ(means.placements.size(), actors::kPlacementModes.size());
  RecordProperty("events", static_cast<int>(events));
}

/// Plays random schedules under a rule that calls itself `exact` with this bound and is not, until
/// the auditor, who is told so, says no; the schedule it took, if any.
std::optional<std::uint64_t> caught_in(const std::function<void(SchedulerConfig&)>& break_rule,
                                       std::string& said) {
  for (std::uint64_t seed = 0; seed < 500; ++seed) {
    Random random(seed, "broken");
    SchedulerConfig claimed = random_config(random);
    claimed.staleness_rule = StalenessRuleKind::Exact;
    claimed.staleness_fraction = 0;
    SchedulerConfig played = claimed;
    break_rule(played);
    World world(played, {}, seed);
    Auditor auditor;
    world.on_record = [&](Record record) {
      if (auto* started = std::get_if<event::Started>(&record.event))
        started->config = claimed;
      auditor.feed(record);
    };
    world.play();
    const AuditReport report = auditor.report();
    if (!report.violations.empty()) {
      said = report.violations.front();
      return seed;
    }
  }
  return std::nullopt;
}

TEST(SchedulerProperty, ARuleThatIsOneVersionTooLaxIsCaught) {
  std::string said;
  const auto seed = caught_in([](SchedulerConfig& c) { ++c.staleness_bound; }, said);
  ASSERT_TRUE(seed.has_value());
  EXPECT_NE(said.find("bound"), std::string::npos) << said;
}

TEST(SchedulerProperty, AGateOverAllGroupsTogetherIsCaught) {
  std::string said;
  const auto seed =
      caught_in([](SchedulerConfig& c) { c.staleness_rule = StalenessRuleKind::Aggregate; }, said);
  ASSERT_TRUE(seed.has_value());
  EXPECT_NE(said.find("bound"), std::string::npos) << said;
}

TEST(SchedulerProperty, AProblemThatIsNotTheNextOneIsCaught) {
  std::set<std::string> said;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, "problems");
    World world(random_config(random), {}, seed);
    Auditor auditor;
    world.on_record = [&](Record record) {
      for (Command& command : record.commands) {
        auto* dispatch = std::get_if<command::Dispatch>(&command);
        if (dispatch == nullptr || !dispatch->draw || dispatch->group.value() % 5 != 4)
          continue;
        if (seed % 3 == 0)
          ++dispatch->draw->position;
        else if (seed % 3 == 1)
          ++dispatch->draw->set_aside;
        else
          dispatch->draw.reset();
      }
      auditor.feed(record);
    };
    world.play();
    for (const std::string& violation : auditor.report().violations) {
      for (const char* what : {"is at its position", "are said to be set aside", "has no problem"})
        if (violation.find(what) != std::string::npos)
          said.insert(what);
    }
  }
  EXPECT_EQ(said.size(), 3U);
}

TEST(SchedulerProperty, AResponseThatAnotherTeacherScoresIsCaught) {
  std::uint64_t swapped = 0, caught = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    Random random(seed, "teachers");
    const SchedulerConfig config = random_config(random);
    if (!config.problems.teachers)
      continue;
    World world(config, {}, seed);
    Auditor auditor;
    bool any = false;
    world.on_record = [&](Record record) {
      for (Command& command : record.commands) {
        auto* score = std::get_if<command::ScoreReference>(&command);
        if (score == nullptr || any)
          continue;
        const std::uint32_t right = *config.actors[score->actor.value()].teacher;
        for (std::uint32_t i = 0; i < config.actors.size(); ++i) {
          if (config.actors[i].teacher && *config.actors[i].teacher != right)
            score->actor = ActorId(i);
        }
        any = true;
      }
      auditor.feed(record);
    };
    world.play();
    swapped += any ? 1 : 0;
    for (const std::string& violation : auditor.report().violations) {
      if (violation.find("which is not of its teacher") != std::string::npos) {
        ++caught;
        break;
      }
    }
  }
  EXPECT_GT(swapped, 10U);
  EXPECT_EQ(caught, swapped);
}

TEST(SchedulerProperty, TheExactRuleIsNotCaughtWhereTheBrokenOnesAre) {
  std::string said;
  EXPECT_EQ(caught_in([](SchedulerConfig&) {}, said), std::nullopt) << said;
}

TEST(SchedulerProperty, AReplayReproducesEveryCommand) {
  for (std::uint64_t seed = 0; seed < 300; ++seed) {
    Random random(seed, "replay");
    const SchedulerConfig config = random_config(random);
    Replay replay;
    World world(config, random_chaos(random), seed);
    std::string difference;
    world.on_record = [&](const Record& record) {
      if (auto status = replay.feed(record); !status && difference.empty()) {
        difference = status.error().context;
      }
    };
    world.play();
    ASSERT_EQ(difference, "") << "seed " << seed;
    ASSERT_GT(replay.commands(), 0U);
  }
}

TEST(SchedulerProperty, LiarsAreReplacedAndTheRunEndsWithACleanLog) {
  std::uint64_t told = 0, found = 0, well = 0, restarts = 0;
  const std::uint64_t runs = std::max<std::uint64_t>(1, schedules() / 4);
  for (std::uint64_t seed = 0; seed < runs; ++seed) {
    Random random(seed, "liars");
    const SchedulerConfig config = random_config(random);
    Chaos chaos = random_chaos(random);
    chaos.late_result = 0;
    chaos.lie = 0.1 * random.uniform();
    World world(config, chaos, seed);
    Replay replay;
    std::string difference;
    world.on_record = [&](const Record& record) {
      if (auto status = replay.feed(record); !status && difference.empty())
        difference = status.error().context;
      if (const auto* down = std::get_if<event::ActorDown>(&record.event))
        restarts += down->lied ? 1 : 0;
    };
    const Played played = world.play();
    ASSERT_FALSE(played.stuck) << "seed " << seed << ": " << to_json(config);
    ASSERT_EQ(played.audit.violations, std::vector<std::string>()) << "seed " << seed;
    ASSERT_EQ(difference, "") << "seed " << seed;
    told += played.lies_told;
    found += played.lies_found;
    well += played.finish.ok || played.finish.stopped ? 1 : 0;
  }
  EXPECT_GT(told, runs);
  EXPECT_GT(found, told / 2) << "most lies cannot be";
  EXPECT_EQ(restarts, found) << "each is recorded as what it was";
  EXPECT_GT(well, runs / 2) << "a liar seldom ends a run";
}

TEST(SchedulerProperty, AGroupThatIsHeldBackIsNotLookedAtAgainWithoutAnEvent) {
  // Its trainer hangs for 300 s, while a step usually takes milliseconds.
  constexpr std::uint64_t kSeed = 26752;
  Random random(kSeed, "liars");
  const SchedulerConfig config = random_config(random);
  ASSERT_EQ(config.admission, Admission::JustInTime);
  Chaos chaos = random_chaos(random);
  chaos.late_result = 0;
  chaos.lie = 0.1 * random.uniform();
  const Played played = World(config, chaos, kSeed).play();
  EXPECT_FALSE(played.stuck);
  EXPECT_LT(played.events, 2000U);
}

TEST(SchedulerProperty, TheSameSeedGivesTheSameRun) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    std::array<std::uint64_t, 2> hashes{};
    for (std::uint64_t& hash : hashes) {
      Random random(seed, "same");
      const SchedulerConfig config = random_config(random);
      World world(config, random_chaos(random), seed);
      world.on_record = [&](const Record& record) { hash = hash64(encode(record), hash); };
      world.play();
    }
    ASSERT_EQ(hashes[0], hashes[1]) << "seed " << seed;
  }
}

}  // namespace
}  // namespace temper::orchestrator::testing
