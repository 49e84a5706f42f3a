// The section `verifier`: what `check` refuses, with place, found, expected and next step.
#include "orchestrator/pipeline/verifier_rules.hpp"

#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <gtest/gtest.h>

#include <chrono>

namespace temper::orchestrator {
namespace {

using namespace std::chrono_literals;

std::string verifier_issues(const std::string& verifier, const std::string& more = "") {
  const LoadedConfig loaded("c.yaml", "verifier: " + verifier + "\n" + more, {});
  return render(loaded.issues());
}

void expect_verifier_issue(const std::string& found, const std::string& expected) {
  EXPECT_NE(found.find(expected), std::string::npos)
      << "expected " << expected << "\nfound " << found;
}

std::string judge(const std::string& keys) {
  return "{kind: judge, judge: {url: \"http://h:1/v1\", model: m, prompt: \"{response}\", " + keys +
         "}}";
}

TEST(VerifierRules, AcceptEachKindOfVerifier) {
  EXPECT_EQ(verifier_issues("{kind: numeric}"), "");
  EXPECT_EQ(verifier_issues(judge("pattern: x")), "");
  EXPECT_EQ(verifier_issues(judge("field: score, key_variable: OPENAI_API_KEY")), "");
  EXPECT_EQ(verifier_issues("{kind: model, model: {path: m, label: good}}"), "");
  EXPECT_EQ(verifier_issues("{kind: model, model: {path: m, template: chat, text: \"\"}}"), "");
  EXPECT_EQ(
      verifier_issues("{kind: sum, terms: {right: {kind: numeric}, brief: {kind: python, function: "
                      "\"m:f\", weight: -0.1}}}"),
      "");
}

TEST(VerifierRules, NameTheKeyOfAJudge) {
  expect_verifier_issue(verifier_issues("{kind: judge}"),
                        "c.yaml:1: verifier.judge.model: required by `verifier.kind: judge`");
  expect_verifier_issue(verifier_issues("{kind: judge}"),
                        "must be an address such as http://127.0.0.1:8080/v1");
  expect_verifier_issue(verifier_issues("{kind: judge}"), "found neither");
  expect_verifier_issue(verifier_issues(judge("pattern: x, field: y")), "found both");
  expect_verifier_issue(verifier_issues(judge("pattern: x, key_variable: sk-1234")),
                        "do not write the key itself");
  expect_verifier_issue(verifier_issues(judge("pattern: x, lowest: 3, highest: 3")),
                        "must be less than judge.highest");
  expect_verifier_issue(verifier_issues(judge("pattern: x, attempts: 0")),
                        "verifier.judge.attempts");
  expect_verifier_issue(
      verifier_issues(
          "{kind: judge, judge: {url: \"ftp://h\", model: m, prompt: hello, pattern: x}}"),
      "must contain `{response}`");
}

TEST(VerifierRules, AcceptARequestWithoutLimitsAndWithFurtherFields) {
  const LoadedConfig loaded(
      "c.yaml",
      "verifier: " + judge("pattern: x, temperature: null, max_tokens: null, extra_body: "
                           "'{\"max_completion_tokens\": 4096}'"),
      {});
  EXPECT_EQ(render(loaded.issues()), "");
  const actors::JudgeConfig& read = loaded.config().verifier.judge;
  EXPECT_EQ(read.temperature, std::nullopt);
  EXPECT_EQ(read.max_tokens, std::nullopt);
  EXPECT_EQ(actors::JudgeConfig{}.temperature, 0.0);
  EXPECT_EQ(actors::JudgeConfig{}.max_tokens, 1024);
}

TEST(VerifierRules, NameWhatIsWrongInTheRequestOfAJudge) {
  expect_verifier_issue(verifier_issues(judge("pattern: x, temperature: -1")),
                        "verifier.judge.temperature: must be at least 0, found `-1`");
  expect_verifier_issue(verifier_issues(judge("pattern: x, max_tokens: 0")),
                        "verifier.judge.max_tokens: must be at least 1, found `0`");
  expect_verifier_issue(verifier_issues(judge("pattern: x, extra_body: top_k=1")),
                        "verifier.judge.extra_body: must be a JSON object in quotes");
  expect_verifier_issue(verifier_issues(judge("pattern: x, extra_body: '{\"max_tokens\": 3}'")),
                        "has \"max_tokens\"; set `judge.max_tokens` instead");
  expect_verifier_issue(verifier_issues(judge("pattern: x, extra_body: '{\"stream\": true}'")),
                        "has \"stream\", which Temper sets; remove it");
}

TEST(VerifierRules, NameTheTermOfASum) {
  expect_verifier_issue(verifier_issues("{kind: sum}"),
                        "verifier.terms: required by `verifier.kind: sum`");
  expect_verifier_issue(verifier_issues("{kind: exact, terms: {a: {kind: exact}}}"),
                        "requires `verifier.kind: sum`");
  expect_verifier_issue(verifier_issues("{kind: sum, terms: {a: {kind: sum}}}"),
                        "verifier.terms.a.kind: a term cannot be a sum");
  expect_verifier_issue(verifier_issues("{kind: sum, terms: {a: {kind: regex}}}"),
                        "verifier.terms.a.pattern: required by `verifier.terms.a.kind: regex`");
  expect_verifier_issue(verifier_issues("{kind: sum, terms: {a: {kind: python, function: f}}}"),
                        "verifier.terms.a.function: must be `module:function`");
  expect_verifier_issue(verifier_issues("{kind: sum, terms: {a.b: {kind: exact}}}"),
                        "letters, digits and `_ -`");
  expect_verifier_issue(verifier_issues("{kind: sum, terms: {a: {kind: exact, weight: 1e9}}}"),
                        "verifier.terms.a.weight");
}

TEST(VerifierRules, RequireLocalHardwareForTermsInPython) {
  expect_verifier_issue(
      verifier_issues("{kind: sum, terms: {a: {kind: judge}}}", "hardware: simulated\n"),
      "`judge` requires `hardware: local`");
}

TEST(Deadlines, OfABatchOfRewardsHoldForAllTermsOneAfterAnother) {
  const auto resolved = [](const std::string& verifier) {
    const LoadedConfig loaded("c.yaml", "verifier: " + verifier + "\n", {});
    EXPECT_EQ(render(loaded.issues()), "");
    return scheduler_config(*resolve(loaded.config()));
  };
  const auto one = resolved(
      "{kind: judge, deadline: 20s, pool: 8, judge: {url: \"http://h\", model: m, prompt: "
      "\"{response}\", pattern: x}}");
  // 4 * 20 s; (80 - 20) / (3 * 20) = 1 round of 8
  EXPECT_EQ(one.deadlines.reward, 80s);
  EXPECT_EQ(one.judge_batch, 8);
  const auto two = resolved(
      "{kind: sum, terms: {a: {kind: command, command: [cat], deadline: 20s, pool: 4}, b: {kind: "
      "python, function: \"m:f\", deadline: 10s}, c: {kind: exact}}}");
  EXPECT_EQ(two.deadlines.reward, 120s);
  EXPECT_EQ(two.judge_batch, 4);
}

}  // namespace
}  // namespace temper::orchestrator
