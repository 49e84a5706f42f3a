#include "actors/task/internal/jsonl.hpp"

#include "actors/task/internal/text.hpp"
#include "core/random.hpp"
#include "core/split.hpp"
#include "tests/support/temporary_folder.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <set>

namespace temper::actors {
namespace {

Result<std::vector<Problem>> problems_of(std::string_view name,
                                         std::string_view text,
                                         AnswerRule rule = AnswerRule::Any) {
  TEMPER_TRY(auto rows, parse_jsonl(name, text, rule));
  std::vector<Problem> problems;
  for (JsonlRow& row : rows)
    problems.push_back(std::move(row.problem));
  return problems;
}

std::string error_of(std::string_view text) {
  const auto problems = problems_of("d.jsonl", text);
  EXPECT_FALSE(problems);
  return problems ? std::string() : problems.error().context;
}

TEST(Jsonl, ReadsBothFormsAndSkipsBlankLines) {
  const auto problems = problems_of("d.jsonl",
                                    R"({"prompt": "2+2=", "answer": "4", "level": 3}

{"question": "How many?", "answer": "10 * 123 = 1,230\n#### 1,230"}
  {"prompt": "Grüße", "answer": ""})"
                                    "\r\n\t\n");
  ASSERT_TRUE(problems) << problems.error().context;
  EXPECT_EQ(*problems,
            (std::vector<Problem>{
                {"2+2=", "4", R"({"level":3})"}, {"How many?", "1230"}, {"Grüße", ""}}));
}

TEST(Jsonl, NamesEachMalformedLineWithItsNumberAndReason) {
  const std::string errors = error_of(
      "{\"prompt\": \"a\", \"answer\": \"b\"}\n"
      "{\"prompt\": \"a\"}\n"
      "{\"prompt\": 3, \"answer\": \"b\"}\n"
      "{\"answer\": \"b\"}\n"
      "\n"
      "{\"prompt\": \"  \", \"answer\": \"b\"}\n"
      "[1, 2]\n"
      "{\"question\": \"q\", \"answer\": \"12\"}\n"
      "{\"prompt\": \"\xff\", \"answer\": \"b\"}\n"
      "{\"question\": \"q\", \"answer\": \"#### \"}\n"
      "{\"prompt\": \"a\", \"answer\": null}");
  EXPECT_EQ(
      errors,
      "d.jsonl:2: `answer` is missing; found `prompt`\n"
      "d.jsonl:3: `prompt`: expected text, found number\n"
      "d.jsonl:4: `prompt` is missing; found `answer`\n"
      "d.jsonl:6: `prompt` is empty\n"
      "d.jsonl:7: expected an object, found array\n"
      "d.jsonl:8: `answer` has no `####` before its result; if it is the result itself, rename "
      "`question` to `prompt`\n"
      "d.jsonl:9: byte 13 is not UTF-8\n"
      "d.jsonl:10: `answer`: expected a result after `####`, found none\n"
      "d.jsonl:11: `answer`: expected text, found null");
  EXPECT_EQ(error_of("{\"prompt\": \"a\", ").rfind("d.jsonl:1: not JSON: column ", 0), 0U);
}

TEST(Jsonl, ListsTwentyInvalidLinesAndCountsTheRest) {
  std::string text;
  for (int i = 0; i < 33; ++i)
    text += "oops\n";
  const std::string errors = error_of(text);
  EXPECT_EQ(std::count(errors.begin(), errors.end(), '\n'), 20);
  EXPECT_NE(errors.find("d.jsonl:20: "), std::string::npos);
  EXPECT_EQ(errors.find("d.jsonl:21: "), std::string::npos);
  EXPECT_NE(errors.find("13 more"), std::string::npos);
}

TEST(Jsonl, RejectsAnOverlongLine) {
  const std::string line =
      fmt::format(R"({{"prompt": "{}", "answer": "a"}})", std::string(kLongestLine, 'x'));
  EXPECT_EQ(
      error_of(line),
      fmt::format(
          "d.jsonl:1: expected at most {} bytes per line, found {}", kLongestLine, line.size()));
}

TEST(Jsonl, RejectsAFileWithoutProblems) {
  EXPECT_TRUE(error_of("").starts_with("d.jsonl: the file is empty; expected "));
  EXPECT_TRUE(error_of("\n \r\n").starts_with("d.jsonl: every line is blank; expected "));
}

TEST(Jsonl, ChecksAnswersAgainstTheVerifiersRule) {
  struct Case {
    const char* answer;
    bool text;    ///< Acceptable if any text is required.
    bool number;  ///< Acceptable if a number is required.
  };
  const Case cases[] = {{"7", true, true},
                        {"-3.5", true, true},
                        {"1,234", true, true},
                        {"it is 12.", true, true},
                        {"#### 5", true, true},
                        {"1e-3", true, true},
                        {"0", true, true},
                        {"seven", true, false},
                        {"yes", true, false},
                        {"-", true, false},
                        {"nan", true, false},
                        {"1e999", true, false},
                        {"#### none, though 5 stood before", true, true},
                        {"x #### y", true, false},
                        {"", false, false},
                        {" ", false, false},
                        {"\\t\\n", false, false}};
  for (const Case& c : cases) {
    const std::string text = fmt::format(
        "{{\"prompt\": \"a\", \"answer\": \"1\"}}\n{{\"prompt\": \"b\", \"answer\": \"{}\"}}\n",
        c.answer);
    EXPECT_TRUE(problems_of("d", text, AnswerRule::Any)) << c.answer;
    for (const auto& [rule, fits] :
         {std::pair(AnswerRule::Text, c.text), std::pair(AnswerRule::Number, c.number)}) {
      const auto problems = problems_of("d", text, rule);
      ASSERT_EQ(problems.has_value(), fits) << c.answer;
      if (!problems) {
        EXPECT_TRUE(problems.error().context.starts_with("d:2: ")) << problems.error().context;
      }
    }
  }
}

TEST(Jsonl, DerivesTheRuleFromTheVerifier) {
  VerifierConfig v;
  const auto rule_of = [&](VerifierKind kind, const std::string& pattern = "") {
    v.kind = kind;
    v.pattern = pattern;
    return answers_for(v);
  };
  EXPECT_EQ(rule_of(VerifierKind::Exact), AnswerRule::Text);
  EXPECT_EQ(rule_of(VerifierKind::Numeric), AnswerRule::Number);
  EXPECT_EQ(rule_of(VerifierKind::Regex, "is {answer}$"), AnswerRule::Text);
  EXPECT_EQ(rule_of(VerifierKind::Regex, "^[a-z]+$"), AnswerRule::Any);
  EXPECT_EQ(rule_of(VerifierKind::Command), AnswerRule::Any);
  EXPECT_EQ(rule_of(VerifierKind::Python), AnswerRule::Any);
}

TEST(Jsonl, AcceptsChatsWithTokenIdsOnly) {
  const std::pair<const char*, bool> cases[] = {
      {R"([{"role": "user", "content": "hi"}])", true},
      {R"([{"role": "user", "content": [{"type": "text", "text": "hi"}]}])", true},
      {R"([{"role": "assistant", "content": null, "tool_calls": []}])", true},
      {R"([{"role": "assistant"}])", true},
      {R"([{"role": "user", "content": 7}])", false},
      {R"([{"role": "user", "content": true}])", false},
      {R"([{"role": "user", "content": {"text": "hi"}}])", false},
      {R"([{"role": 1, "content": "hi"}])", false},
      {R"([{"content": "hi"}])", false},
      {R"(["hi"])", false},
      {R"([["user", "hi"]])", false},
      {R"([null])", false},
      {R"([])", false},
      {R"({"role": "user", "content": "hi"})", false},
      {"7", false},
      {"null", false}};
  for (const auto& [prompt, fits] : cases) {
    const std::string row = std::string("\n{\"prompt\": ") + prompt + R"(, "answer": "a")";
    const auto with = problems_of("d", row + R"(, "prompt_token_ids": [5]})");
    ASSERT_EQ(with.has_value(), fits) << prompt;
    if (!with) {
      EXPECT_TRUE(with.error().context.starts_with("d:2: ")) << with.error().context;
    }
    EXPECT_FALSE(problems_of("d", row + "}")) << prompt;
  }
  EXPECT_NE(error_of(R"({"messages": [{"role": "user", "content": "hi"}], "answer": "a"})")
                .find("set `task.template: chat`"),
            std::string::npos);
}

TEST(Jsonl, RejectsDeeplyNestedInputWithoutRecursion) {
  const std::string deep(100'000, '[');
  EXPECT_EQ(error_of(deep).rfind("d.jsonl:1: ", 0), 0U);
  EXPECT_EQ(error_of("{\"prompt\": " + deep).rfind("d.jsonl:1: ", 0), 0U);
}

TEST(Jsonl, NamesTheLineForGarbage) {
  Random random(7, "jsonl garbage");
  const std::vector<std::string> pieces{
      "{",      "}",       "\"",      "prompt", "\"prompt\":",
      "answer", "\"a\"",   ":",       ",",      "\"answer\":",
      "\n",     "\"\\u00", "\\ud800", "####",   "\"question\":",
      "\xff",   "\xc3",    "1e999",   "null",   "\"x\"",
      "[",      "]",       "\r\n",    "-",      std::string(1, '\0')};
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (std::uint64_t n = random.below(30); n > 0; --n)
      text += random.chance(0.05) ? std::string(1, static_cast<char>(random.below(256)))
                                  : pieces[random.below(pieces.size())];
    const auto problems = problems_of("g", text);
    if (problems) {
      for (const Problem& problem : *problems) {
        ASSERT_FALSE(trimmed(problem.prompt).empty());
        ASSERT_FALSE(first_invalid_utf8(problem.prompt + problem.answer));
      }
    } else {
      const std::string& context = problems.error().context;
      ASSERT_EQ(context.rfind("g:", 0), 0U) << context;
      ASSERT_FALSE(first_invalid_utf8(context)) << context;
    }
  }
}

TEST(Jsonl, DamageAffectsOnlyItsOwnLine) {
  // Only line 2 is damaged, so only line 2 may be named.
  Random random(8, "jsonl damage");
  const std::string good = R"({"prompt": "aé", "answer": "b"})";
  for (int i = 0; i < 5000; ++i) {
    std::string damaged = good;
    for (std::uint64_t n = 1 + random.below(3); n > 0; --n) {
      const auto byte = static_cast<char>(random.below(256));
      damaged[random.below(damaged.size())] = byte == '\n' ? ' ' : byte;
    }
    const auto problems = problems_of("g", good + "\n" + damaged + "\n" + good);
    if (problems)
      ASSERT_GE(problems->size(), 2U);
    else
      ASSERT_EQ(problems.error().context.rfind("g:2: ", 0), 0U) << problems.error().context;
  }
}

TEST(Jsonl, PassesTokenIdsToTheEngine) {
  const auto problems =
      problems_of("d", R"({"prompt": "hi", "prompt_token_ids": [5, 6], "answer": "a"})");
  ASSERT_TRUE(problems) << problems.error().context;
  EXPECT_EQ(problems->at(0).prompt, "hi");
  EXPECT_EQ(problems->at(0).tokens, (std::vector<TokenId>{5, 6}));
  EXPECT_EQ(problems->at(0).columns, "");
}

TEST(Jsonl, RejectsMessagesWithoutTokenIds) {
  const std::string row = R"({"prompt": [{"role": "user", "content": "hi"}], "answer": "a")";
  const auto with = problems_of("d", row + R"(, "prompt_token_ids": [5]})");
  ASSERT_TRUE(with) << with.error().context;
  EXPECT_EQ(with->at(0).prompt, R"([{"content":"hi","role":"user"}])");
  const auto without = problems_of("d", row + "}");
  ASSERT_FALSE(without);
  EXPECT_NE(without.error().context.find("set `task.template: chat`"), std::string::npos);
  for (const char* const bad : {"[]", "[-1]", "[\"5\"]", "5", "[1e12]"}) {
    const auto refused = problems_of("d", row + R"(, "prompt_token_ids": )" + bad + "}");
    ASSERT_FALSE(refused) << bad;
    EXPECT_NE(refused.error().context.find("`prompt_token_ids`"), std::string::npos) << bad;
  }
}

class JsonlSource : public ::testing::Test {
 protected:
  /// Prompts p0 to p(n-1).
  TaskConfig task_of(int n, double held_out = 0.1) const {
    TaskConfig task;
    task.kind = TaskKind::Jsonl;
    task.path = (folder_ / "d.jsonl").string();
    task.held_out = held_out;
    std::ofstream file(task.path);
    for (int i = 0; i < n; ++i)
      file << fmt::format("{{\"prompt\": \"p{}\", \"answer\": \"{}\"}}\n", i, i);
    return task;
  }

  const test::TemporaryFolder folder_;
};

TEST_F(JsonlSource, AnEpochHasEachTrainingProblemOnce) {
  const auto source = *make_prompt_source(task_of(500), 1);
  const std::uint64_t held = source->held_out_size();
  // 500 draws with probability 0.1: 50 expected, sigma = 6.7.
  EXPECT_GT(held, 20U);
  EXPECT_LT(held, 80U);
  std::set<std::string> seen;
  for (std::uint64_t i = 0; i < held; ++i)
    seen.insert(source->held_out(i).prompt);
  EXPECT_EQ(seen.size(), held);
  std::vector<std::string> first, second;
  for (std::uint64_t i = 0; i < 500 - held; ++i) {
    first.push_back(source->train(i).prompt);
    second.push_back(source->train(500 - held + i).prompt);
    ASSERT_TRUE(seen.insert(first.back()).second) << first.back();
  }
  EXPECT_EQ(seen.size(), 500U);
  EXPECT_NE(first, second);
  std::sort(first.begin(), first.end());
  std::sort(second.begin(), second.end());
  EXPECT_EQ(first, second);
  EXPECT_EQ(source->longest_prompt(Tokenizer::for_task(task_of(1))).value(), Tokens(4));
}

TEST_F(JsonlSource, DependsOnlyOnSeedAndIndex) {
  const TaskConfig task = task_of(100);
  const auto one = *make_prompt_source(task, 1);
  const auto again = *make_prompt_source(task, 1);
  const auto other = *make_prompt_source(task, 2);
  int same = 0;
  for (std::uint64_t i = 300; i-- > 0;) {
    EXPECT_EQ(one->train(i), again->train(i));
    same += one->train(i) == other->train(i);
  }
  EXPECT_LT(same, 30);
  EXPECT_EQ(one->held_out_size(), other->held_out_size());
}

TEST_F(JsonlSource, KeepsTheSplitWhenTheFileGrows) {
  const auto small = *make_prompt_source(task_of(100), 1);
  std::set<std::string> held;
  for (std::uint64_t i = 0; i < small->held_out_size(); ++i)
    held.insert(small->held_out(i).prompt);
  const auto large = *make_prompt_source(task_of(200), 1);
  for (std::uint64_t i = 0; i < 200; ++i)
    EXPECT_FALSE(held.contains(large->train(i).prompt));
}

TEST_F(JsonlSource, ReportsAMissingFileAndAnEmptyPath) {
  TaskConfig task = task_of(1);
  task.path += ".none";
  const auto missing = make_prompt_source(task, 1);
  ASSERT_FALSE(missing);
  EXPECT_NE(missing.error().context.find("d.jsonl.none"), std::string::npos);
  task.path.clear();
  EXPECT_FALSE(make_prompt_source(task, 1));
  task.path = folder_.path().string();
  EXPECT_FALSE(make_prompt_source(task, 1));
}

TEST_F(JsonlSource, NeedsAModelFolderForAChatTemplate) {
  TaskConfig task = task_of(1);
  task.prompt_template = TemplateKind::Chat;
  EXPECT_EQ(make_prompt_source(task, 1).error().context,
            "task.template: `chat` needs a model folder in model.path");
}

TEST_F(JsonlSource, HoldsOutNothingForAShareOfZero) {
  const auto source = *make_prompt_source(task_of(20, 0), 1);
  EXPECT_EQ(source->held_out_size(), 0U);
}

TEST_F(JsonlSource, ReadsTheTeacherOfEachTrainingProblem) {
  TaskConfig task = task_of(0, 0.3);
  task.teacher_column = "by";
  {
    std::ofstream file(task.path);
    for (int i = 0; i < 40; ++i) {
      file << fmt::format(
          "{{\"prompt\": \"p{0}\", \"answer\": \"{0}\", \"by\": \"{1}\"}}\n", i, i % 3 ? "b" : "a");
    }
  }
  const auto source = make_prompt_source(task, 1, {.teachers = {"a", "b"}}).value();
  const auto teachers = source->teachers(0);
  ASSERT_EQ(teachers.size(), source->sets().front().problems);
  EXPECT_GT(source->held_out_size(), 0U);
  for (std::size_t n = 0; n < teachers.size(); ++n)
    EXPECT_EQ(teachers[n], std::stoi(source->problem(0, n).answer) % 3 ? 1 : 0);
  // Where nobody asks for teachers, the column is one of the verifier's.
  EXPECT_TRUE(make_prompt_source(task, 1));
}

TEST_F(JsonlSource, ListsTheLinesWithoutAKnownTeacher) {
  TaskConfig task = task_of(0);
  task.teacher_column = "by";
  std::ofstream(task.path) << "{\"prompt\": \"p\", \"answer\": \"1\", \"by\": \"a\"}\n"
                              "{\"prompt\": \"q\", \"answer\": \"1\"}\n"
                              "\n"
                              "{\"prompt\": \"r\", \"answer\": \"1\", \"by\": \"math\"}\n"
                              "{\"prompt\": \"s\", \"answer\": \"1\", \"by\": 3}\n";
  const auto refused = make_prompt_source(task, 1, {.teachers = {"a", "b"}});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().context,
            fmt::format("{0}:2: the column `by` (task.teacher_column) is missing\n"
                        "{0}:4: `by`: expected one of `a`, `b` (reference.teachers), found "
                        "\"math\"\n"
                        "{0}:5: `by`: expected one of `a`, `b` (reference.teachers), found 3",
                        task.path));
}

}  // namespace
}  // namespace temper::actors
