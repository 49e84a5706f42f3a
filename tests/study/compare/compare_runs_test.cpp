// Comparisons of real runs: folders, resuming, failures, learning figures. Instead of processes, a
// scheduler in a simulated world writes the log of each run.
#include "study/compare/compare_runs.hpp"

#include "core/files.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "study/compare/compare_report.hpp"
#include "tests/support/scheduler_world.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>

namespace temper::study {

using namespace orchestrator;
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLocal = R"(name: local
steps: 30
algorithm:
  groups_per_update: 2
  responses_per_group: 2
rollout:
  concurrency: 8
)";

class RealRuns : public ::testing::Test {
 protected:
  RealRuns()
      : folder_(fs::path(::testing::TempDir()) /
                fmt::format("compare_runs_{}", static_cast<long>(::getpid()))) {
    fs::remove_all(folder_);
    EXPECT_TRUE(make_folder(folder_));
    EXPECT_TRUE(write_file_atomically(folder_ / "local.yaml", kLocal));
  }
  ~RealRuns() override { fs::remove_all(folder_); }

  CompareOptions options() {
    CompareOptions o;
    o.config = folder_ / "local.yaml";
    o.policies = {StalenessRuleKind::Exact};
    o.etas = {0, 2};
    o.out = folder_ / "out";
    o.start_run = [this](const PipelineConfig& config, const auto& on_update) {
      return start_run(config, on_update);
    };
    o.on_line = [this](CompareOptions::Line line, const std::string& text) {
      if (line == CompareOptions::Line::Lasting)
        lines_.push_back(text);
    };
    return o;
  }

  /// Update v of a run with bound eta earns min(1, v / 20) - eta / 100.
  Result<RunEnd> start_run(const PipelineConfig& config,
                           const std::function<void(const RunMetrics&)>& on_update) {
    started_.push_back(fs::path(config.run_dir).filename().string());
    if (started_.back() == cannot_begin_)
      return invalid_input("no worker");
    const RunDir run_dir(config.run_dir);
    TEMPER_TRY_STATUS(run_dir.create());
    TEMPER_TRY_STATUS(write_file_atomically(run_dir.file("config.yaml"), to_yaml(config)));
    TEMPER_TRY(EventLog log, EventLog::create(run_dir.file("events.log")));
    RunMetrics metrics;
    testing::World world(scheduler_config(resolve_cards(config)), {}, config.seed);
    world.on_record = [&](Record record) {
      if (auto* trained = std::get_if<event::Trained>(&record.event)) {
        trained->metrics.reward_mean =
            std::min(1.0, static_cast<double>(trained->version.value()) / 20) -
            config.staleness.bound / 100;
      }
      for (Command& command : record.commands) {
        auto* finish = std::get_if<command::Finish>(&command);
        if (finish != nullptr && fs::path(config.run_dir).filename() == ends_badly_)
          *finish = {false, stopped_, reason_with(ReasonKind::Aborted, "out of luck")};
      }
      EXPECT_TRUE(log.append(record));
      metrics.feed(record);
      if (on_update && std::holds_alternative<event::Trained>(record.event))
        on_update(metrics);
    };
    world.play();
    return end_of(metrics.finish().value(), metrics.config().actors);
  }

  const fs::path folder_;
  std::vector<std::string> started_, lines_;
  std::string cannot_begin_, ends_badly_;
  bool stopped_ = false;
};

using Names = std::vector<std::string>;

TEST_F(RealRuns, HaveTheirOwnFoldersAndFiguresFromTheirLogs) {
  CompareOptions o = options();
  o.target_reward = 0.91;
  const auto done = compare(o);
  ASSERT_TRUE(done) << done.error().context;
  EXPECT_EQ(started_, (Names{"exact-eta0-seed1", "exact-eta2-seed1"}));
  EXPECT_EQ(done->time, PolicyComparison::Time::Wall);
  ASSERT_EQ(done->rows.size(), 2U);
  for (const CompareRow& row : done->rows) {
    EXPECT_EQ(row.end, CompareEnd::Ran);
    EXPECT_EQ(row.updates, 30U);
    EXPECT_LE(static_cast<double>(row.staleness_max), row.eta);
    EXPECT_GT(row.seconds, 0);
    // The last three of thirty earn 1 - eta / 100.
    EXPECT_DOUBLE_EQ(row.final_reward.value(), 1 - row.eta / 100);
    EXPECT_TRUE(fs::exists(fs::path(row.folder) / "events.log"));
    EXPECT_EQ(row.begun_length, 0);  // unknown
  }
  // Mean of updates 15 to 24 of the first: ((15 + ... + 20) / 20 + 4) / 10 = 0.925, of 14 to 23
  // 0.895. Of the second 0.02 less; of its updates 16 to 25 0.95 - 0.02.
  EXPECT_EQ(done->rows[0].steps_to_target, 24U);
  EXPECT_EQ(done->rows[1].steps_to_target, 25U);
  EXPECT_EQ(lines_.size(), 2U);
  EXPECT_NE(lines_[1].find("2 of 2  exact eta 2, seed 1: 30 updates in"), std::string::npos);
  EXPECT_NE(lines_[1].find("final reward 0.980"), std::string::npos) << lines_[1];
}

