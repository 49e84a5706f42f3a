#include "orchestrator/metrics/recorder.hpp"

#include "cli/run/report_command.hpp"
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "orchestrator/metrics/metric_table.hpp"
#include "orchestrator/record/event_log.hpp"
#include "tests/support/gunzip.hpp"
#include "tests/support/scheduler_world.hpp"
#include "tests/support/temporary_folder.hpp"
#include "tests/support/trace.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <set>
#include <sstream>

namespace temper::orchestrator {
namespace {

using nlohmann::json;

/// A random run, with synthetic spans for its trainer and engines, recorded into a folder.
struct RecordedRun {
  test::TemporaryFolder dir;
  Summary summary;

  explicit RecordedRun(std::uint64_t seed, TraceForm trace = TraceForm::Json) {
    Random random(seed, "recorder");
    SchedulerConfig config = testing::random_config(random);
    config.steps = 5;
    for (std::uint32_t a = 0; a < config.actors.size(); ++a)
      config.actors[a].cards = {CardId(a / 2)};
    auto recorder = RunRecorder::create(dir.path(), trace);
    auto log = EventLog::create(dir.path() / "events.log");
    EXPECT_TRUE(recorder && log);
    std::uint64_t sequence = 0;
    const auto write = [&](Time time, const Event& event, const Commands& commands) {
      const Record record{sequence++, time, event, commands};
      (*recorder)->feed(record);
      EXPECT_TRUE(log->append(record).has_value());
    };
    testing::World world(config, {.crash = 0.01, .failed_sample = 0.1}, seed);
    Time before{};
    world.on_record = [&](const Record& r) {
      write(r.time, r.event, r.commands);
      if (const auto* e = std::get_if<event::Trained>(&r.event)) {
        write(r.time, event::Activity{e->actor, {{actors::CardState::Train, before, r.time}}}, {});
        before = r.time;
      }
      if (const auto* e = std::get_if<event::Generated>(&r.event)) {
        const Time begin = std::max(Time{}, r.time - Duration(100000));
        write(r.time, event::Activity{e->actor, {{actors::CardState::Decode, begin, r.time}}}, {});
      }
    };
    world.play();
    summary = *(*recorder)->close({"run", 3, log->hash()});
    EXPECT_TRUE(write_file_atomically(dir.path() / "config.yaml", "name: run\nseed: 3\n"));
  }
};

TEST(RunRecorder, TheTraceIsJsonAndItsCardsCoverTheWholeTime) {
  const RecordedRun run(1);
  const json trace = parse_json_or_throw(*read_file(run.dir.path() / "trace.json"));
  std::set<std::string> tracks, instants, counters;
  for (const json& e : trace) {
    const std::string ph = e.at("ph");
    if (ph == "M" && e.at("name") == "thread_name")
      tracks.insert(e.at("args").at("name"));
    if (ph == "i")
      instants.insert(e.at("name"));
    if (ph == "C")
      counters.insert(e.at("name"));
  }
  const auto ends = test::check_card_tracks(trace);
  ASSERT_EQ(ends.size(), run.summary.cards);
  for (const auto& [card, end] : ends)
    EXPECT_EQ(end, run.summary.utilization.wall_ns) << card;
  EXPECT_TRUE(ends.begin()->first.starts_with("card 0: rollout-0")) << ends.begin()->first;
  EXPECT_TRUE(tracks.contains("rollout-0"));
  EXPECT_TRUE(instants.contains("update") && instants.contains("weights"));
  EXPECT_TRUE(instants.contains("finished"));
  std::set<std::string> expected{"groups", "slots"};
  for (const Metric& metric : metric_table()) {
    const bool has_value =
        metric.value != nullptr ||
        (metric.if_any != nullptr && run.summary.last_step.contains(std::string(metric.name)));
    if (has_value && !metric.place.group.empty())
      expected.emplace(metric.name);
  }
  EXPECT_EQ(counters, expected);
}

TEST(RunRecorder, TheTraceNamesWhatIsAlikeAlikeAndSaysInArgumentsHowItDiffers) {
  const RecordedRun run(1);
  std::map<std::string, std::string> counters;
  std::uint64_t updates = 0;
  for (const json& e : parse_json_or_throw(*read_file(run.dir.path() / "trace.json"))) {
    const std::string name = e.at("name");
    if (e.at("ph") == "i" && name == "update") {
      EXPECT_EQ(e.at("args").at("version").get<std::uint64_t>(), ++updates);
      EXPECT_TRUE(e.at("args").contains("tokens"));
    } else if (e.at("ph") == "C") {
      EXPECT_NE(std::exchange(counters[name], e.at("args").dump()), e.at("args").dump())
          << name << " repeats its value";
    }
  }
  EXPECT_EQ(updates, run.summary.steps);
}

TEST(RunRecorder, TheCompressedTraceIsTheSame) {
  const RecordedRun plain(1);
  const RecordedRun compressed(1, TraceForm::Gzip);
  EXPECT_EQ(test::gunzip(compressed.dir.path() / "trace.json.gz"),
            *read_file(plain.dir.path() / "trace.json"));
  EXPECT_FALSE(std::filesystem::exists(compressed.dir.path() / "trace.json"));
}

TEST(RunRecorder, TheTraceOfARunWithoutAnyRecordIsJson) {
  const test::TemporaryFolder dir;
  auto recorder = RunRecorder::create(dir.path());
  ASSERT_TRUE(recorder.has_value());
  ASSERT_TRUE((*recorder)->close({}).has_value());
  EXPECT_TRUE(parse_json_or_throw(*read_file(dir.path() / "trace.json")).empty());
  EXPECT_FALSE(parse_json_or_throw(*read_file(dir.path() / "summary.json")).at("ok").get<bool>());
}

TEST(RunRecorder, ThereIsALinePerUpdateWithSharesThatAddUp) {
  const RecordedRun run(2);
  std::istringstream lines(*read_file(run.dir.path() / "metrics.jsonl"));
  std::string text;
  std::uint64_t step = 0;
  while (std::getline(lines, text)) {
    const json line = parse_json_or_throw(text);
    EXPECT_EQ(line.at("step").get<std::uint64_t>(), ++step);
    double sum = 0;
    for (const json& share : line.at("states")) {
      sum += share.get<double>();
      EXPECT_GE(share.get<double>(), 0);
    }
    EXPECT_NEAR(sum, 1, 1e-3);
    for (const Metric& metric : metric_table()) {
      if (metric.value == nullptr)
        continue;
      const json::json_pointer path("/" + std::string(metric.name));
      ASSERT_TRUE(line.contains(path)) << metric.name;
      if (step == run.summary.steps) {
        EXPECT_EQ(line.at(path), run.summary.last_step.at(std::string(metric.name))) << metric.name;
      }
    }
  }
  EXPECT_EQ(step, run.summary.steps);
}

TEST(MetricsFile, EveryUpdateHasALineAndItCountsTheGroupsOfThatUpdateAlone) {
  const test::TemporaryFolder folder;
  std::uint64_t resumes = 0;
  for (std::uint64_t seed = 1; seed < 40; ++seed) {
    Random random(seed, "metrics_file");
    const SchedulerConfig config = testing::random_config(random);
    RunMetrics metrics;
    MetricsFile file = MetricsFile::create(folder / "metrics.jsonl").value();
    std::uint64_t before = 0;
    file.set_on_line([&](const MetricsLine& line) {
      const Update& update = line.update;
      EXPECT_LE(update.version.value(), before + 1) << "seed " << seed;
      EXPECT_EQ(update.groups.trained - update.before.groups.trained,
                static_cast<std::uint64_t>(config.groups_per_update))
          << "seed " << seed << ", step " << update.version.value();
      before = update.version.value();
      resumes = std::max(resumes, line.resumes);
    });
    testing::World world(config, {.trainer_crash = 0.1}, seed);
    world.on_record = [&](const Record& record) {
      metrics.feed(record);
      EXPECT_TRUE(file.feed(record, metrics));
    };
    const auto played = world.play();
    EXPECT_TRUE(file.close(metrics));
    EXPECT_EQ(before, played.audit.steps) << "seed " << seed;
  }
  EXPECT_GT(resumes, 0U) << "no run was resumed";
}

TEST(Report, AgreesWithSummaryJsonByteForByte) {
  for (std::uint64_t seed = 1; seed < 6; ++seed) {
    const RecordedRun run(seed);
    std::ostringstream out, err;
    ASSERT_EQ(
        cli::run_report({run.dir.path().string(), cli::ReportOptions::Format::Json}, out, err), 0);
    EXPECT_EQ(out.str(), *read_file(run.dir.path() / "summary.json"));
    EXPECT_EQ(err.str(), "");
  }
}

TEST(Report, HoldsARunToWhatIsRequiredOfItsFigures) {
  const RecordedRun run(1);
  const auto code = [&](std::vector<std::string> required) {
    std::ostringstream out, err;
    cli::ReportOptions options{run.dir.path().string()};
    options.required = std::move(required);
    const int ended = cli::run_report(options, out, err);
    EXPECT_EQ(err.str().empty(), ended == 0) << err.str();
    return ended;
  };
  const std::string steps = std::to_string(run.summary.steps);
  EXPECT_EQ(code({"steps=" + steps, "steps>=" + steps, "utilization.busy>0"}), 0);
  EXPECT_EQ(code({"utilization.busy<=1", "steps<" + steps}), 3);
  for (const char* wrong : {"steps", "steps>x", "stepz>1", "name=1", "utilization>0", ">=1"})
    EXPECT_EQ(code({wrong}), 2) << wrong;
}

TEST(Report, TheTextNamesOutcomeRewardAndCards) {
  const RecordedRun run(1);
  std::ostringstream out, err;
  ASSERT_EQ(cli::run_report({run.dir.path().string(), cli::ReportOptions::Format::Text}, out, err),
            0);
  for (const char* part : {"run: finished after 5 steps", "reward", "card 0", "staleness"})
    EXPECT_NE(out.str().find(part), std::string::npos) << out.str();
}

TEST(Report, AFolderWithoutALogIsAnError) {
  const test::TemporaryFolder dir;
  std::ostringstream out, err;
  EXPECT_EQ(cli::run_report({dir.path().string()}, out, err), 2);
  EXPECT_NE(err.str().find("events.log"), std::string::npos);
}

}  // namespace
}  // namespace temper::orchestrator
