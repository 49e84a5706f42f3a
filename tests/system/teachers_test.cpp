// Runs with several teachers: each response is scored by the teacher of its problem.
#include "core/files.hpp"
#include "core/json_document.hpp"
#include "core/split.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "tests/system/harness.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <cstdlib>

namespace temper::test {
namespace {

namespace fs = std::filesystem;
namespace command = orchestrator::command;
namespace event = orchestrator::event;

using Teachers = SystemTest;

const Arguments kTwoTeachers = {
    kSlow,
    "reference.teachers={long: {}, short: {replicas: 2}}",
    "task.sources={two: {digits: 2, teacher: long}, one: {digits: 1, teacher: short}}"};

/// Batches that each actor was given to score.
std::map<std::string, std::size_t> batches(const std::vector<orchestrator::Record>& records) {
  const auto& actors = std::get<event::Started>(records.front().event).config->actors;
  std::map<std::string, std::size_t> out;
  for (const auto& record : records) {
    for (const auto& c : record.commands) {
      if (const auto* score = std::get_if<command::ScoreReference>(&c))
        ++out[actors[score->actor.value()].name];
    }
  }
  return out;
}

TEST_F(Teachers, AKilledWorkerOfOneIsReplacedAndEachScoresItsOwnResponses) {
  run(kTwoTeachers);
  await_version(4);
  ::kill(await_worker("reference-long-0"), SIGKILL);
  const Ended ended = current().wait();
  ASSERT_EQ(ended.status, 0) << ended.output;
  EXPECT_GE(count_events<event::ActorDown>(records()), 1U);
  expect_whole_run(24);  // The audit compares the teacher of each response with its reference.
  const auto given = batches(records());
  EXPECT_GT(given.at("reference-long-0"), 0U);
  EXPECT_GT(given.at("reference-short-0"), 0U);
  EXPECT_EQ(given.size() - given.count("reference-short-1"), 2U);
}

TEST_F(Teachers, AKilledHeadResumesWithThemAndNotWithOthers) {
  run(kTwoTeachers);
  await_version(8);
  current().signal(SIGKILL);
  current().wait();
  const auto refused = [&](const std::string& set) {
    return temper({"run", "--resume", run_dir().string(), "--set", set});
  };
  const Ended other = refused(
      "task.sources={two: {digits: 2, teacher: short}, "
      "one: {digits: 1, teacher: long}}");
  EXPECT_NE(other.status, 0);
  EXPECT_NE(other.output.find("task.sources.one.teacher: short -> long"), std::string::npos)
      << other.output;
  const Ended third =
      refused("reference.teachers={long: {model: elsewhere}, short: {replicas: 2}}");
  EXPECT_NE(third.status, 0);
  EXPECT_NE(third.output.find("reference.teachers.long.model"), std::string::npos) << third.output;
  resume({"reference.teachers.short.replicas=1"});
  const Ended ended = current().wait();
  ASSERT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

/// Eight problems: the first half of one teacher, the rest of the other.
std::string problems(const std::string& first, const std::string& second) {
  std::string text;
  for (int i = 0; i < 8; ++i) {
    text += fmt::format("{{\"prompt\": \"{}+1=\", \"answer\": \"{}\", \"teacher\": \"{}\"}}\n",
                        i,
                        i + 1,
                        i < 4 ? first : second);
  }
  return text;
}

TEST_F(Teachers, UnknownAndUnusedOnesAreReportedBeforeTheRunStarts) {
  const std::string file = (folder() / "problems.jsonl").string();
  ASSERT_TRUE(write_file_atomically(file, problems("math", "code")));
  const auto refused = [&](const std::string& teachers) {
    run({fmt::format("task={{kind: jsonl, path: {}, held_out: 0, teacher_column: teacher}}", file),
         "reference.teachers=" + teachers});
    const Ended ended = current().wait();
    EXPECT_NE(ended.status, 0);
    EXPECT_FALSE(fs::exists(run_dir() / "events.log"));
    return ended.output;
  };
  const std::string unknown = refused("{math: {}}");
  EXPECT_NE(unknown.find("problems.jsonl:5: `teacher`: expected one of `math` "
                         "(reference.teachers), found \"code\""),
            std::string::npos)
      << unknown;
  const std::string unused = refused("{math: {}, code: {}, third: {}}");
  EXPECT_NE(unused.find("reference.teachers.third: no training problem names this teacher"),
            std::string::npos)
      << unused;
  run({fmt::format("task={{kind: jsonl, path: {}, held_out: 0, teacher_column: teacher}}", file),
       "reference.teachers={math: {}, code: {}}"});
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
  EXPECT_EQ(batches(records()).size(), 2U);
}

constexpr std::string_view kTaught = R"(name: taught
policy: torch
steps: 2
task: {kind: jsonl, path: problems.jsonl, shuffle: false, held_out: 0, tokenizer: characters}
model: {hidden: 16, layers: 1, heads: 2, kv_heads: 1, ffn: 32, context: 16}
pretrain: {max_steps: 0, batch: 8, check_problems: 8}
sampling: {max_new_tokens: 4}
staleness: {bound: 0}
algorithm: {name: opd, kl: 0, groups_per_update: 4, responses_per_group: 4, minibatches: 1}
)";

class Taught : public NamedRunsTest {
 protected:
  Taught() : NamedRunsTest(kTaught) {}

