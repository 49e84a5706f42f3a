#include "study/forecast/forecast.hpp"

#include "cli/study/forecast_command.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace temper::study {

using namespace orchestrator;
namespace {

ForecastRun run(double predicted, double measured, double noise) {
  ForecastRun r;
  r.predicted.trained_per_s = predicted;
  r.measured.emplace().trained_per_s = measured;
  r.noise = noise;
  return r;
}

TEST(Forecasts, HaveRelativeErrors) {
  Forecasts p;
  p.runs = {run(110, 100, 0), run(95, 100, 0)};
  judge(p);
  EXPECT_NEAR(p.runs[0].error, 0.10, 1e-12);
  EXPECT_NEAR(p.runs[1].error, -0.05, 1e-12);
  EXPECT_NEAR(p.mean_error.value(), 0.075, 1e-12);
}

TEST(Forecasts, AreRankedOnlyIfRunsDifferByMoreThanTheNoise) {
  Forecasts p;
  // 100 and 104 are one with a noise of 5 %; 130 is predicted below both.
  p.runs = {run(90, 100, 0.05), run(100, 104, 0.01), run(80, 130, 0.01)};
  judge(p);
  EXPECT_EQ(p.pairs, 2U);
  EXPECT_EQ(p.ranked, 0U);
  p.runs[2].predicted.trained_per_s = 95;
  judge(p);
  EXPECT_EQ(p.ranked, 1U);
}

TEST(Forecasts, WithoutRunsHaveNoError) {
  Forecasts p;
  p.runs.resize(2);
  judge(p);
  EXPECT_FALSE(p.mean_error);
  EXPECT_EQ(p.pairs, 0U);
}

TEST(Forecasts, OfASimulatedConfigurationAreRefusedWithTheRightReason) {
  cli::ForecastOptions options;
  options.config = TEMPER_CONFIGS "/cm384_pangu.yaml";
  options.calibration = "nowhere/machine.yaml";
  std::ostringstream out, err;
  EXPECT_EQ(cli::run_forecast(options, out, err), 2);
  EXPECT_EQ(err.str().find("temper measure"), std::string::npos) << err.str();
  EXPECT_NE(err.str().find("temper run CONFIG --driver in-process"), std::string::npos)
      << err.str();
}

}  // namespace
}  // namespace temper::study
