// Which problem the next group gets: exact shares, whole epochs, problems that are set aside, and
// the same sequence from any snapshot.
#include "orchestrator/scheduler/problems/problem_sampler.hpp"

#include "core/msgpack.hpp"
#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

namespace temper::orchestrator {
namespace {

using Weights = std::map<std::uint64_t, double>;

ProblemPlan plan_of(const std::vector<std::pair<std::uint64_t, Weights>>& sources) {
  ProblemPlan plan;
  plan.seed = 7;
  for (const auto& [problems, weights] : sources) {
    const std::string name(1, static_cast<char>('a' + plan.sources.size()));
    plan.sources.push_back({name, name, problems, weights});
  }
  return plan;
}

std::vector<Draw> draws(const ProblemPlan& plan, std::size_t count, std::uint64_t step = 0) {
  ProblemSampler sampler;
  std::vector<Draw> all;
  for (std::size_t n = 0; n < count; ++n)
    all.push_back(sampler.draw(plan, GroupId(n), step));
  return all;
}

TEST(ProblemSampler, GivesEverySourceItsShareOfAnyPrefixUpToLessThanOneGroup) {
  Random random(1, "shares");
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<std::uint64_t, Weights>> sources;
    double sum = 0;
    for (std::uint64_t k = 0, n = 2 + random.below(5); k < n; ++k) {
      const double weight = random.chance(0.1) ? 0.001 : static_cast<double>(1 + random.below(12));
      sources.push_back({50, {{0, weight}}});
      sum += weight;
    }
    const ProblemPlan plan = plan_of(sources);
    std::vector<double> drawn(sources.size());
    double n = 0;
    for (const Draw& draw : draws(plan, 600)) {
      ++n, ++drawn[draw.source];
      for (std::size_t k = 0; k < sources.size(); ++k) {
        const double share = sources[k].second.at(0) / sum;
        ASSERT_LT(std::abs(drawn[k] - n * share), 1 + 1e-6) << "round " << round << " draw " << n;
      }
    }
  }
}

TEST(ProblemSampler, OfThreeToOneTakesExactlyThreeOfEveryFour) {
  const auto all = draws(plan_of({{9, {{0, 3}}}, {9, {{0, 1}}}}), 400);
  for (std::size_t begin = 0; begin + 4 <= all.size(); begin += 4) {
    EXPECT_EQ(std::count_if(all.begin() + static_cast<std::ptrdiff_t>(begin),
                            all.begin() + static_cast<std::ptrdiff_t>(begin) + 4,
                            [](const Draw& d) { return d.source == 0; }),
              3);
  }
}

TEST(ProblemSampler, FollowsAScheduleThatIsLinearBetweenItsSteps) {
  const ProblemPlan plan = plan_of({{9, {{0, 1}, {100, 0}}}, {9, {{0, 0}, {100, 1}}}});
  EXPECT_EQ(plan.sources[0].weight(0), 1);
  EXPECT_EQ(plan.sources[0].weight(25), 0.75);
  EXPECT_EQ(plan.sources[0].weight(1000), 0);
  for (const auto& [step, first] : {std::pair{0, 100}, {25, 75}, {50, 50}, {100, 0}, {200, 0}}) {
    const auto all = draws(plan, 100, static_cast<std::uint64_t>(step));
    EXPECT_EQ(std::ranges::count(all, 0U, &Draw::source), first) << "step " << step;
  }
}

TEST(ProblemSampler, StaysWithinTwoGroupsOfItsShareWhileWeightsChange) {
  Random random(2, "schedules");
  for (int round = 0; round < 300; ++round) {
    std::vector<std::pair<std::uint64_t, Weights>> sources{{5, {{0, 1}}}};
    for (std::uint64_t k = 0, n = 1 + random.below(4); k < n; ++k) {
      Weights weights;
      for (int point = 0; point < 4; ++point)
        weights[random.below(60)] = random.chance(0.3) ? 0 : 5 * random.uniform();
      sources.push_back({5, weights});
    }
    const ProblemPlan plan = plan_of(sources);
    ProblemSampler sampler;
    std::vector<double> owed(sources.size());
    for (std::uint64_t n = 0; n < 700; ++n) {
      const std::uint64_t step = n / 10;
      double sum = 0;
      for (const ProblemSource& source : plan.sources)
        sum += source.weight(step);
      const Draw draw = sampler.draw(plan, GroupId(n), step);
      ASSERT_GT(plan.sources[draw.source].weight(step), 0);
      for (std::size_t k = 0; k < owed.size(); ++k) {
        owed[k] += plan.sources[k].weight(step) / sum - (draw.source == k ? 1 : 0);
        ASSERT_LT(std::abs(owed[k]), 2) << "round " << round << " draw " << n;
      }
    }
  }
}

TEST(ProblemSampler, VisitsEveryProblemOncePerEpochInAnotherOrder) {
  const auto all = draws(plan_of({{50, {{0, 1}}}}), 150);
  std::vector<std::vector<std::uint64_t>> epochs(3);
  for (const Draw& draw : all)
    epochs[draw.position / 50].push_back(draw.problem);
  EXPECT_NE(epochs[0], epochs[1]);
  for (auto& epoch : epochs)
    EXPECT_EQ(std::set(epoch.begin(), epoch.end()).size(), 50U);
}

TEST(ProblemSampler, WithoutShuffleKeepsTheOrderOfTheFile) {
  ProblemPlan plan = plan_of({{4, {{0, 1}}}});
  plan.shuffle = false;
  std::vector<std::uint64_t> problems;
  for (const Draw& draw : draws(plan, 6))
    problems.push_back(draw.problem);
  EXPECT_EQ(problems, (std::vector<std::uint64_t>{0, 1, 2, 3, 0, 1}));
}

TEST(ProblemSampler, GoesOnFromAnySnapshotAsIfItHadNotBeenTaken) {
  ProblemPlan plan = plan_of({{5, {{0, 2}}}, {7, {{0, 1}, {9, 4}}}, {3, {{0, 0}, {12, 1}}}});
  plan.set_aside = {0.9, 0.1, 1, 2};
  const auto next = [&](ProblemSampler& sampler, std::uint64_t n) {
    const Draw draw = sampler.draw(plan, GroupId(n), n / 4);
    if (n >= 3)  // with some groups outstanding
      sampler.group_left(plan, GroupId(n - 3), draw.problem % 3 == 0 ? 1.0 : 0.5);
    return draw;
  };
  ProblemSampler whole;
  std::vector<std::string> snapshots;
  std::vector<Draw> expected;
  for (std::uint64_t n = 0; n < 80; ++n) {
    snapshots.push_back(encode(whole));
    expected.push_back(next(whole, n));
  }
  for (std::uint64_t from = 0; from < 80; ++from) {
    auto resumed = decode<ProblemSampler>(snapshots[from]);
    ASSERT_TRUE(resumed);
    ASSERT_EQ(resumed->impossible_field(plan), "");
    for (std::uint64_t n = from; n < 80; ++n)
      ASSERT_EQ(next(*resumed, n), expected[n]) << "from " << from;
  }
}

TEST(ProblemSampler, LeavesOutAnEasyProblemForSomeEpochsAndThenTriesItAgain) {
  ProblemPlan plan = plan_of({{3, {{0, 1}}}});
  plan.shuffle = false;
  plan.set_aside.easy = 1;
  plan.set_aside.epochs = 2;
  ProblemSampler sampler;
  std::vector<std::uint64_t> problems, aside;
  for (std::uint64_t n = 0; n < 9; ++n) {
    const Draw draw = sampler.draw(plan, GroupId(n), 0);
    problems.push_back(draw.problem);
    aside.push_back(draw.set_aside);
    sampler.group_left(plan, GroupId(n), n == 1 ? 1.0 : 0.5);
  }
  EXPECT_EQ(problems, (std::vector<std::uint64_t>{0, 1, 2, 0, 2, 0, 2, 0, 1}));
  EXPECT_EQ(aside, (std::vector<std::uint64_t>{0, 0, 1, 1, 1, 1, 1, 1, 0}));
}

TEST(ProblemSampler, TakesTheNextProblemIfAllAreSetAside) {
  ProblemPlan plan = plan_of({{3, {{0, 1}}}});
  plan.shuffle = false;
  plan.set_aside.hopeless = 0;
  plan.set_aside.epochs = 1000;
  ProblemSampler sampler;
  for (std::uint64_t n = 0; n < 3; ++n) {
    EXPECT_EQ(sampler.draw(plan, GroupId(n), 0).problem, n);
    sampler.group_left(plan, GroupId(n), 0.0);
  }
  const Draw draw = sampler.draw(plan, GroupId(3), 0);
  EXPECT_EQ(draw.problem, 0U);
  EXPECT_EQ(draw.position, 6U) << "one whole pass was left out";
}

TEST(ProblemSampler, LearnsNothingFromAGroupThatWasNotJudged) {
  ProblemPlan plan = plan_of({{2, {{0, 1}}}});
  plan.set_aside.hopeless = 1;
  ProblemSampler sampler;
  sampler.draw(plan, GroupId(0), 0);
  sampler.group_left(plan, GroupId(0), std::nullopt);
  EXPECT_EQ(sampler.draw(plan, GroupId(1), 0).set_aside, 0U);
}

TEST(ProblemSampler, GoesOnWhereAnEarlierBuildCountedGroups) {
  const ProblemPlan plan = plan_of({{50, {{0, 1}}}});
  ProblemSampler sampler;
  EXPECT_EQ(sampler.draw(plan, GroupId(120), 0).position, 120U);
}

TEST(ProblemSampler, NamesWhatNoRunWithThisPlanCanHave) {
  const ProblemPlan plan = plan_of({{5, {{0, 1}}}, {5, {{0, 1}}}});
  ProblemSampler sampler;
  sampler.draw(plan, GroupId(0), 0);
  EXPECT_EQ(sampler.impossible_field(plan), "");
  EXPECT_EQ(sampler.impossible_field(plan_of({{5, {{0, 1}}}})), "2 sources of problems");
}

TEST(ProblemPlan, NamesTheFirstSourceWhoseProblemsChanged) {
  const ProblemPlan plan = plan_of({{5, {{0, 1}}}, {6, {{0, 1}}}});
  EXPECT_EQ(problem_difference(plan, plan_of({{5, {{0, 9}}}, {6, {{0, 1}}}})), "");
  EXPECT_EQ(problem_difference(plan, plan_of({{5, {{0, 1}}}, {8, {{0, 1}}}})),
            "task.sources.b: the run started with 6 training problems, found 8");
  EXPECT_EQ(problem_difference(plan, plan_of({{5, {{0, 1}}}})),
            "task.sources: the run started with 2 sources, found 1");
}

TEST(ProblemPlan, NamesTheFirstDifferenceOfTheTeachers) {
  const auto with = [](std::vector<std::string> names,
                       std::vector<std::vector<std::uint8_t>> of_problems) {
    ProblemPlan plan = plan_of({{2, {{0, 1}}}, {3, {{0, 1}}}});
    plan.teachers = TeacherPlan{std::move(names), std::move(of_problems)};
    return plan;
  };
  const ProblemPlan plan = with({"a", "b"}, {{0}, {0, 1, 0}});
  EXPECT_EQ(problem_difference(plan, plan), "");
  EXPECT_EQ(problem_difference(plan, with({"a", "c"}, {{0}, {0, 1, 0}})),
            "reference.teachers: the run started with [a, b], found [a, c]");
  EXPECT_NE(problem_difference(plan, with({"a", "b"}, {{0}, {0, 0, 1}})), "");
  EXPECT_NE(problem_difference(plan_of({{2, {{0, 1}}}, {3, {{0, 1}}}}), plan), "");
}

TEST(ProblemSampler, KnowsTheTeacherOfEachOutstandingGroup) {
  ProblemPlan plan = plan_of({{2, {{0, 1}}}, {3, {{0, 1}}}});
  ProblemSampler sampler;
  const auto is_of = [&](const Draw& draw, GroupId group) {
    return plan.teachers->of(draw.source, draw.problem) == sampler.teacher(plan, group);
  };
  EXPECT_EQ(sampler.teacher(plan, GroupId(0)), 0U) << "a plan without teachers has one";
  plan.teachers = TeacherPlan{{"a", "b", "c"}, {{2}, {0, 1, 0}}};
  for (std::uint64_t g = 0; g < 10; ++g)
    EXPECT_TRUE(is_of(sampler.draw(plan, GroupId(g), 0), GroupId(g))) << g;
  sampler.group_left(plan, GroupId(3), std::nullopt);
  EXPECT_EQ(sampler.teacher(plan, GroupId(3)), std::nullopt);
}

}  // namespace
}  // namespace temper::orchestrator
