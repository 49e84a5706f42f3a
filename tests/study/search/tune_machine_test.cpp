// The search on this machine's cores, with an invented calibration.
#include "cli/study/tune_command.hpp"
#include "core/files.hpp"
#include "core/yaml.hpp"
#include "study/search/tune.hpp"
#include "study/search/tune_report.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <set>
#include <sstream>

namespace temper::study {

using namespace orchestrator;
namespace {

namespace fs = std::filesystem;

/// Everything takes round times; a machine of two cores.
MachineModel tuned_machine() {
  MachineModel c;
  c.cores = 2;
  c.config = "round";
  for (const int threads : {1, 2}) {
    EngineTimes e;
    e.threads = threads;
    e.decode = {{1, 2000, 0}, {1024, 2000, 0}};
    e.prefill = {3000, 0, 0, 0};
    e.update = {40'000, 0, 0, 0, 0, 0};
    e.reference = {5000, 0, 0};
    c.engines.push_back(e);
  }
  c.weights = {1000, 6000, 1000, 0};
  c.switches = {500, 500, 500, 500, 2000, 3000, 1000};
  c.response.kind = actors::LengthKind::Constant;
  c.response.mean = 4;
  c.response.cap = Tokens(16);
  return c;
}

PipelineConfig pipeline() {
  PipelineConfig c;
  c.name = "round";
  c.steps = 10;
  c.algorithm.groups_per_update = 4;
  c.algorithm.responses_per_group = 2;
  c.algorithm.kl = 0.001;
  c.sampling.max_new_tokens = Tokens(16);
  c.rollout.concurrency = 16;
  c.staleness.bound = 1;
  c.checkpoint.every = 0;
  return c;
}

class TuneMachine : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(write_file_atomically(file_, to_yaml(pipeline())));
    options_.config = orchestrator::ConfigFile::read(file_).value();
    options_.calibration = tuned_machine();
    options_.etas = {0, 1};
  }
  TuneResult tuned() {
    auto result = tune(options_);
    EXPECT_TRUE(result) << result.error().context;
    return *std::move(result);
  }

  const test::TemporaryFolder folder_;
  const fs::path file_ = folder_ / "local.yaml";
  TuneOptions options_;
};

TEST_F(TuneMachine, AllFourPlacementsAreForecast) {
  const TuneResult t = tuned();
  std::set<std::string> modes;
  for (const Candidate& c : t.tried) {
    if (c.row.tokens_per_s)
      modes.insert(c.row.mode);
  }
  EXPECT_EQ(modes, (std::set<std::string>{"colocated", "fused", "hybrid", "separate"}));
}

TEST_F(TuneMachine, UsesTheLengthsOfARecordedRun) {
  // A run whose responses grew to 12 tokens; the base checkpoint gives 4.
  RunRecord learned;
  event::Generated said;
  for (std::uint64_t r = 0; r < 16; ++r) {
    event::Generated::Item item;
    item.response = ResponseId(r);
    item.prompt = Tokens(5);
    item.tokens = Tokens(12);
    said.items.push_back(item);
  }
  learned.feed({0, {}, event::Started{}, {}});
  learned.feed({1, {}, said, {}});
  const TuneResult before = tuned();
  options_.lengths = learned;
  const TuneResult after = tuned();
  EXPECT_EQ(before.tried[before.given].figures->accounts.trained_length, 4);
  EXPECT_EQ(after.tried[after.given].figures->accounts.trained_length, 12);
  EXPECT_GT(*after.tried[after.given].row.seconds_per_update,
            *before.tried[before.given].row.seconds_per_update);
}

TEST_F(TuneMachine, LengthsRespectTheLimit) {
  RunRecord other;
  event::Generated said;
  said.items.resize(1);
  said.items[0].tokens = Tokens(1000);
  other.feed({0, {}, said, {}});
  options_.lengths = other;
  const TuneResult t = tuned();
  EXPECT_EQ(t.tried[t.given].figures->accounts.trained_length, 16);
}

TEST_F(TuneMachine, DifferencesWithinTheFitErrorAreTies) {
  // Decoding was fitted with 30 % error, the rest exactly; part of it becomes tune's error.
  options_.calibration->fits = {{"engines of 1 thread(s): decode", "", 1, 0, 0.3},
                                {"engines of 2 thread(s): decode", "", 1, 0, 0.3},
                                {"engines of 1 thread(s): update", "", 1, 0, 0}};
  const TuneResult t = tuned();
  EXPECT_GT(t.error, 0);
  EXPECT_LT(t.error, 0.3);
  const double fastest = *t.tried[t.fastest].row.objective;
  for (const std::size_t i : t.ties)
    EXPECT_GE(*t.tried[i].row.objective, fastest * (1 - t.error));
}

TEST_F(TuneMachine, ABusyMachineGivesMoreTies) {
  options_.calibration->others = 0.25;
  EXPECT_DOUBLE_EQ(tuned().error, 0.25);
}

TEST_F(TuneMachine, SearchesTheTimeToARewardWithACurve) {
  // A trained policy on the addition task, which has a curve in configs/curves.
  const fs::path calibration = folder_ / "machine.yaml";
  ASSERT_TRUE(save_machine_model(tuned_machine(), calibration, "a test"));
  cli::TuneOptions command;
  command.config = file_.string();
  command.calibration = calibration.string();
  command.out = (folder_ / "out").string();
  std::ostringstream out, err;
  ASSERT_EQ(cli::run_tune(command, out, err), 0) << err.str();
  EXPECT_NE(out.str().find("time to the reward of"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("addition_to_0.8.csv"), std::string::npos);
}

TEST_F(TuneMachine, ACurveDoesNotApplyToAnotherBatch) {
  const fs::path calibration = folder_ / "machine.yaml";
  ASSERT_TRUE(save_machine_model(tuned_machine(), calibration, "a test"));
  cli::TuneOptions command;
  command.config = file_.string();
  command.calibration = calibration.string();
  command.vary = {"algorithm.groups_per_update=4,8"};
  command.out = (folder_ / "out").string();
  std::ostringstream out, err;
  ASSERT_EQ(cli::run_tune(command, out, err), 0) << err.str();
  EXPECT_EQ(out.str().find("time to the reward of"), std::string::npos) << out.str();
  EXPECT_NE(out.str().find("trained tokens/s, x"), std::string::npos) << out.str();
}

TEST(MachineModel, WarnsAboutABusyMachine) {
  MachineModel model = tuned_machine();
  EXPECT_EQ(busy_note(model), "");
  model.others = 0.4;
  EXPECT_NE(busy_note(model).find("other programs took 40 %"), std::string::npos);
}

}  // namespace
}  // namespace temper::study
