// Sweeps of real runs: folders, resuming, failures, learning figures. Instead of processes, a
// scheduler in a simulated world writes the log of each run.
#include "study/sweep/sweep_runs.hpp"

#include "core/files.hpp"
#include "core/yaml.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "study/sweep/sweep_report.hpp"
#include "tests/study/sweep/sweep_of.hpp"
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
                fmt::format("sweep_runs_{}", static_cast<long>(::getpid()))) {
    fs::remove_all(folder_);
    EXPECT_TRUE(make_folder(folder_));
    EXPECT_TRUE(write_file_atomically(folder_ / "local.yaml", kLocal));
  }
  ~RealRuns() override { fs::remove_all(folder_); }

  static std::vector<SweepAxis> bounds(const std::string& values) {
    return {parse_axis("--over", "staleness.rule=exact").value(),
            parse_axis("--over", "staleness.bound=" + values).value()};
  }

  SweepOptions options() {
    SweepOptions o;
    o.config = orchestrator::ConfigFile::read(folder_ / "local.yaml").value();
    o.over = bounds("0,2");
    o.out = folder_ / "out";
    o.start_run = [this](const PipelineConfig& config, const auto& on_update) {
      return start_run(config, on_update);
    };
    o.on_line = [this](SweepOptions::Line line, const std::string& text) {
      if (line == SweepOptions::Line::Lasting)
        lines_.push_back(text);
    };
    return o;
  }

  /// Update v of a run with bound b earns min(1, v / 20) - b / 100.
  Result<RunEnd> start_run(const PipelineConfig& config,
                           const std::function<void(const RunMetrics&)>& on_update) {
    started_.push_back(fs::path(config.run_dir).filename().string());
    if (started_.back() == cannot_begin_)
      return invalid_input("no worker");
    const RunDir run_dir(config.run_dir);
    if (fs::exists(run_dir.file("events.log")))
      resumed_.push_back(started_.back());
    fs::remove_all(config.run_dir);
    TEMPER_TRY_STATUS(run_dir.create());
    TEMPER_TRY_STATUS(write_file_atomically(run_dir.file("config.yaml"), to_yaml(config)));
    TEMPER_TRY(EventLog log, EventLog::create(run_dir.file("events.log")));
    RunMetrics metrics;
    orchestrator::testing::World world(scheduler_config(resolve_cards(config)), {}, config.seed);
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
  std::vector<std::string> started_, resumed_, lines_;
  std::string cannot_begin_, ends_badly_;
  bool stopped_ = false;
};

using Names = std::vector<std::string>;

TEST_F(RealRuns, HaveTheirOwnFoldersAndFiguresFromTheirLogs) {
  SweepOptions o = options();
  o.target_reward = 0.91;
  const auto done = sweep_of(o);
  ASSERT_TRUE(done) << done.error().context;
  EXPECT_EQ(started_, (Names{"rule=exact-bound=0-seed1", "rule=exact-bound=2-seed1"}));
  EXPECT_EQ(done->time, Sweep::Time::Wall);
  ASSERT_EQ(done->cells.size(), 2U);
  for (const SweepCell& cell : done->cells) {
    const SweepRun& row = cell.runs.front();
    const double bound = std::stod(cell.values[1]);
    EXPECT_EQ(row.end, SweepEnd::Ran);
    EXPECT_EQ(row.updates, 30U);
    EXPECT_LE(static_cast<double>(row.staleness_max), bound);
    EXPECT_GT(row.seconds, 0);
    // The last three of thirty earn 1 - bound / 100.
    EXPECT_DOUBLE_EQ(row.final_reward.value(), 1 - bound / 100);
    EXPECT_TRUE(fs::exists(fs::path(row.folder) / "events.log"));
    EXPECT_EQ(row.begun_length, 0);  // unknown
  }
  // Mean of updates 15 to 24 of the first: ((15 + ... + 20) / 20 + 4) / 10 = 0.925, of 14 to 23
  // 0.895. Of the second 0.02 less; of its updates 16 to 25 0.95 - 0.02.
  EXPECT_EQ(done->cells[0].runs[0].steps_to_target, 24U);
  EXPECT_EQ(done->cells[1].runs[0].steps_to_target, 25U);
  EXPECT_EQ(lines_.size(), 2U);
  EXPECT_NE(lines_[1].find("2 of 2  rule=exact bound=2 seed 1: 30 updates in"), std::string::npos);
  EXPECT_NE(lines_[1].find("final reward 0.980"), std::string::npos) << lines_[1];
}

