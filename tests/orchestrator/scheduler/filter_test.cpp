// Dynamic sampling: groups of equal rewards are filtered and replaced, and nothing else is lost.
#include "tests/support/scheduler_world.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator::testing {
namespace {

SchedulerConfig filtering(std::uint64_t bound, double limit) {
  SchedulerConfig c;
  const auto add = [&](std::string name, actors::RoleKind role, std::int32_t concurrency) {
    c.actors.push_back({std::move(name), role, {CardId(0)}, concurrency});
  };
  add("rollout-0", actors::RoleKind::Rollout, 1000);
  add("reference-0", actors::RoleKind::Reference, 0);
  add("reward-0", actors::RoleKind::Reward, 0);
  add("trainer", actors::RoleKind::Trainer, 0);
  c.steps = 8;
  c.groups_per_update = 3;
  c.responses_per_group = 3;
  c.staleness_bound = bound;
  c.score_batch = 4;
  c.filter_equal_rewards = true;
  c.filter_limit = limit;
  return c;
}

/// Reads rewards and what became of groups from the records of a run.
class Reader {
 public:
  explicit Reader(std::uint64_t per_group) : per_group_(per_group) {}

  void read(const Record& record) {
    if (const auto* judged = std::get_if<event::Judged>(&record.event)) {
      const auto& responses = leases_.at(judged->lease);
      for (std::size_t i = 0; i < responses.size(); ++i)
        rewards_[responses[i].value() / per_group_].push_back(judged->items[i].reward);
    }
    std::size_t filtered = 0, fresh = 0;
    for (const Command& command : record.commands) {
      if (const auto* c = std::get_if<command::Judge>(&command))
        leases_[c->lease] = c->responses;
      if (const auto* c = std::get_if<command::Release>(&command)) {
        if (c->outcome == Outcome::Filtered) {
          ++filtered;
          EXPECT_TRUE(equal(c->group.value())) << "group " << c->group.value();
        }
      }
      if (const auto* c = std::get_if<command::Dispatch>(&command))
        fresh += rewards_.contains(c->group.value()) || !seen_.insert(c->group).second ? 0 : 1;
      if (const auto* c = std::get_if<command::Train>(&command)) {
        for (const auto& entry : c->certificate.groups)
          trained_equal_ += equal(entry.group.value()) ? 1 : 0;
      }
    }
    filtered_ += filtered;
    if (filtered > 0 && std::holds_alternative<event::Judged>(record.event))
      refilled_ = refilled_ && fresh == filtered;
  }

  std::uint64_t filtered() const { return filtered_; }
  std::uint64_t trained_equal() const { return trained_equal_; }
  /// Every event that filtered groups dispatched as many new ones.
  bool refilled_exactly() const { return refilled_; }

 private:
  bool equal(std::uint64_t group) const {
    const auto& r = rewards_.at(group);
    EXPECT_EQ(r.size(), per_group_);
    return std::all_of(r.begin(), r.end(), [&](double x) { return x == r.front(); });
  }

  const std::uint64_t per_group_;
  std::map<LeaseId, std::vector<ResponseId>> leases_;
  std::map<std::uint64_t, std::vector<double>> rewards_;
  std::set<GroupId> seen_;
  std::uint64_t filtered_ = 0, trained_equal_ = 0;
  bool refilled_ = true;
};

TEST(Filter, TakesGroupsOfEqualRewardsAndNothingElseIsLost) {
  std::uint64_t filtered = 0;
  for (std::uint64_t seed = 0; seed < 200; ++seed) {
    const SchedulerConfig config = filtering(seed % 4, 1e9);
    Reader reader(3);
    World world(config, {}, seed);
    world.on_record = [&](const Record& record) { reader.read(record); };
    const Played played = world.play();
    ASSERT_TRUE(played.finish.ok) << "seed " << seed << ": " << played.why();
    ASSERT_TRUE(played.audit.violations.empty()) << played.audit.violations.front();
    EXPECT_EQ(played.audit.groups_trained, 24u);
    EXPECT_EQ(played.audit.groups_filtered, reader.filtered());
    EXPECT_EQ(played.audit.groups_dispatched, 24 + reader.filtered()) << "none was lost";
    EXPECT_EQ(reader.trained_equal(), 0u);
    EXPECT_LE(played.audit.max_staleness, config.staleness_bound);
    filtered += reader.filtered();
  }
  // A quarter of groups of three have equal rewards: a third of 24 per run on top.
  EXPECT_NEAR(static_cast<double>(filtered) / 200, 8, 1);
}

TEST(Filter, RefillsExactlyWhatItTook) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    Reader reader(3);
    World world(filtering(0, 1e9), {}, seed);
    world.on_record = [&](const Record& record) { reader.read(record); };
    ASSERT_TRUE(world.play().finish.ok);
    EXPECT_TRUE(reader.refilled_exactly()) << "seed " << seed;
  }
}

TEST(Filter, StopsAtItsLimitSoThatARunEnds) {
  std::uint64_t trained_equal = 0;
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    const SchedulerConfig config = filtering(1, 1.0 / 3);  // One group between two updates.
    Reader reader(3);
    World world(config, {}, seed);
    std::uint64_t since_update = 0;
    world.on_record = [&](const Record& record) {
      const std::uint64_t before = reader.filtered();
      reader.read(record);
      since_update = std::holds_alternative<event::Trained>(record.event)
                         ? 0
                         : since_update + reader.filtered() - before;
      EXPECT_LE(since_update, 1u);
    };
    ASSERT_TRUE(world.play().finish.ok);
    EXPECT_GT(reader.filtered(), 0u);
    trained_equal += reader.trained_equal();
  }
  EXPECT_GT(trained_equal, 0u) << "those beyond the limit are trained";
}

TEST(Filter, IsOffUnlessAskedFor) {
  SchedulerConfig config = filtering(1, 1e9);
  config.filter_equal_rewards = false;
  EXPECT_EQ(World(config, {}, 1).play().audit.groups_filtered, 0u);
  config = filtering(1, 1e9);
  config.responses_per_group = 1;
  const Played alone = World(config, {}, 1).play();
  EXPECT_TRUE(alone.finish.ok) << "a response alone always equals itself";
  EXPECT_EQ(alone.audit.groups_filtered, 0u);
}

/// A violation is found only if the auditor looks.
TEST(Filter, IsAudited) {
  const auto audited = [](const SchedulerConfig& shown) {
    Auditor auditor;
    World world(filtering(1, 1e9), {}, 3);
    world.on_record = [&](Record record) {
      if (auto* started = std::get_if<event::Started>(&record.event))
        started->config = shown;
      if (auto* judged = std::get_if<event::Judged>(&record.event);
          judged && shown.filter_limit < 1)
        judged->items.front().reward = 0.5;
      auditor.feed(record);
    };
    world.play();
    return auditor.report().violations;
  };
  EXPECT_TRUE(audited(filtering(1, 1e9)).empty());
  SchedulerConfig off = filtering(1, 1e9);
  off.filter_equal_rewards = false;
  ASSERT_FALSE(audited(off).empty());
  EXPECT_NE(audited(off).front().find("does not filter groups"), std::string::npos);
  ASSERT_FALSE(audited(filtering(1, 0)).empty());
  EXPECT_NE(audited(filtering(1, 0)).front().find("its rewards differ"), std::string::npos);
}

}  // namespace
}  // namespace temper::orchestrator::testing
