// A task with several sources: names, columns, numbers and held-out problems.
#include "actors/task/prompts.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <fstream>
#include <set>

namespace temper::actors {
namespace {

std::string file_of(const std::string& name, const std::string& text) {
  const std::string path = test::temporary_file(name);
  std::ofstream(path) << text;
  return path;
}

TaskConfig two_sums() {
  TaskConfig task;
  task.sources["long"].digits = 2;
  task.sources["short"].digits = 1;
  return task;
}

TEST(SeveralSources, AreSortedByNameAndEachHasItsOwnProblems) {
  const auto source = make_prompt_source(two_sums(), 1);
  ASSERT_TRUE(source);
  const auto sets = (*source)->sets();
  ASSERT_EQ(sets.size(), 2U);
  EXPECT_EQ(sets[0].name, "long");
  EXPECT_EQ(sets[0].problems, 9000U);
  EXPECT_EQ(sets[1].problems, 89U);
  EXPECT_EQ((*source)->problem(0, 17).prompt.size(), 6U);
  const Problem problem = (*source)->problem(1, 17);
  EXPECT_EQ(problem.prompt.size(), 4U);
  EXPECT_EQ(problem.source, "short");
  EXPECT_EQ(problem.columns, R"({"source":"short"})");
  EXPECT_EQ((*source)->longest_prompt(Tokenizer::for_task({})).value(), Tokens(6));
}

TEST(SeveralSources, HoldOutWhatEachHoldsOutAlternatelyAndEachProblemOnce) {
  const auto source = make_prompt_source(two_sums(), 1);
  ASSERT_TRUE(source);
  const std::uint64_t size = (*source)->held_out_size();
  EXPECT_EQ(size, 1000U + 11);
  EXPECT_EQ((*source)->sets()[0].held_out, 1000U);
  EXPECT_EQ((*source)->sets()[1].held_out, 11U);
  std::set<std::string> prompts;
  for (std::uint64_t i = 0; i < size; ++i) {
    const Problem problem = (*source)->held_out(i);
    prompts.insert(problem.prompt);
    if (i < 22) {
      EXPECT_EQ(problem.source, i % 2 == 0 ? "long" : "short");
    }
  }
  EXPECT_EQ(prompts.size(), size);
  EXPECT_EQ((*source)->held_out(size), (*source)->held_out(0));
}

TEST(SeveralSources, ReadFilesWithColumnsOfTheirOwn) {
  TaskConfig task;
  task.kind = TaskKind::Jsonl;
  task.held_out = 0;
  task.sources["a"].path =
      file_of("a.jsonl", "{\"prompt\":\"1+1=\",\"answer\":\"2\",\"level\":3}\n");
  task.sources["b"].path = file_of("b.jsonl", "{\"question\":\"Two?\",\"answer\":\"#### 2\"}\n");
  const auto source = make_prompt_source(task, 1);
  ASSERT_TRUE(source) << source.error().context;
  EXPECT_EQ((*source)->problem(0, 0),
            (Problem{"1+1=", "2", R"({"level":3,"source":"a"})", {}, "a"}));
  EXPECT_EQ((*source)->problem(1, 0), (Problem{"Two?", "2", R"({"source":"b"})", {}, "b"}));
}

TEST(SeveralSources, NameTheFileAndLineOfAColumnThatIsTakenAndOfAMissingFile) {
  TaskConfig task;
  task.kind = TaskKind::Jsonl;
  task.held_out = 0;
  task.sources["a"].path =
      file_of("c.jsonl", "\n{\"prompt\":\"1+1=\",\"answer\":\"2\",\"source\":\"web\"}\n");
  const auto taken = make_prompt_source(task, 1);
  ASSERT_FALSE(taken);
  EXPECT_NE(taken.error().context.find("c.jsonl:2: the column `source` is the name of the source"),
            std::string::npos)
      << taken.error().context;
  task.sources["a"].path = "no-such.jsonl";
  const auto missing = make_prompt_source(task, 1);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().context.find("no-such.jsonl"), std::string::npos);
}

TEST(SeveralSources, HoldOutTheSameTextWhicheverSourceHasIt) {
  std::string lines;
  for (int i = 0; i < 200; ++i)
    lines += fmt::format("{{\"prompt\":\"{}+1=\",\"answer\":\"{}\"}}\n", i, i + 1);
  TaskConfig task;
  task.kind = TaskKind::Jsonl;
  task.held_out = 0.3;
  task.sources["a"].path = file_of("d.jsonl", lines);
  task.sources["b"].path = file_of("e.jsonl", lines);
  const auto source = make_prompt_source(task, 1);
  ASSERT_TRUE(source);
  std::set<std::string> held;
  for (std::uint64_t i = 0; i < (*source)->held_out_size(); ++i)
    held.insert((*source)->held_out(i).prompt);
  EXPECT_GT(held.size(), 30U);
  for (std::size_t set = 0; set < 2; ++set) {
    for (std::uint64_t i = 0; i < (*source)->sets()[set].problems; ++i)
      EXPECT_FALSE(held.contains((*source)->problem(set, i).prompt));
  }
}

TEST(SeveralSources, AShuffleThatIsOffKeepsTheOrderOfTheFile) {
  TaskConfig task;
  task.kind = TaskKind::Jsonl;
  task.held_out = 0;
  task.shuffle = false;
  task.path = file_of("f.jsonl",
                      "{\"prompt\":\"a\",\"answer\":\"1\"}\n{\"prompt\":\"b\",\"answer\":\"2\"}\n");
  const auto source = make_prompt_source(task, 1);
  ASSERT_TRUE(source);
  EXPECT_EQ((*source)->train(0).prompt + (*source)->train(1).prompt + (*source)->train(2).prompt,
            "aba");
}

}  // namespace
}  // namespace temper::actors
