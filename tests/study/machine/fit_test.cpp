#include "study/machine/fit.hpp"

#include <gtest/gtest.h>

namespace temper::study {

using namespace orchestrator;
namespace {

Timing timing(std::string kind, std::vector<double> work, double us) {
  return {std::move(kind), 1, std::move(work), us, 9, 0.01};
}

/// Samples of a machine with known constants.
Timings exact_timings() {
  Timings s;
  for (const double running : {1.0, 8.0, 64.0}) {
    for (const double context : {10.0, 25.0}) {
      const double cached = running * context;
      s.timings.push_back(timing("decode", {running, cached}, 20 + 3 * running + 0.1 * cached));
    }
  }
  for (const double rows : {8.0, 64.0, 512.0}) {
    for (const double copies : {0.0, 7.0, 100.0})
      s.timings.push_back(timing("prefill", {rows, copies}, 5 + 4 * rows + 0.5 * copies));
  }
  s.timings.push_back(timing("touch", {64}, 128));
  for (const double minibatches : {1.0, 4.0}) {
    for (const auto& [rows, tokens] :
         {std::pair(100.0, 50.0), std::pair(400.0, 300.0), std::pair(700.0, 350.0)}) {
      s.timings.push_back(timing("update",
                                 {minibatches, rows, tokens},
                                 1000 + 300 * minibatches + 15 * rows + 2 * tokens));
    }
  }
  for (const double rows : {16.0, 256.0, 1024.0})
    s.timings.push_back(timing("reference", {rows}, 60 + 5 * rows));
  for (const double responses : {1.0, 8.0, 64.0})
    s.timings.push_back(timing("reward", {responses}, 2 + 0.25 * responses));
  for (const char* single : {"export",
                             "stage",
                             "commit",
                             "save",
                             "interrupt",
                             "free_kv",
                             "free_weights",
                             "allocate_kv",
                             "offload",
                             "onload",
                             "reference_load"})
    s.timings.push_back(timing(single, {}, 7));
  s.timings.push_back(timing("decode_slowdown", {}, 1.1));
  s.timings.push_back(timing("update_slowdown", {}, 1.0));
  s.timings.push_back(timing("reference_slowdown", {}, 1.2));
  s.lengths = {0, 1, 3};
  return s;
}

TEST(FitPositive, FindsTheConstantsOfAnExactSum) {
  std::vector<Observation> observations;
  for (const double x : {1.0, 2.0, 5.0, 40.0})
    observations.push_back({{1, x}, 3 + 0.5 * x});
  const LeastSquares fit = fit_positive(observations);
  EXPECT_NEAR(fit.constants.at(0), 3, 1e-6);
  EXPECT_NEAR(fit.constants.at(1), 0.5, 1e-6);
  EXPECT_NEAR(fit.error, 0, 1e-6);
}

TEST(FitPositive, LetsNoConstantBeNegative) {
  // 10 - x would be exact; without negative constants nothing depends on x.
  std::vector<Observation> observations;
  for (const double x : {1.0, 2.0, 3.0})
    observations.push_back({{1, x}, 10 - x});
  const LeastSquares fit = fit_positive(observations);
  EXPECT_EQ(fit.constants.at(1), 0);
  EXPECT_GT(fit.constants.at(0), 7);
  EXPECT_LT(fit.constants.at(0), 9);
  EXPECT_GT(fit.error, 0.01);
}

TEST(FitPositive, OfNoInputIsEmpty) {
  EXPECT_TRUE(fit_positive({}).constants.empty());
}

TEST(FitEngines, RecoversTheConstantsBehindTheSamples) {
  MachineModel c;
  const Status fitted = fit_engines(exact_timings(), c);
  ASSERT_TRUE(fitted) << fitted.error().context;
  const EngineTimes* e = c.with_threads(1);
  ASSERT_NE(e, nullptr);
  // Between measured batches a step is linear in them, above the largest in proportion.
  EXPECT_NEAR(decode_seconds(*e, 8, 80) * 1e6, 20 + 3 * 8 + 8, 1e-3);
  EXPECT_NEAR(decode_seconds(*e, 36, 360) * 1e6, 20 + 3 * 36 + 36, 1e-3);
  EXPECT_NEAR(decode_seconds(*e, 128, 0) * 1e6, 2 * (20 + 3 * 64), 1e-3);
  EXPECT_NEAR(prefill_seconds(*e, 100, 10) * 1e6, 5 + 400 + 5, 1e-3);
  EXPECT_NEAR(e->prefill.touch_us, 2, 1e-9);
  EXPECT_NEAR(update_seconds(*e, {2, 1000, 500}) * 1e6, 1000 + 600 + 15000 + 1000, 0.1);
  EXPECT_NEAR(reference_seconds(*e, 10) * 1e6, 110, 1e-3);
  EXPECT_NEAR(c.reward.call_us, 2, 1e-6);
  EXPECT_EQ(c.weights.stage_us, 7);
  EXPECT_EQ(c.switches.reference_load_us, 7);
  EXPECT_EQ(c.slowdowns.decode, 1.1);
  EXPECT_NEAR(c.slowdowns.other, 1.1, 1e-12);
  EXPECT_EQ(c.response.cap, Tokens(3));
  EXPECT_EQ(c.response.mean, 2.75);
  for (const MachineFit& fit : c.fits)
    EXPECT_LT(fit.error, 1e-6) << fit.constants;
}

TEST(FitEngines, NamesMissingMeasurements) {
  for (const char* kind : {"decode", "prefill", "update", "reference", "reward", "stage"}) {
    Timings some = exact_timings();
    std::erase_if(some.timings, [&](const Timing& s) { return s.kind == kind; });
    MachineModel c;
    const Status fitted = fit_engines(some, c);
    ASSERT_FALSE(fitted) << kind;
    EXPECT_NE(fitted.error().context.find(kind), std::string::npos) << fitted.error().context;
  }
}

TEST(FitMessages, SeparatesMessagesFromResponses) {
  std::vector<MessageCounts> counts;
  for (const auto& [messages, responses] : {std::pair(100.0, 3000.0), std::pair(900.0, 1000.0)}) {
    counts.push_back({"rollout", messages, responses, 20 * messages + 0.5 * responses});
    counts.push_back({"orchestrator", messages, responses, 8 * messages + 2 * responses});
  }
  MachineModel c;
  fit_messages(counts, c);
  EXPECT_NEAR(c.processes.rollout.message_us, 20, 1e-6);
  EXPECT_NEAR(c.processes.rollout.response_us, 0.5, 1e-6);
  EXPECT_NEAR(c.processes.orchestrator.message_us, 8, 1e-6);
  EXPECT_NEAR(c.processes.orchestrator.response_us, 2, 1e-6);
  EXPECT_EQ(c.processes.trainer.message_us, 0);  // no data
}

}  // namespace
}  // namespace temper::study
