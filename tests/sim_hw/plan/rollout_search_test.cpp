// The search of rollout layouts, compared with hand-computed equations and with every layout priced
// one by one, under limits, and over growing clusters.
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/iteration/lengths.hpp"
#include "sim_hw/plan/rollout_request.hpp"
#include "sim_hw/steps/parallel_decode.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>

namespace temper::sim_hw {
namespace {

struct RolloutWorld {
  RolloutWorld(const char* model_name, const char* hardware_name, std::int64_t cards)
      : catalog(Catalog::shipped()),
        model(**catalog.model(model_name)),
        hardware(**catalog.hardware(hardware_name)),
        problem(model, hardware, cards) {
    problem.lengths = rollout_lengths(512, *lognormal_lengths(1024, 3000, 16384, 6));
  }
  RolloutSearch search() const { return search_rollout(problem, full_rollout_space(problem)); }

  Catalog catalog;
  const ModelSpec& model;
  const HardwareSpec& hardware;
  RolloutProblem problem;
};

TEST(RolloutSearch, PricesAStepLikeTheDecodeModel) {
  const RolloutWorld world("qwen3-235b-a22b", "cm384", 64);
  const auto plan = price(world.problem, {4, 32, 32, 16});
  ASSERT_TRUE(plan);
  const RolloutLayout layout{4, 8, 32};  // 32 / 4 replicas reach a device's experts.
  ModelSpec served = world.model;
  served.mtp_layers = 0;
  const StepModel model = make_step_model(served, 4, 32);
  EXPECT_NEAR(plan->step_seconds,
              parallel_decode_seconds(world.problem.device,
                                      world.problem.fabric,
                                      model,
                                      layout,
                                      {16, 16, world.problem.lengths.context}),
              1e-12);
  // 128 dies make 4 engines of 32 dies with 8 replicas each.
  EXPECT_EQ(plan->all_slots(), 4 * 8 * 16);
  EXPECT_DOUBLE_EQ(plan->tokens_per_second(), 512 / plan->token_seconds());
  double sum = 0;
  for (const auto& [name, seconds] : plan->entries())
    sum += seconds;
  EXPECT_NEAR(sum, plan->token_seconds(), 1e-12);
}

TEST(RolloutSearch, SplitsTheDeviceTimeOfATokenIntoItsTerms) {
  const RolloutWorld world(
      "qwen3-235b-a22b", "cm384", 60);  // Engines of 32 leave some of the 120 dies unused.
  const auto plan = price(world.problem, {4, 32, 32, 16});
  ASSERT_TRUE(plan);
  EXPECT_EQ(plan->engines, 3);
  double sum = 0;
  for (const auto& [name, seconds] : plan->device_entries(120))
    sum += seconds;
  EXPECT_NEAR(sum, 120 / plan->tokens_per_second(), 1e-12);
}

TEST(RolloutSearch, FindsTheMostTokensOfEveryLayoutThatFits) {
  for (const char* name : {"qwen3-30b-a3b", "qwen2.5-72b"}) {
    SCOPED_TRACE(name);
    const RolloutWorld world(name, "nvidia-h200", 8);
    double most = 0;
    for (std::int64_t tp = 1; tp <= 8; ++tp) {
      for (std::int64_t ep = 1; ep <= 8; ++ep) {
        for (std::int64_t engine = std::max(tp, ep); engine <= 8; ++engine) {
          for (std::int64_t slots = 1; slots <= 4000; ++slots) {
            const auto plan = price(world.problem, {tp, ep, engine, slots});
            if (!plan)
              break;
            most = std::max(most, plan->tokens_per_second());
          }
        }
      }
    }
    const RolloutSearch search = world.search();
    ASSERT_FALSE(search.best.empty());
    EXPECT_GE(search.best.front().tokens_per_second(), 0.99 * most);
    EXPECT_LE(search.best.front().tokens_per_second(), most * (1 + 1e-12));
  }
}

TEST(RolloutSearch, EveryPlanFitsDevicesAndHosts) {
  const RolloutWorld world("pangu-ultra-moe-718b", "cm384", 224);
  const RolloutSearch search = world.search();
  ASSERT_EQ(search.best.size(), 3U);
  ASSERT_GT(search.front.size(), 10U);
  for (const RolloutPlan& plan : search.front) {
    EXPECT_LE(plan.memory.device.total(), world.problem.device_memory);
    EXPECT_LE(plan.memory.host.total(), world.problem.host_memory);
    const double slots = static_cast<double>(plan.scenario.slots);
    EXPECT_GE(plan.kv_tokens, slots * world.problem.lengths.context);
    EXPECT_GE(plan.kv_tokens, world.problem.lengths.longest);
    EXPECT_GT(plan.kv_share, 0);
    EXPECT_LE(plan.kv_share, 1);
  }
}

TEST(RolloutSearch, TradesTokensForTimeAlongItsFront) {
  const RolloutWorld world("pangu-ultra-moe-718b", "cm384", 224);
  const std::vector<RolloutPlan> front = world.search().front;
  for (std::size_t i = 1; i < front.size(); ++i) {
    EXPECT_LT(front[i - 1].token_seconds(), front[i].token_seconds());
    EXPECT_LT(front[i - 1].tokens_per_second(), front[i].tokens_per_second());
  }
}

TEST(RolloutSearch, RespectsTheTimePerToken) {
  RolloutWorld world("pangu-ultra-moe-718b", "cm384", 224);
  const double free = world.search().best.front().tokens_per_second();
  world.problem.max_token_seconds = 0.06;
  const RolloutSearch search = world.search();
  ASSERT_FALSE(search.best.empty());
  for (const RolloutPlan& plan : search.best)
    EXPECT_LE(plan.token_seconds(), 0.06);
  EXPECT_LT(search.best.front().tokens_per_second(), free);
}

TEST(RolloutSearch, IsNeverWorseOnALargerCluster) {
  for (const auto& [name, hardware] :
       std::array<std::pair<const char*, const char*>, 3>{{{"pangu-ultra-moe-718b", "cm384"},
                                                           {"qwen3-235b-a22b", "cm384"},
                                                           {"qwen2.5-72b", "nvidia-h100"}}}) {
    SCOPED_TRACE(name);
    double before = 0;
    for (std::int64_t cards = 32; cards <= 384; cards += 11) {
      const double now =
          RolloutWorld(name, hardware, cards).search().best.front().tokens_per_second();
      EXPECT_GE(now, before) << cards << " cards";
      before = now;
    }
  }
}

Result<RolloutPlanRequest> request_of(RolloutWorld& world,
                                      std::map<std::string, std::string> values) {
  return rollout_plan_request(Params(std::move(values)), ".", world.problem);
}

TEST(RolloutAdvice, ReportsTheExcessMemoryOfTheNearestEngineAndAFix) {
  RolloutWorld world("pangu-ultra-moe-718b", "cm384", 8);
  const auto request = request_of(world, {{"prompt", "512"}, {"response", "3000"}});
  ASSERT_TRUE(request) << request.error().context;
  const RolloutSearch search = search_rollout(world.problem, request->space);
  ASSERT_TRUE(search.best.empty());
  const std::string text = no_plan(world.problem, *request, search).context;
  EXPECT_NE(text.find("fits 16 devices; the nearest, tp16 ep16 with 1 slot"), std::string::npos)
      << text;
  EXPECT_NE(text.find("GiB above the limit of 59.60"), std::string::npos) << text;
  EXPECT_NE(text.find("a change that works: 32 devices instead of 16"), std::string::npos) << text;
}

TEST(RolloutAdvice, ReportsTheExcessTimeOfTheFastestToken) {
  RolloutWorld world("qwen2.5-72b", "nvidia-h100", 8);
  const auto request = request_of(
      world, {{"prompt", "512"}, {"response", "3000"}, {"max_token_time", "20ms"}, {"tp", "2"}});
  ASSERT_TRUE(request) << request.error().context;
  const RolloutSearch search = search_rollout(world.problem, request->space);
  ASSERT_TRUE(search.best.empty());
  const std::string text = no_plan(world.problem, *request, search).context;
  EXPECT_NE(text.find("max_token_time=20 ms; the nearest, tp2 ep1"), std::string::npos) << text;
  EXPECT_NE(text.find("ms more; a change that works: without tp"), std::string::npos) << text;
}

TEST(RolloutRequest, NamesTheWrongParameter) {
  RolloutWorld world("qwen3-30b-a3b", "nvidia-h200", 8);
  const auto error = [&](std::map<std::string, std::string> values) {
    values.emplace("prompt", "512");
    values.emplace("response", "3000");
    const auto request = request_of(world, std::move(values));
    if (!request)
      return request.error().context;
    const RolloutSearch search = search_rollout(world.problem, request->space);
    return search.best.empty() ? no_plan(world.problem, *request, search).context : "no error";
  };
  EXPECT_EQ(error({{"slot", "3"}}), "slot: unknown parameter; did you mean `slots`?");
  EXPECT_EQ(error({{"slots", "3,4"}}), "slots=3,4: expected one value");
  EXPECT_EQ(error({{"response", "0"}}), "response=0: must be 1 or more");
  EXPECT_EQ(error({{"staging", "disk"}}), "staging=disk: expected host, none");
  EXPECT_EQ(error({{"ep", "3"}}),
            "no layout can run: ep=3 does not divide the 128 experts; nearest: ep=2");
}

TEST(RolloutRequest, ComparesTheUsersLayoutEvenIfItDoesNotFit) {
  RolloutWorld world("pangu-ultra-moe-718b", "cm384", 224);
  const auto request = request_of(world, {{"prompt", "512"}, {"response", "7000"}});
  ASSERT_TRUE(request) << request.error().context;
  const auto fits = plan_with(world.problem, *request, "tp4,ep64");
  ASSERT_TRUE(fits) << fits.error().context;
  EXPECT_LE(fits->memory.device.total(), world.problem.device_memory);
  const auto large = plan_with(world.problem, *request, "tp4,ep64,slots4000");
  ASSERT_TRUE(large) << large.error().context;
  EXPECT_EQ(large->scenario.slots, 4000);
  EXPECT_GT(large->memory.device.total(), world.problem.device_memory);
}

}  // namespace
}  // namespace temper::sim_hw
