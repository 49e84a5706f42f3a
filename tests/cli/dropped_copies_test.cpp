// Dropped copies of a simulated run: its metrics are what `temper check` predicts.
#include "cli/run/check_command.hpp"
#include "core/files.hpp"
#include "orchestrator/metrics/report.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "tests/support/simulated_run.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>

#include <sstream>

namespace temper::cli {
namespace {

using actors::ExpertMetrics;

/// Loads differ between layers and drift, so each step drops another share.
constexpr const char* kConfig = R"(name: drops
hardware: simulated
policy: synthetic
steps: 4
algorithm: {groups_per_update: 8, responses_per_group: 4, minibatches: 1}
placement: {cards: 16, rollout_cards: 8, reference_cards: 4}
simulation:
  cluster: cm384
  model: qwen3-30b-a3b
  response: {mean: 512, cap: 2048}
  rollout: {ep: 16}
  trainer: {tp: 4, ep: 8, micro_batch_tokens: 8192}
  experts: {loads: drifting, drift: 0.3}
)";

class DroppedCopies : public ::testing::Test {
 protected:
  DroppedCopies() { EXPECT_TRUE(write_file_atomically(file_, kConfig)); }

  /// Text of `temper check`.
  std::string check(const std::vector<std::string>& sets) const {
    std::ostringstream out, err;
    EXPECT_EQ(run_check({.config = file_.string(), .sets = sets}, out, err), 0) << err.str();
    return out.str();
  }
  /// Runs it, and returns the text of its report.
  std::string run(const std::vector<std::string>& sets) {
    const auto config = orchestrator::load_config(file_.string(), sets);
    EXPECT_TRUE(config) << config.error().context;
    const auto ran = orchestrator::testing::run_simulated(*config, [&](const auto& record) {
      if (const auto* e = std::get_if<orchestrator::event::Trained>(&record.event))
        steps.push_back(e->metrics.experts);
    });
    last_step = ran.summary.last_step;
    return orchestrator::summary_text(ran.summary, {});
  }

  std::vector<std::optional<ExpertMetrics>> steps;
  std::map<std::string, double> last_step;

 private:
  const test::TemporaryFolder folder_;
  const std::filesystem::path file_ = folder_ / "drops.yaml";
};

const std::vector<std::string> kFactor{"simulation.trainer.capacity_factor=1.25"};

TEST_F(DroppedCopies, OfTheStepsOfARunHaveTheMeansThatCheckPrints) {
  const std::string report = run(kFactor);
  ASSERT_EQ(steps.size(), 4U);
  double dropped = 0, most = 0;
  for (const auto& step : steps) {
    ASSERT_TRUE(step);
    dropped += step->dropped / 4;
    most += step->dropped_most / 4;
  }
  EXPECT_GT(dropped, 0.05);
  EXPECT_GT(most, dropped);
  EXPECT_GT(std::abs(steps.front()->dropped - steps.back()->dropped), 1e-3);
  EXPECT_NE(check(kFactor).find(fmt::format(
                "copies dropped by experts    {:8.2f} %   {:.2f} % in the worst layer\n",
                100 * dropped,
                100 * most)),
            std::string::npos)
      << dropped << " " << most << "\n"
      << check(kFactor);
  EXPECT_EQ(last_step.at("experts/dropped"), steps.back()->dropped);
  EXPECT_EQ(last_step.at("experts/dropped_most"), steps.back()->dropped_most);
  EXPECT_NE(report.find(fmt::format("Dropped copies, share               all layers {:.4g}   worst "
                                    "layer {:.4g}\n",
                                    steps.back()->dropped,
                                    steps.back()->dropped_most)),
            std::string::npos)
      << report;
}

TEST_F(DroppedCopies, AreNoMetricWithoutACapacityFactor) {
  const std::string report = run({});
  ASSERT_EQ(steps.size(), 4U);
  for (const auto& step : steps)
    EXPECT_FALSE(step);
  EXPECT_FALSE(last_step.contains("experts/dropped"));
  EXPECT_EQ(report.find("Dropped copies"), std::string::npos) << report;
  EXPECT_EQ(check({}).find("copies dropped"), std::string::npos);
}

}  // namespace
}  // namespace temper::cli