TEST_F(RealRuns, LearningFiguresAreInTheTableAndThePlots) {
  CompareOptions o = options();
  o.seeds = {1, 2};
  o.target_reward = 0.984;
  const auto done = compare(o);
  ASSERT_TRUE(done);
  const std::string text = compare_text(*done);
  EXPECT_NE(text.find("| final reward | steps to 0.984 |  time to 0.984, s |"), std::string::npos)
      << text;
  // Updates 18 to 27 earn ((18 + 19 + 20) / 20 + 7) / 10 = 0.985, those before less.
  EXPECT_NE(text.find("|        1.000 |             27 |"), std::string::npos) << text;
  EXPECT_NE(text.find("|        0.980 |              - |                 - |"), std::string::npos)
      << text;
  const auto steps = rewards_svg(*done, RewardAxis::Steps, "reward");
  const auto time = rewards_svg(*done, RewardAxis::Time, "reward");
  ASSERT_TRUE(steps && time);
  for (const char* words : {">exact 0<", ">exact 2<", ">reward, mean of 10 updates<"}) {
    EXPECT_NE(steps->find(words), std::string::npos) << words;
    EXPECT_NE(time->find(words), std::string::npos) << words;
  }
  EXPECT_NE(steps->find(">updates<"), std::string::npos);
  EXPECT_NE(time->find(">wall time, s<"), std::string::npos);
}

TEST_F(RealRuns, DoNotOverwriteExistingFolders) {
  ASSERT_TRUE(compare(options()));
  started_.clear();
  CompareOptions o = options();
  o.etas = {1, 2};
  const auto again = compare(o);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().context.find(
                "exact-eta2-seed1 already exists; resume the comparison with --resume"),
            std::string::npos);
  EXPECT_EQ(started_, Names{});  // before any run
}

TEST_F(RealRuns, AResumedComparisonRunsOnlyMissingRuns) {
  const auto first = compare(options());
  ASSERT_TRUE(first);
  fs::resize_file(fs::path(first->rows[1].folder) / "events.log", 5000);
  started_.clear();
  CompareOptions o = options();
  o.etas = {0, 2, 1};
  o.folders = CompareOptions::Folders::Resume;
  const auto second = compare(o);
  ASSERT_TRUE(second) << second.error().context;
  EXPECT_EQ(started_, (Names{"exact-eta2-seed1", "exact-eta1-seed1"}));
  ASSERT_EQ(second->rows.size(), 3U);
  EXPECT_EQ(second->rows[0].seconds, first->rows[0].seconds);
  EXPECT_EQ(second->rows[1].seconds,
            first->rows[1].seconds);  // the simulated world is deterministic
  EXPECT_NE(lines_[2].find("from an earlier comparison"), std::string::npos) << lines_[2];
  EXPECT_EQ(lines_[3].find("from an earlier comparison"), std::string::npos) << lines_[3];
}

TEST_F(RealRuns, ARunOfAnotherConfigurationIsRefused) {
  ASSERT_TRUE(compare(options()));
  started_.clear();
  CompareOptions o = options();
  o.folders = CompareOptions::Folders::Resume;
  o.steps = 31;
  const auto other = compare(o);
  ASSERT_FALSE(other);
  EXPECT_NE(
      other.error().context.find("config.yaml has `steps: 30`, but this comparison has `steps: "
                                 "31`; name another --out"),
      std::string::npos)
      << other.error().context;
  EXPECT_EQ(started_, Names{});
}

TEST_F(RealRuns, AFailureIsReportedWithTheOtherResults) {
  CompareOptions o = options();
  o.etas = {0, 1, 2};
  cannot_begin_ = "exact-eta0-seed1";
  ends_badly_ = "exact-eta1-seed1";
  const auto done = compare(o);
  ASSERT_TRUE(done) << done.error().context;
  EXPECT_EQ(done->rows[0].end, CompareEnd::Failed);
  EXPECT_EQ(done->rows[1].end, CompareEnd::Failed);
  EXPECT_EQ(done->rows[2].end, CompareEnd::Ran);
  const std::string text = compare_text(*done);
  EXPECT_NE(text.find("failed\n  exact 0, seed 1: no worker; " + done->rows[0].folder),
            std::string::npos)
      << text;
  EXPECT_NE(text.find("  exact 1, seed 1: out of luck; "), std::string::npos) << text;
  // With --resume they run again.
  cannot_begin_ = ends_badly_ = "";
  started_.clear();
  o.folders = CompareOptions::Folders::Resume;
  ASSERT_TRUE(compare(o));
  EXPECT_EQ(started_, (Names{"exact-eta0-seed1", "exact-eta1-seed1"}));
}

TEST_F(RealRuns, StoppingARunSkipsTheRest) {
  CompareOptions o = options();
  o.etas = {0, 1, 2};
  ends_badly_ = "exact-eta1-seed1";
  stopped_ = true;
  const auto done = compare(o);
  ASSERT_TRUE(done) << done.error().context;
  EXPECT_EQ(done->end, PolicyComparison::End::Stopped);
  EXPECT_EQ(started_, (Names{"exact-eta0-seed1", "exact-eta1-seed1"}));
  EXPECT_EQ(done->rows[0].end, CompareEnd::Ran);
  EXPECT_EQ(done->rows[1].end, CompareEnd::NotRun);
  EXPECT_EQ(done->rows[2].end, CompareEnd::NotRun);
  EXPECT_NE(compare_text(*done).find("not run\n  exact 1: stopped on request\n"),
            std::string::npos);
}

TEST_F(RealRuns, FolderNamesContainVariedValues) {
  CompareOptions o = options();
  o.etas = {2};
  o.vary = {parse_axis("--vary", "algorithm.learning_rate=1e-4,2e-4").value()};
  ASSERT_TRUE(compare(o));
  EXPECT_EQ(started_,
            (Names{"exact-eta2-algorithm.learning_rate=1e-4-seed1",
                   "exact-eta2-algorithm.learning_rate=2e-4-seed1"}));
}

}  // namespace
}  // namespace temper::study