  std::string model(const std::string& name) const { return (folder() / name).string(); }
  /// Makes a model of what a run started from.
  void export_start(const std::string& run, const std::string& name) {
    const Ended exported = as_built({"export", run_folder(run).string() + "@0", model(name)});
    EXPECT_EQ(exported.status, 0) << exported.output;
  }

  /// The four groups of the first step have problems of one teacher, those of the second of the
  /// other.
  void write_problems(const std::string& first, const std::string& second) const {
    EXPECT_TRUE(write_file_atomically(folder() / "problems.jsonl", problems(first, second)));
  }

  Ended as_built(const Arguments& arguments) {
    const auto environment = [cache = (folder() / "cache").string()] {
      ::setenv("TEMPER_CACHE", cache.c_str(), 1);
    };
    return Temper(arguments, {folder(), environment, kTemperAsBuilt}).wait();
  }

  struct Step {
    double kl = 0;  ///< Of the student to the teachers of the batch.
    double loss = 0;
  };
  /// The two steps of a run with these settings.
  std::vector<Step> steps_of(const std::string& name, const Arguments& sets) {
    Arguments more;
    for (const std::string& set : sets)
      more.insert(more.end(), {"--set", set});
    const Ended ended = as_built(arguments(name, more));
    EXPECT_EQ(ended.status, 0) << ended.output;
    for (const char* check : {"audit", "replay"}) {
      const Ended checked = as_built({check, run_folder(name).string()});
      EXPECT_EQ(checked.status, 0) << checked.output;
    }
    std::vector<Step> steps;
    const std::string metrics = read_file(run_folder(name) / "metrics.jsonl").value_or("");
    for (const std::string_view line : lines_of(metrics)) {
      if (line.empty())
        continue;
      const auto figures = parse_json(line);
      steps.push_back({figures["kl"].get<double>(), figures["loss"].get<double>()});
    }
    EXPECT_EQ(steps.size(), 2U);
    steps.resize(2);
    return steps;
  }
};

TEST_F(Taught, TheAdvantageOfEachProblemComesFromTheTeacherInItsColumn) {
  write_problems("same", "other");
  // `other` has weights from another seed, `same` those that the student starts from.
  const Ended made = as_built(arguments("made",
                                        {"--set",
                                         "seed=2",
                                         "--set",
                                         "steps=1",
                                         "--set",
                                         "algorithm={name: grpo, groups_per_update: 1}"}));
  ASSERT_EQ(made.status, 0) << made.output;
  export_start("made", "other");
  const auto alone = steps_of("alone", {"reference.model=" + model("other")});
  export_start("alone", "same");
  const Arguments two{
      "task.teacher_column=teacher",
      fmt::format("reference.teachers={{same: {{model: {}}}, other: {{model: {}}}}}",
                  model("same"),
                  model("other"))};
  // In the first step, the KL to `same` and every advantage are 0.
  const auto straight = steps_of("straight", two);
  EXPECT_LT(straight[0].kl, 1e-6);
  EXPECT_NEAR(straight[0].loss, 0, 1e-6);
  EXPECT_GT(straight[1].kl, 0.01);
  EXPECT_GT(straight[1].loss, 0.01);
  // With the column the other way round, the steps change places, and the first is that of a run
  // that has no teacher but `other`.
  write_problems("other", "same");
  const auto swapped = steps_of("swapped", two);
  EXPECT_GT(alone[0].kl, 0.01);
  EXPECT_NEAR(swapped[0].kl, alone[0].kl, 1e-6);
  EXPECT_NEAR(swapped[0].loss, alone[0].loss, 1e-6);
  EXPECT_LT(swapped[1].kl, alone[1].kl / 100);
}

}  // namespace
}  // namespace temper::test
