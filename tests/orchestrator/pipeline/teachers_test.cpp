// Several teachers: which actors they have, what `check` refuses, and the plan of simulated runs.
#include "orchestrator/pipeline/teachers.hpp"

#include "core/files.hpp"
#include "orchestrator/pipeline/changes.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <string>
#include <utility>
#include <vector>

namespace temper::orchestrator {
namespace {

std::string teacher_issues(const std::string& yaml) {
  return render(LoadedConfig("c.yaml", "policy: synthetic\n" + yaml, {}).issues());
}

void expect_teacher_issue(const std::string& yaml, const std::string& expected) {
  const std::string found = teacher_issues(yaml);
  EXPECT_NE(found.find(expected), std::string::npos)
      << "expected " << expected << "\nfound " << found;
}

const std::string kSources =
    "task: {sources: {one: {teacher: a}, two: {teacher: b}, more: {teacher: a}}}\n";

TEST(TeacherRules, AcceptTeachersBySourceAndByColumn) {
  EXPECT_EQ(teacher_issues(kSources + "reference: {teachers: {a: {}, b: {replicas: 2}}}\n"), "");
  EXPECT_EQ(teacher_issues("task: {kind: jsonl, path: x.jsonl, teacher_column: by}\n"
                           "reference: {teachers: {a: {}, b: {}}}\n"),
            "");
}

TEST(TeacherRules, BlameOnlyTheMistakeWithinTheTeachers) {
  const std::string found = teacher_issues("algorithm: {name: opd, kl: 0}\n" + kSources +
                                           "reference: {teachers: {a: {speed: 1}, b: {}}}\n");
  EXPECT_EQ(found.find("reference.model"), std::string::npos) << found;
  EXPECT_EQ(found.find("c.yaml:4: reference.teachers.a.speed: unknown key"), 0U) << found;
}

TEST(TeacherRules, RefuseAColumnThatHasTheProblem) {
  for (const std::string column : {"prompt", "answer"}) {
    expect_teacher_issue("task: {kind: jsonl, path: x.jsonl, teacher_column: " + column +
                             "}\nreference: {teachers: {a: {}, b: {}}}\n",
                         "task.teacher_column: expected a column of its own, found `" + column);
  }
}

TEST(Teachers, TheBusiestHasTheSourcesWithTheMostWeightForEachOfItsActors) {
  const auto share = [](const std::string& yaml) {
    return busiest_share(LoadedConfig("c.yaml", "policy: synthetic\n" + yaml, {}).config());
  };
  EXPECT_DOUBLE_EQ(share("reference: {replicas: 4}\n"), 0.25);
  EXPECT_EQ(share("algorithm: {kl: 0}\nreference: {replicas: 0}\n"), 0);
  const std::string sources =
      "task: {sources: {one: {teacher: a, weight: 1}, two: {teacher: b, weight: 3}}}\n";
  EXPECT_DOUBLE_EQ(share(sources + "reference: {teachers: {a: {}, b: {}}}\n"), 0.75);
  EXPECT_DOUBLE_EQ(share(sources + "reference: {teachers: {a: {}, b: {replicas: 6}}}\n"), 0.25);
}

TEST(TeacherRules, NameTheKeyWhatWasFoundAndWhatIsExpected) {
  expect_teacher_issue("task: {kind: jsonl, path: x.jsonl, teacher_column: by}\n",
                       "task.teacher_column: requires `reference.teachers`");
  expect_teacher_issue(kSources, "task.sources.one.teacher: requires `reference.teachers`");
  expect_teacher_issue("reference: {teachers: {a: {}}}\n",
                       "reference.teachers: requires `task.teacher_column`, or the key `teacher`");
  expect_teacher_issue(kSources + "reference: {model: x, teachers: {a: {}, b: {}}}\n",
                       "reference.model: excludes `reference.teachers`");
  expect_teacher_issue(kSources + "reference: {replicas: 0, teachers: {a: {}, b: {}}}\n",
                       "reference.replicas: must be at least 1 with `reference.teachers`");
  expect_teacher_issue(kSources + "reference: {teachers: {a: {}, math: {}}}\n",
                       "c.yaml:2: task.sources.two.teacher: expected one of `a`, `math` "
                       "(reference.teachers), found `b`");
  expect_teacher_issue(kSources + "reference: {teachers: {a: {}, b: {}, c: {}}}\n",
                       "reference.teachers.c: no source in `task.sources` names this teacher");
  expect_teacher_issue(
      "task: {sources: {one: {teacher: a}, two: {}}}\n"
      "reference: {teachers: {a: {}}}\n",
      "task.sources.two.teacher: required by `reference.teachers`");
  expect_teacher_issue(
      "task: {kind: jsonl, teacher_column: by, "
      "sources: {one: {path: x.jsonl, teacher: a}}}\n"
      "reference: {teachers: {a: {}}}\n",
      "task.sources.one.teacher: excludes `task.teacher_column`");
  expect_teacher_issue("task: {teacher_column: by}\nreference: {teachers: {a: {}}}\n",
                       "task.teacher_column: requires `task.kind: jsonl`");
  expect_teacher_issue(
      "task: {sources: {one: {teacher: a b}}}\n"
      "reference: {teachers: {a b: {}}}\n",
      "the name of a teacher must be 1 to 64 letters");
}

TEST(TeacherRules, AFileCanRemoveTheTeachersOfTheOneThatItExtends) {
  const test::TemporaryFolder folder;
  const auto put = [&](const std::string& name, const std::string& text) {
    ASSERT_TRUE(write_file_atomically(folder / name, text));
  };
  put("base.yaml",
      "policy: synthetic\n" + kSources + "reference: {teachers: {a: {}, b: {replicas: 2}}}\n");
  put("none.yaml", "extends: base.yaml\ntask: {sources: {}}\nreference: {teachers: {}}\n");
  const auto none = load_config(folder / "none.yaml");
  ASSERT_TRUE(none) << none.error().context;
  EXPECT_TRUE(none->reference.teachers.empty() && none->task.sources.empty());
  put("one.yaml",
      "extends: base.yaml\ntask: {sources: {two: null}}\nreference: {teachers: {b: null}}\n");
  const auto one = load_config(folder / "one.yaml");
  ASSERT_TRUE(one) << one.error().context;
  EXPECT_EQ(one->reference.teachers.size(), 1U);
  const std::vector<std::string> sets{"reference.teachers={}", "task.sources={}"};
  EXPECT_TRUE(load_config(folder / "base.yaml", sets)->reference.teachers.empty());
  const auto left = load_config(folder / "base.yaml", std::vector(sets.begin(), sets.begin() + 1));
  ASSERT_FALSE(left);
  EXPECT_NE(left.error().context.find("task.sources.one.teacher: requires `reference.teachers`"),
            std::string::npos)
      << left.error().context;
}

TEST(TeacherRules, BlameTheNumbersOfTeachersThatDoNotDivideTheCards) {
  const std::string simulated =
      "hardware: simulated\nplacement: {cards: 8, rollout_cards: 3, reference_cards: 2}\n"
      "simulation: {cluster: cm384, model: qwen2.5-0.5b, trainer: {tp: 2}}\nrollout: {replicas: "
      "3}\n";
  expect_teacher_issue(simulated + kSources + "reference: {teachers: {a: {}, b: {replicas: 2}}}\n",
                       "c.yaml:7: reference.teachers.b.replicas: the actors of all teachers "
                       "together must divide the 2 cards of the reference, so that all replicas "
                       "are equal; found 3 (a 1, b 2)");
  expect_teacher_issue(
      simulated + kSources + "reference: {replicas: 2, teachers: {a: {}, b: {}}}\n",
      "reference.replicas: the actors of all teachers together must divide the 2 "
      "cards of the reference, so that all replicas are equal; found 4 (a 2, b "
      "2)");
  expect_teacher_issue(simulated + "reference: {replicas: 3}\n",
                       "reference.replicas: must divide the 2 cards of the reference, so that all "
                       "replicas are equal; found 3");
}

TEST(TeacherRules, ComparesModelsAndEngines) {
  const std::string torch = "policy: torch\n" + kSources;
  const auto issues = [&](const std::string& teachers) {
    return render(LoadedConfig("c.yaml", torch + "reference: {" + teachers + "}\n", {}).issues());
  };
  EXPECT_NE(issues("teachers: {a: {model: x}, b: {}}")
                .find("reference.teachers.b.model: must name the model of the teacher"),
            std::string::npos);
  EXPECT_EQ(issues("engine: {kind: python, use: 'x:R'}, teachers: {a: {}, b: {}}"), "");
  EXPECT_NE(issues("engine: {kind: vllm, data: ['http://h:1']}, teachers: {a: {}, b: {}}")
                .find("reference.teachers.a: requires an `engine` of its own: a server has one "
                      "model"),
            std::string::npos);
  const std::string servers = issues(
      "teachers: {a: {engine: {kind: vllm, data: ['http://h:1']}}, "
      "b: {engine: {kind: vllm, data: ['http://h:2']}}}");
  EXPECT_EQ(servers, "");
  EXPECT_NE(issues("teachers: {a: {model: x, engine: {kind: python, use: none}}, b: {model: x}}")
                .find("reference.teachers.a.engine.use: must be `module:Class`"),
            std::string::npos);
}

TEST(TeacherRules, ATeacherOfASimulatedRunHasThePolicysShape) {
  const std::string simulated =
      "hardware: simulated\nplacement: {cards: 8, rollout_cards: 4, "
      "reference_cards: 2}\n" +
      kSources;
  expect_teacher_issue(simulated + "reference: {teachers: {a: {model: x}, b: {}}}\n",
                       "reference.teachers.a.model: requires `hardware: local`");
  expect_teacher_issue(
      "hardware: simulated\ntask: {kind: jsonl, path: x.jsonl, teacher_column: by}\n"
      "reference: {teachers: {a: {}}}\n",
      "task.teacher_column: requires `hardware: local`: a simulated run reads no problems");
}

TEST(TeacherRules, EachTeacherMayNameItsDevices) {
  const std::string base = kSources + "placement: {cards: 4, rollout: [0], trainer: [1]}\n";
  const LoadedConfig loaded("c.yaml",
                            "policy: synthetic\n" + base +
                                "reference: {teachers: {a: {cards: [2]}, "
                                "b: {cards: [3, 0], replicas: 2}}}\n",
                            {});
  EXPECT_EQ(render(loaded.issues()), "");
  const ResolvedPipeline pipeline = resolve_cards(loaded.config());
  std::map<std::string, std::vector<CardId>> cards;
  for (const ActorSpec& slot : pipeline.slots) {
    if (slot.teacher)
      cards[slot.name] = slot.cards;
  }
  EXPECT_EQ(cards,
            (std::map<std::string, std::vector<CardId>>{{"reference-a-0", {CardId(2)}},
                                                        {"reference-b-0", {CardId(3)}},
                                                        {"reference-b-1", {CardId(0)}}}));
  expect_teacher_issue(base + "reference: {teachers: {a: {cards: [2]}, b: {}}}\n",
                       "reference.teachers.b.cards: required, because another teacher names its "
                       "devices");
  expect_teacher_issue(base + "reference: {teachers: {a: {cards: [2]}, b: {cards: [2]}}}\n",
                       "card 2 is listed twice");
  expect_teacher_issue(base + "reference: {teachers: {a: {cards: [2]}, b: {cards: [4]}}}\n",
                       "reference.teachers.b.cards: must be below the number of cards");
}

TEST(Teachers, HaveActorsOfTheirOwnThatShareTheDevicesOfTheReference) {
  const LoadedConfig loaded("c.yaml",
                            "policy: synthetic\n" + kSources +
                                "placement: {cards: 5, rollout: [0], trainer: [1], "
                                "reference: [2, 3, 4]}\n"
                                "reference: {teachers: {b: {replicas: 2}, a: {}}}\n",
                            {});
  ASSERT_EQ(render(loaded.issues()), "");
  const ResolvedPipeline pipeline = resolve_cards(loaded.config());
  std::vector<std::pair<std::string, std::uint32_t>> actors;
  for (const ActorSpec& slot : pipeline.slots) {
    if (!slot.teacher)
      continue;
    EXPECT_EQ(slot.cards, std::vector{CardId(static_cast<std::uint32_t>(2 + actors.size()))});
    actors.emplace_back(slot.name, *slot.teacher);
  }
  EXPECT_EQ(actors,
            (std::vector<std::pair<std::string, std::uint32_t>>{
                {"reference-a-0", 0}, {"reference-b-0", 1}, {"reference-b-1", 1}}));
}

TEST(Teachers, OfASimulatedRunAreThoseOfItsSources) {
  const LoadedConfig loaded(
      "c.yaml",
      "hardware: simulated\npolicy: synthetic\nplacement: {cards: 8, rollout_cards: 4, "
      "reference_cards: 2}\ntask: {sources: {one: {teacher: b, weight: 3}, two: {teacher: a}}}\n"
      "reference: {teachers: {a: {}, b: {}}}\nsimulation: {cluster: cm384, model: qwen2.5-0.5b, "
      "trainer: {tp: 2}}\n",
      {});
  ASSERT_EQ(render(loaded.issues()), "");
  const SchedulerConfig config = scheduler_config(resolve(loaded.config()).value());
  ASSERT_TRUE(config.problems.teachers);
  EXPECT_EQ(config.problems.teachers->names, (std::vector<std::string>{"a", "b"}));
  ASSERT_EQ(config.problems.sources.size(), 2U);
  EXPECT_EQ(config.problems.sources[0].weight(0), 3);
  EXPECT_EQ(config.problems.teachers->of(0, 0), 1U);
  EXPECT_EQ(config.problems.teachers->of(1, 0), 0U);
}

TEST(Teachers, ResumeWithOtherNumbersAndEnginesButNotWithOthers) {
  const auto why = [](const std::string& key) { return refusal_of({key, "1", "2"}); };
  EXPECT_EQ(why("reference.teachers.a.replicas"), "");
  EXPECT_EQ(why("reference.teachers.a.engine.kind"), "");
  EXPECT_NE(why("reference.teachers.a.model"), "");
  EXPECT_NE(why("reference.teachers"), "");
  EXPECT_NE(why("task.sources.one.teacher"), "");
  EXPECT_NE(why("task.teacher_column"), "");
}

}  // namespace
}  // namespace temper::orchestrator