TEST_F(RealRuns, ScoresOnHeldOutProblemsAreInTheTable) {
  SweepOptions o = options();
  EXPECT_EQ(sweep_text(sweep_of(o).value()).find("held-out"), std::string::npos);
  o.out = folder_ / "evaluated";
  o.sets = {"evaluation.every=10", "evaluation.problems=4", "task.held_out=0.1"};
  const auto done = sweep_of(o);
  ASSERT_TRUE(done) << done.error().context;
  for (const SweepCell& cell : done->cells) {
    const SweepRun& run = cell.runs.front();
    ASSERT_TRUE(run.held_out && run.best_held_out);
    EXPECT_GE(*run.best_held_out, *run.held_out);
  }
  const std::string text = sweep_text(*done);
  EXPECT_NE(text.find("| held-out | best held-out |"), std::string::npos) << text;
  EXPECT_NE(text.find("pass@1 of the last evaluation"), std::string::npos) << text;
}

TEST_F(RealRuns, LearningFiguresAreInTheTableAndThePlots) {
  SweepOptions o = options();
  o.seeds = {1, 2};
  o.target_reward = 0.984;
  const auto done = sweep_of(o);
  ASSERT_TRUE(done);
  const std::string text = sweep_text(*done);
  EXPECT_NE(text.find("| final reward | steps to 0.984 |  time to 0.984, s |"), std::string::npos)
      << text;
  // Updates 18 to 27 earn ((18 + 19 + 20) / 20 + 7) / 10 = 0.985, those before less.
  EXPECT_NE(text.find("|        1.000 |             27 |"), std::string::npos) << text;
  EXPECT_NE(text.find("|        0.980 |              - |                 - |"), std::string::npos)
      << text;
  const auto steps = rewards_svg(*done, RewardAxis::Steps, "reward");
  const auto time = rewards_svg(*done, RewardAxis::Time, "reward");
  ASSERT_TRUE(steps && time);
  for (const char* words : {">bound=0<", ">bound=2<", ">reward, mean of 10 updates<"}) {
    EXPECT_NE(steps->find(words), std::string::npos) << words;
    EXPECT_NE(time->find(words), std::string::npos) << words;
  }
  EXPECT_NE(steps->find(">updates<"), std::string::npos);
  EXPECT_NE(time->find(">wall time, s<"), std::string::npos);
}

TEST_F(RealRuns, DoNotOverwriteExistingFolders) {
  ASSERT_TRUE(sweep_of(options()));
  started_.clear();
  SweepOptions o = options();
  o.over = bounds("1,2");
  const auto again = sweep_of(o);
  ASSERT_FALSE(again);
  EXPECT_NE(again.error().context.find(
                "rule=exact-bound=2-seed1 already exists; resume the sweep with --resume"),
            std::string::npos);
  EXPECT_EQ(started_, Names{});  // before any run
}

TEST_F(RealRuns, AResumedSweepRunsOnlyMissingRuns) {
  const auto first = sweep_of(options());
  ASSERT_TRUE(first);
  fs::resize_file(fs::path(first->cells[1].runs[0].folder) / "events.log", 5000);
  started_.clear();
  SweepOptions o = options();
  o.over = bounds("0,2,1");
  o.folders = SweepOptions::Folders::Resume;
  const auto second = sweep_of(o);
  ASSERT_TRUE(second) << second.error().context;
  EXPECT_EQ(started_, (Names{"rule=exact-bound=2-seed1", "rule=exact-bound=1-seed1"}));
  EXPECT_EQ(resumed_, Names{"rule=exact-bound=2-seed1"}) << "its folder was left as it was";
  ASSERT_EQ(second->cells.size(), 3U);
  EXPECT_EQ(second->cells[0].runs[0].seconds, first->cells[0].runs[0].seconds);
  EXPECT_EQ(second->cells[1].runs[0].seconds,
            first->cells[1].runs[0].seconds);  // the simulated world is deterministic
  EXPECT_NE(lines_[2].find("from an earlier sweep"), std::string::npos) << lines_[2];
  EXPECT_EQ(lines_[3].find("from an earlier sweep"), std::string::npos) << lines_[3];
}

