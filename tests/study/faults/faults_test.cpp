#include "study/faults/faults.hpp"

#include "tests/support/small_pipeline.hpp"

#include <gtest/gtest.h>

#include <cmath>

namespace temper::study {
namespace {

using orchestrator::PipelineConfig;
using orchestrator::TimeLost;
using temper::testing::small_pipeline;

/// Failures every few minutes in a run whose updates take seconds.
PipelineConfig failing() {
  PipelineConfig c = small_pipeline();
  c.checkpoint.every = 4;
  c.simulation.checkpoint.bandwidth = BytesPerSecond(2e9);
  c.simulation.faults.rate = 3e5;
  c.simulation.faults.link_mtbf = std::chrono::hours(100000);  // engines alone
  c.simulation.faults.repair = std::chrono::minutes(5);
  c.simulation.faults.link_repair = std::chrono::minutes(1);
  c.simulation.faults.replacement = std::chrono::seconds(20);
  return c;
}

FaultsRun run(PipelineConfig config, std::chrono::minutes time) {
  config.steps = 1000000;
  const auto done = run_with_faults(*orchestrator::resolve(config), Time(time));
  EXPECT_TRUE(done) << done.error().context;
  return done ? *done : FaultsRun{};
}

TEST(Faults, UsefulAndLostTimeAddUpToTheRun) {
  const TimeLost t = run(failing(), std::chrono::minutes(60)).time;
  EXPECT_EQ(t.wall, std::chrono::minutes(60));
  EXPECT_EQ(t.useful + t.start + t.down + t.checkpoint + t.missing + t.again, t.wall);
  for (const Duration part : {t.useful, t.down, t.checkpoint, t.missing, t.again})
    EXPECT_GT(part, Duration{});
  EXPECT_GT(t.rollbacks, 0U);
  EXPECT_GT(t.losses, 0U);
  EXPECT_LT(t.goodput(), 1.0);
}

TEST(Faults, ARunThatNeverReachesACheckpointEndsWithAReason) {
  PipelineConfig c = failing();
  c.checkpoint.every = 0;
  c.simulation.faults.rate = 3e6;  // one of 8 cards fails every 12 s, and updates never end
  c.simulation.faults.replacement = c.simulation.faults.repair = Duration{};
  c.steps = 1000000;
  const auto done = run_with_faults(*orchestrator::resolve(c), Time(std::chrono::hours(24 * 365)));
  ASSERT_FALSE(done);
  EXPECT_NE(done.error().context.find("trainer was lost 1001 times"), std::string::npos)
      << done.error().context;
}

TEST(Faults, AFailureFreeRunLosesOnlyStartAndCheckpoints) {
  PipelineConfig c = failing();
  c.simulation.faults.rate = 0;
  const TimeLost t = run(c, std::chrono::minutes(10)).time;
  EXPECT_EQ(t.useful + t.start + t.checkpoint, t.wall);
  EXPECT_GT(t.checkpoints, 0U);
}

TEST(Faults, ACheckpointTakesBytesOverBandwidth) {
  PipelineConfig c = failing();
  c.simulation.faults.rate = 0;
  const TimeLost t = run(c, std::chrono::minutes(10)).time;
  const double save_s = checkpoint_terms(*orchestrator::resolve(c)).save_s;
  // The last one may be in progress.
  const double each = seconds(t.checkpoint) / static_cast<double>(t.checkpoints);
  EXPECT_NEAR(each, save_s, save_s / static_cast<double>(t.checkpoints) + 1e-3);
}

TEST(Faults, SpareHostsRaiseGoodput) {
  FaultsOptions options;
  options.config = failing();
  options.config.simulation.faults.repair = std::chrono::minutes(30);
  options.time = std::chrono::hours(3);
  options.spares = {0, 4};
  const auto report = study_faults(options);
  ASSERT_TRUE(report) << report.error().context;
  ASSERT_EQ(report->rows.size(), 2U);
  EXPECT_GT(report->rows[1].goodput, report->rows[0].goodput);
  for (const FaultsRow& r : report->rows)
    EXPECT_NEAR(r.goodput + r.start + r.down + r.checkpoint + r.missing + r.again, 1, 1e-9);
}

TEST(Faults, TheReportIsTheSameOnAnyNumberOfThreads) {
  FaultsOptions options;
  options.config = failing();
  options.time = std::chrono::minutes(20);
  options.every = {1, 8};
  options.seeds = 2;
  const std::string one = faults_text(study_faults(options).value());
  options.threads = 3;
  EXPECT_EQ(faults_text(study_faults(options).value()), one);
}

TEST(Faults, ThePlotHasALinePerNumberOfSparesAndYoungsEstimate) {
  FaultsReport report;
  report.days = 30;
  report.save_s = 300;
  report.failures_s = 1e6;
  for (const std::int32_t spares : {0, 2}) {
    for (const std::uint64_t every : {4U, 16U}) {
      FaultsRow row;
      row.every = every;
      row.interval_s = 1500.0 * static_cast<double>(every);
      row.spares = spares;
      row.goodput = 0.9;
      report.rows.push_back(row);
    }
  }
  const std::string svg = faults_svg(report);
  for (const char* line : {"0 spare hosts", "2 spare hosts", "(Young)"})
    EXPECT_NE(svg.find(line), std::string::npos) << line;
}

TEST(Faults, ARunWithoutFailuresIsAnError) {
  FaultsOptions options;
  options.config = small_pipeline();
  EXPECT_FALSE(study_faults(options));
}

TEST(Faults, NeedsCheckpointsThatTakeTime) {
  const auto refusal = [](const auto& change) {
    FaultsOptions options;
    options.config = failing();
    options.time = std::chrono::minutes(1);
    change(options);
    const auto report = study_faults(options);
    return report ? std::string() : report.error().context;
  };
  const auto costless = [](FaultsOptions& o) {
    o.config.simulation.checkpoint.bandwidth = BytesPerSecond(0);
  };
  const auto never = [](FaultsOptions& o) { o.config.checkpoint.every = 0; };
  EXPECT_EQ(refusal([](FaultsOptions&) {}), "");
  EXPECT_NE(refusal(costless).find("simulation.checkpoint.bandwidth"), std::string::npos);
  EXPECT_NE(refusal(never).find("checkpoint.every"), std::string::npos);
  EXPECT_EQ(refusal([&](FaultsOptions& o) {
              never(o);
              o.every = {4};
            }),
            "");
  const std::string all = refusal([&](FaultsOptions& o) {
    o.config = small_pipeline();
    costless(o);
    never(o);
  });
  for (const char* key : {"simulation.faults.rate", "simulation.checkpoint.bandwidth", "--every"})
    EXPECT_NE(all.find(key), std::string::npos) << "all that is missing is said at once: " << all;
}

TEST(CheckpointInterval, FollowsTheEquations) {
  const CheckpointTerms terms{.save_s = 300, .failures_s = 100 * 3600};
  EXPECT_NEAR(young_interval(terms), std::sqrt(2 * 300 * 360000.0), 1e-6);
  EXPECT_NEAR(daly_interval(terms), 14497.6, 1);
  EXPECT_EQ(daly_interval({.save_s = 10, .failures_s = 4}), 4);
}

TEST(CheckpointInterval, CountsFailuresThatTakeATrainerCard) {
  PipelineConfig c = small_pipeline();
  c.simulation.faults.rate = 1;
  c.simulation.faults.host_mtbf = c.simulation.faults.link_mtbf = Duration{};
  // The trainer's cards are on one host of eight.
  EXPECT_NEAR(checkpoint_terms(*orchestrator::resolve(c)).failures_s, 79200 * 3600.0 / 8, 1);
  // Four cards of it are in use, and only those fail.
  c.placement.cards = 4;
  c.placement.rollout_cards = 2;
  EXPECT_NEAR(checkpoint_terms(*orchestrator::resolve(c)).failures_s, 79200 * 3600.0 / 4, 1);
}

}  // namespace
}  // namespace temper::study
