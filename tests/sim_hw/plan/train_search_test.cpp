// The search of training layouts, compared with the enumeration of small spaces by
// loops in this file, with the uniform plan, and over growing clusters.
#include "sim_hw/plan/train_search.hpp"

#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/plan/train_advice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <optional>

namespace temper::sim_hw {
namespace {

struct TrainCase {
  const char* model;
  const char* hardware;
  std::int64_t cards;
  std::int64_t batch;
  std::int64_t seq;
};

struct TrainWorld {
  explicit TrainWorld(const TrainCase& c)
      : catalog(Catalog::shipped()),
        model(**catalog.model(c.model)),
        hardware(**catalog.hardware(c.hardware)),
        problem(model, hardware, c.cards),
        shape(default_shape(model)) {
    shape.global_batch = c.batch;
    shape.seq = c.seq;
  }
  TrainSearch search() const {
    return search_train(problem, full_space(problem, shape), shape, {});
  }

  Catalog catalog;
  const ModelSpec& model;
  const HardwareSpec& hardware;
  TrainProblem problem;
  TrainShape shape;
};

/// Adds the scenarios of a layout and micro-batch that run and fit, under every other choice.
void enumerate_choices(const TrainWorld& w, TrainScenario s, std::vector<TrainPlan>& out) {
  const auto host = static_cast<double>(w.hardware.host.memory.count()) /
                    static_cast<double>(w.hardware.devices_per_node());
  for (const Zero zero : {Zero::None, Zero::Optimizer}) {
    for (const SequenceParallel parts : {SequenceParallel::Off, SequenceParallel::On}) {
      s.layout.zero = zero;
      s.layout.sequence_parallel = parts;
      if ((s.layout.tp == 1 && parts == SequenceParallel::On) ||  // Nothing to split.
          !check_layout(w.model, s.layout.devices(), s.layout, s.shape))
        continue;
      for (const Recompute recompute : {Recompute::None, Recompute::Full}) {
        s.shape.recompute = recompute;
        const Ledger ledger = worst_train_ledger(w.model, s.layout, s.shape);
        const TrainTime time =
            train_iteration_time(w.model, w.problem.device, w.problem.fabric, s.layout, s.shape);
        for (const TrainerState state : {TrainerState::Active, TrainerState::OptimizerOnHost}) {
          s.state = state;
          TrainPlan plan{s, time, 0, place(ledger, state)};
          if (plan.memory.device.total() > static_cast<double>(w.hardware.die.memory.count()) ||
              plan.memory.host.total() > host)
            continue;
          if (const double parked = plan.memory.host.optimizer; parked > 0) {
            plan.host_transfer = to_device_seconds(w.problem.fabric, parked) +
                                 from_device_seconds(w.problem.fabric, parked);
          }
          out.push_back(plan);
        }
      }
    }
  }
}

/// Every layout of at most so many devices; those that do not divide are refused where it is cheap.
std::vector<TrainPlan> every_fitting_plan(const TrainWorld& w) {
  std::vector<TrainPlan> out;
  const std::int64_t most = w.problem.devices;
  const std::int64_t experts = w.model.moe ? most : 1;
  TrainScenario s{{}, w.shape, TrainerState::Active};
  Layout& l = s.layout;
  for (l.tp = 1; l.tp <= most; ++l.tp) {
    for (l.pp = 1; l.pp * l.tp <= most; ++l.pp) {
      for (l.cp = 1; l.cp * l.pp * l.tp <= most; l.cp *= 2) {
        for (l.dp = 1; l.devices() <= most; ++l.dp) {
          for (l.ep = 1; l.ep <= experts; ++l.ep) {
            for (l.expert_tp = 1; l.expert_tp <= (w.model.moe ? l.tp : 1); ++l.expert_tp) {
              if ((l.expert_tp != 1 && l.expert_tp != l.tp) ||
                  l.stage_devices() % (l.ep * l.expert_tp) != 0)
                continue;
              for (l.vpp = 1; l.vpp <= (l.pp > 1 ? w.model.layers : 1); ++l.vpp) {
                std::int64_t& micro_batch = s.shape.micro_batch;
                for (micro_batch = 1; micro_batch <= w.shape.global_batch; micro_batch *= 2) {
                  if (w.shape.global_batch % (l.dp * micro_batch) == 0)
                    enumerate_choices(w, s, out);
                }
              }
            }
          }
        }
      }
    }
  }
  return out;
}

constexpr TrainCase kSmall[] = {{"qwen2.5-7b", "nvidia-h200", 4, 16, 4096},
                                {"llama-3.1-8b", "nvidia-h100", 8, 8, 8192},
                                {"qwen3-30b-a3b", "cm384", 4, 16, 4096},
                                {"qwen3-30b-a3b", "nvidia-h200", 8, 8, 8192}};

TEST(TrainSearch, FindsTheFastestOfEveryLayoutThatFits) {
  for (const TrainCase& c : kSmall) {
    SCOPED_TRACE(c.model);
    const TrainWorld world(c);
    const std::vector<TrainPlan> all = every_fitting_plan(world);
    const TrainSearch search = world.search();
    ASSERT_FALSE(all.empty());
    ASSERT_FALSE(search.best.empty());
    const auto fastest = std::ranges::min_element(all, {}, &TrainPlan::total);
    EXPECT_NEAR(search.best.front().total(), fastest->total(), 1e-12);
    EXPECT_LT(search.counts.timed, std::ssize(all)) << "it should not have to look at everything";
  }
}

TEST(TrainSearch, FrontMatchesEnumeration) {
  const TrainWorld world(kSmall[2]);
  const std::vector<TrainPlan> all = every_fitting_plan(world);
  const TrainSearch search = world.search();
  const auto best_within = [](const std::vector<TrainPlan>& plans, double bytes) {
    double best = std::numeric_limits<double>::infinity();
    for (const TrainPlan& p : plans) {
      if (p.memory.device.total() <= bytes)
        best = std::min(best, p.total());
    }
    return best;
  };
  ASSERT_GE(search.front.size(), 3U);
  for (const TrainPlan& plan : search.front) {
    const double bytes = plan.memory.device.total();
    EXPECT_NEAR(plan.total(), best_within(all, bytes), 1e-12);
  }
  for (const TrainPlan& plan : all) {  // No point of the front is missing.
    if (plan.total() <= 2 * search.best.front().total()) {
      EXPECT_LE(best_within(search.front, plan.memory.device.total()), plan.total() + 1e-12);
    }
  }
}

TEST(TrainSearch, BestPlansSplitTheModelDifferently) {
  const TrainWorld world(kSmall[2]);
  const TrainSearch search = world.search();
  ASSERT_EQ(search.best.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    for (std::size_t j = 0; j < i; ++j) {
      EXPECT_FALSE(same_cut(search.best[i].scenario.layout, search.best[j].scenario.layout));
      EXPECT_GE(search.best[i].total(), search.best[j].total());
    }
  }
}

constexpr TrainCase kLarge[] = {{"pangu-ultra-moe-718b", "ascend-910b", 1024, 256, 8192},
                                {"pangu-ultra-moe-718b", "cm384", 256, 256, 8192},
                                {"deepseek-v3", "nvidia-h800", 1024, 256, 4096},
                                {"qwen3-235b-a22b", "cm384", 64, 256, 4096},
                                {"gpt3-175b", "nvidia-a100", 256, 256, 2048},
                                {"qwen2.5-72b", "nvidia-h100", 64, 128, 4096},
                                {"qwen2.5-7b", "nvidia-h200", 8, 64, 4096}};

/// What one would write down without a search: tensor parallelism over at most 8 devices of a node,
/// the fewest stages that fit, every device used, no chunks, micro-batches of one sequence,
/// optimizer sharded, and every layer recomputed if it does not fit without.
std::optional<TrainPlan> uniform_plan(const TrainWorld& w) {
  for (const Recompute recompute : {Recompute::None, Recompute::Full}) {
    TrainScenario s{{}, w.shape, TrainerState::Active};
    s.shape.recompute = recompute;
    Layout& l = s.layout;
    l.tp = std::min<std::int64_t>({8, w.hardware.devices_per_node(), w.problem.devices});
    l.sequence_parallel = l.tp > 1 ? SequenceParallel::On : SequenceParallel::Off;
    l.zero = Zero::Optimizer;
    for (l.pp = 1; l.pp <= w.model.layers; ++l.pp) {
      l.dp = w.problem.devices / (l.tp * l.pp);
      l.ep = w.model.moe ? std::min(w.model.moe->experts, l.tp * l.dp) : 1;
      if (check_layout(w.model, w.problem.devices, l, s.shape) &&
          w.problem.fits(plan_memory(w.problem, s)))
        return price(w.problem, s);
    }
  }
  return std::nullopt;
}

TEST(TrainSearch, IsNeverSlowerThanTheUniformPlan) {
  int compared = 0;
  for (const TrainCase& c : kLarge) {
    SCOPED_TRACE(c.model);
    const TrainWorld world(c);
    const TrainSearch search = world.search();
    ASSERT_FALSE(search.best.empty());
    const auto uniform = uniform_plan(world);
    if (!uniform)
      continue;
    ++compared;
    EXPECT_LE(search.best.front().total(), uniform->total());
  }
  EXPECT_GE(compared, 5);
}

TEST(TrainSearch, IsNeverSlowerOnALargerCluster) {
  for (const TrainCase& c : kLarge) {
    SCOPED_TRACE(c.model);
    double before = std::numeric_limits<double>::infinity();
    for (const std::int64_t tenths : {10, 11, 27}) {  // Includes awkward divisors.
      TrainCase larger = c;
      larger.cards = c.cards * tenths / 10;
      const TrainSearch search = TrainWorld(larger).search();
      ASSERT_FALSE(search.best.empty());
      EXPECT_LE(search.best.front().total(), before) << larger.cards << " cards";
      before = search.best.front().total();
    }
  }
}

TEST(TrainSearch, GivesTheSameAnswerEachTime) {
  const TrainWorld world(kLarge[3]);
  const TrainSearch a = world.search();
  const TrainSearch b = world.search();
  ASSERT_EQ(a.front.size(), b.front.size());
  for (std::size_t i = 0; i < a.front.size(); ++i) {
    EXPECT_FALSE(is_simpler(a.front[i], b.front[i]) || is_simpler(b.front[i], a.front[i]));
    EXPECT_EQ(a.front[i].total(), b.front[i].total());
  }
}

TEST(TrainSearch, ReturnsTheNearestPlanIfNothingFits) {
  const TrainWorld world({"pangu-ultra-moe-718b", "cm384", 8, 64, 8192});
  const TrainSearch search = world.search();
  EXPECT_TRUE(search.best.empty());
  ASSERT_TRUE(search.nearest);
  EXPECT_FALSE(world.problem.fits(search.nearest->memory));
}

TEST(TrainSearch, FindsTheFastestGivenSchedule) {
  const TrainWorld world(kSmall[2]);
  TrainSpace space = full_space(world.problem, world.shape);
  double fastest = std::numeric_limits<double>::infinity();
  for (const PipelineSchedule schedule : {PipelineSchedule::OneForwardOneBackward,
                                          PipelineSchedule::DualPipe,
                                          PipelineSchedule::AdaptivePipe}) {
    space.schedule = {schedule};
    const TrainSearch alone = search_train(world.problem, space, world.shape, {});
    ASSERT_FALSE(alone.best.empty());
    EXPECT_EQ(alone.best.front().scenario.shape.mechanisms.schedule, schedule);
    fastest = std::min(fastest, alone.best.front().total());
  }
  space.schedule = {PipelineSchedule::OneForwardOneBackward,
                    PipelineSchedule::DualPipe,
                    PipelineSchedule::AdaptivePipe};
  const TrainSearch all = search_train(world.problem, space, world.shape, {});
  ASSERT_FALSE(all.best.empty());
  EXPECT_DOUBLE_EQ(all.best.front().total(), fastest);
}

TEST(TrainSearch, DropsTensorsIfThatIsFaster) {
  const TrainWorld world({"pangu-ultra-moe-718b", "ascend-910b", 6144, 1536, 8192});
  TrainSpace space = full_space(world.problem, world.shape);
  space.tp = {8};
  space.pp = {16};
  space.vpp = {2};
  space.ep = {32};
  space.cp = {1};
  const TrainSearch plain = search_train(world.problem, space, world.shape, {});
  space.activations = {Activations::AsRecompute, Activations::Chosen};
  const TrainSearch chosen = search_train(world.problem, space, world.shape, {});
  ASSERT_FALSE(plain.best.empty());
  ASSERT_FALSE(chosen.best.empty());
  EXPECT_LT(chosen.best.front().total(), plain.best.front().total());
  EXPECT_TRUE(world.problem.fits(chosen.best.front().memory));
  EXPECT_GT(chosen.best.front().memory.host.activations, 0) << "one tensor is swapped";
  EXPECT_GT(chosen.counts.chosen, 0);
}

Result<TrainPlanRequest> train_request_of(TrainWorld& world,
                                          std::map<std::string, std::string> values) {
  return train_plan_request(Params(std::move(values)), world.hardware, world.problem);
}

TEST(TrainAdvice, ReportsTheExcessMemoryOfTheNearestPlanAndAFix) {
  TrainWorld world({"qwen2.5-72b", "nvidia-h100", 8, 8, 4096});
  const auto request =
      train_request_of(world, {{"batch", "8"}, {"seq", "4096"}, {"optimizer", "device"}});
  ASSERT_TRUE(request) << request.error().context;
  const TrainSearch search = search_train(world.problem, request->space, request->shape, {});
  ASSERT_TRUE(search.best.empty());
  const std::string text = no_plan(world.problem, *request, search).context;
  EXPECT_NE(text.find("GiB above the limit of 80.00"), std::string::npos) << text;
  EXPECT_NE(text.find("a change that works: without optimizer"), std::string::npos) << text;
}

TEST(TrainAdvice, NamesTheDivisorThatAContradictorySpaceBreaks) {
  TrainWorld world({"qwen2.5-7b", "nvidia-h200", 8, 64, 4096});
  const auto request = train_request_of(world, {{"batch", "64"}, {"seq", "4096"}, {"tp", "3,5"}});
  ASSERT_TRUE(request) << request.error().context;
  const TrainSearch search = search_train(world.problem, request->space, request->shape, {});
  const std::string text = no_plan(world.problem, *request, search).context;
  EXPECT_NE(text.find("tp = 3 does not divide 28 heads"), std::string::npos) << text;
}

TEST(TrainAdvice, ReportsTheExcessTimeOfTheFastestPlan) {
  TrainWorld world({"qwen2.5-7b", "nvidia-h200", 8, 64, 4096});
  const auto request =
      train_request_of(world, {{"batch", "64"}, {"seq", "4096"}, {"max_time", "1s"}});
  ASSERT_TRUE(request) << request.error().context;
  const TrainSearch search = search_train(world.problem, request->space, request->shape, {});
  ASSERT_FALSE(search.best.empty());
  const std::string text = too_slow(world.problem, *request, search.best.front()).context;
  EXPECT_NE(text.find("no layout meets max_time=1 s"), std::string::npos) << text;
  EXPECT_NE(text.find("s more; a change that works: "), std::string::npos) << text;
}

TEST(TrainRequest, SearchesOnlyTheRequestedLayouts) {
  TrainWorld world({"pangu-ultra-moe-718b", "ascend-910b", 6144, 1536, 8192});
  const auto request = train_request_of(
      world, {{"batch", "1536"}, {"seq", "8192"}, {"tp", "8"}, {"cp", "1"}, {"vpp", "1,2"}});
  ASSERT_TRUE(request) << request.error().context;
  const TrainSearch search = search_train(world.problem, request->space, request->shape, {});
  ASSERT_EQ(search.best.size(), 3U);
  for (const TrainPlan& plan : search.best) {
    EXPECT_EQ(plan.scenario.layout.tp, 8);
    EXPECT_EQ(plan.scenario.layout.cp, 1);
    EXPECT_LE(plan.scenario.layout.vpp, 2);
  }
}

TEST(TrainRequest, ComparesTheUsersLayoutWithTheBest) {
  TrainWorld world({"pangu-ultra-moe-718b", "ascend-910b", 6144, 1536, 8192});
  const auto request = train_request_of(world, {{"batch", "1536"}, {"seq", "8192"}});
  ASSERT_TRUE(request) << request.error().context;
  const auto plan = plan_with(world.problem, *request, "tp8,pp16,vpp2,ep32");
  ASSERT_TRUE(plan) << plan.error().context;
  EXPECT_EQ(plan->scenario.layout.tp, 8);
  EXPECT_EQ(plan->scenario.layout.pp, 16);
  EXPECT_EQ(plan->scenario.layout.vpp, 2);
  EXPECT_EQ(plan->scenario.layout.ep, 32);
  EXPECT_TRUE(world.problem.fits(plan->memory));
  const auto unknown = plan_with(world.problem, *request, "tp8,stages16");
  ASSERT_FALSE(unknown);
  EXPECT_NE(unknown.error().context.find("found `stages16`"), std::string::npos);
}

TEST(TrainRequest, NamesTheWrongKey) {
  TrainWorld world({"qwen2.5-7b", "nvidia-h200", 8, 64, 4096});
  const auto error = [&](std::map<std::string, std::string> values) {
    values.emplace("seq", "4096");
    values.emplace("batch", "64");
    const auto request = train_request_of(world, std::move(values));
    return request ? std::string("no error") : request.error().context;
  };
  EXPECT_EQ(error({{"tp", "0"}}), "tp: expected whole numbers of 1 to 1000000, found `0`");
  EXPECT_EQ(error({{"zero", "1,5"}}), "zero: expected 0, 1, 2, 3, found `5`");
  EXPECT_EQ(error({{"memory", "200GB"}}),
            "memory=200GB: must be above 0 and at most the 141GiB that nvidia-h200 has");
  EXPECT_EQ(error({{"max_tim", "1s"}}), "max_tim: unknown parameter; did you mean `max_time`?");
}

}  // namespace
}  // namespace temper::sim_hw