TEST_F(RealRuns, ARunOfAnotherConfigurationIsRefused) {
  ASSERT_TRUE(sweep_of(options()));
  started_.clear();
  SweepOptions o = options();
  o.folders = SweepOptions::Folders::Resume;
  o.steps = 31;
  const auto other = sweep_of(o);
  ASSERT_FALSE(other);
  EXPECT_NE(other.error().context.find("config.yaml has `steps: 30`, but this sweep has `steps: "
                                       "31`; name another --out"),
            std::string::npos)
      << other.error().context;
  EXPECT_EQ(started_, Names{});
}

TEST_F(RealRuns, AFailureIsReportedWithTheOtherResults) {
  SweepOptions o = options();
  o.over = bounds("0,1,2");
  cannot_begin_ = "rule=exact-bound=0-seed1";
  ends_badly_ = "rule=exact-bound=1-seed1";
  const auto done = sweep_of(o);
  ASSERT_TRUE(done) << done.error().context;
  EXPECT_EQ(done->cells[0].runs[0].end, SweepEnd::Failed);
  EXPECT_EQ(done->cells[1].runs[0].end, SweepEnd::Failed);
  EXPECT_EQ(done->cells[2].runs[0].end, SweepEnd::Ran);
  const std::string text = sweep_text(*done);
  EXPECT_NE(
      text.find("failed\n  rule=exact bound=0 seed 1: no worker; " + done->cells[0].runs[0].folder),
      std::string::npos)
      << text;
  EXPECT_NE(text.find("  rule=exact bound=1 seed 1: out of luck; "), std::string::npos) << text;
  // With --resume they run again.
  cannot_begin_ = ends_badly_ = "";
  started_.clear();
  o.folders = SweepOptions::Folders::Resume;
  ASSERT_TRUE(sweep_of(o));
  EXPECT_EQ(started_, (Names{"rule=exact-bound=0-seed1", "rule=exact-bound=1-seed1"}));
}

TEST_F(RealRuns, StoppingARunSkipsTheRest) {
  SweepOptions o = options();
  o.over = bounds("0,1,2");
  ends_badly_ = "rule=exact-bound=1-seed1";
  stopped_ = true;
  const auto done = sweep_of(o);
  ASSERT_TRUE(done) << done.error().context;
  EXPECT_EQ(done->end, Sweep::End::Stopped);
  EXPECT_EQ(started_, (Names{"rule=exact-bound=0-seed1", "rule=exact-bound=1-seed1"}));
  EXPECT_EQ(done->cells[0].runs[0].end, SweepEnd::Ran);
  EXPECT_EQ(done->cells[1].runs[0].end, SweepEnd::NotRun);
  EXPECT_EQ(done->cells[2].runs[0].end, SweepEnd::NotRun);
  EXPECT_NE(sweep_text(*done).find("not run\n  rule=exact bound=1: stopped on request\n"),
            std::string::npos);
}

TEST_F(RealRuns, ARowSaysOfHowManySeedsItIs) {
  SweepOptions o = options();
  o.seeds = {1, 2};
  cannot_begin_ = "rule=exact-bound=2-seed2";
  const std::string text = sweep_text(sweep_of(o).value());
  EXPECT_NE(text.find("means over 2 seeds"), std::string::npos);
  EXPECT_NE(text.find("\nrule=exact bound=2: 1 of 2 seeds.\n"), std::string::npos) << text;
  EXPECT_EQ(text.find("rule=exact bound=0: "), std::string::npos) << text;
}

TEST_F(RealRuns, AStoppedSweepNamesTheSeedsThatDidNotRun) {
  SweepOptions o = options();
  o.seeds = {1, 2};
  ends_badly_ = "rule=exact-bound=0-seed2";
  stopped_ = true;
  const std::string text = sweep_text(sweep_of(o).value());
  EXPECT_NE(text.find("not run\n  rule=exact bound=0 seed 2: stopped on request\n"
                      "  rule=exact bound=2: stopped on request\n"),
            std::string::npos)
      << text;
}

TEST_F(RealRuns, FolderNamesContainVariedValues) {
  SweepOptions o = options();
  o.over = bounds("2");
  o.over.push_back(parse_axis("--over", "algorithm.learning_rate=1e-4,2e-4").value());
  ASSERT_TRUE(sweep_of(o));
  EXPECT_EQ(started_,
            (Names{"rule=exact-bound=2-learning_rate=1e-4-seed1",
                   "rule=exact-bound=2-learning_rate=2e-4-seed1"}));
}

}  // namespace
}  // namespace temper::study
