#include "actors/task/internal/text_verifiers.hpp"

#include "actors/task/internal/numbers.hpp"
#include "actors/task/internal/text.hpp"
#include "core/split.hpp"

#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <regex>

namespace temper::actors {

namespace {

Verdict reward_if(bool right) {
  return {.reward = right ? 1.0 : 0.0, .failure = {}};
}

template <class F>
std::vector<Verdict> judge_each(std::span<const JudgeRequest> batch, F&& judge) {
  std::vector<Verdict> verdicts;
  verdicts.reserve(batch.size());
  for (const JudgeRequest& request : batch)
    verdicts.push_back(judge(request));
  return verdicts;
}

class ExactVerifier final : public Verifier {
 public:
  std::vector<Verdict> judge(std::span<const JudgeRequest> batch) override {
    return judge_each(batch, [](const JudgeRequest& j) {
      return reward_if(trimmed(j.response) == trimmed(j.answer));
    });
  }
};

class NumericVerifier final : public Verifier {
 public:
  explicit NumericVerifier(double tolerance) : tolerance_(tolerance) {}

  std::vector<Verdict> judge(std::span<const JudgeRequest> batch) override {
    return judge_each(batch, [this](const JudgeRequest& j) {
      const std::optional<double> answer = final_number(j.answer);
      if (!answer)
        return Verdict{.failure =
                           fmt::format("the answer \"{}\" has no number", excerpt(j.answer))};
      const std::optional<double> given = final_number(j.response);
      return reward_if(given && std::abs(*given - *answer) <= tolerance_);
    });
  }

 private:
  const double tolerance_;
};

/// A pattern that matches exactly `text`.
std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (std::string_view("^$\\.*+?()[]{}|/").find(c) != std::string_view::npos)
      out += '\\';
    out += c;
  }
  return out;
}

std::string with_answer(std::string_view pattern, std::string_view answer) {
  std::string out;
  for (;;) {
    const std::size_t at = pattern.find(kAnswerInPattern);
    out += pattern.substr(0, at);
    if (at == std::string_view::npos)
      return out;
    // In a group, so that `{answer}?` makes the whole answer optional.
    out += "(?:" + escaped(answer) + ")";
    pattern.remove_prefix(at + kAnswerInPattern.size());
  }
}

/// True if the pattern has a look-ahead, "(?=" or "(?!", outside a character class.
bool has_look_ahead(std::string_view pattern) {
  bool in_class = false;
  for (std::size_t i = 0; i < pattern.size(); ++i) {
    if (pattern[i] == '\\')
      ++i;
    else if (pattern[i] == '[' || pattern[i] == ']')
      in_class = pattern[i] == '[';
    else if (!in_class && (pattern.substr(i, 3) == "(?=" || pattern.substr(i, 3) == "(?!"))
      return true;
  }
  return false;
}

Result<std::regex> compile(const std::string& pattern) {
  if (pattern.size() > kLongestPattern) {
    return invalid_input(fmt::format("expected at most {} bytes with the answer inserted, found {}",
                                     kLongestPattern,
                                     pattern.size()));
  }
  // libstdc++'s breadth-first matcher: no backtracking, no recursion over the text.
  constexpr auto kFlags = std::regex_constants::ECMAScript | std::regex_constants::__polynomial;
  try {
    return std::regex(pattern, kFlags);
  } catch (const std::regex_error& e) {
    return invalid_input(e.code() == std::regex_constants::error_complexity
                             ? "back-references are not supported"
                             : e.what());
  }
}

class RegexVerifier final : public Verifier {
 public:
  explicit RegexVerifier(std::string pattern) : pattern_(std::move(pattern)) {}

  std::vector<Verdict> judge(std::span<const JudgeRequest> batch) override {
    return judge_each(batch, [this](const JudgeRequest& j) { return judge_one(j); });
  }

 private:
  Verdict judge_one(const JudgeRequest& j) {
    if (j.response.size() > kLongestMatched) {
      return {.failure =
                  fmt::format("the response has {} bytes; patterns are matched against at most {}",
                              j.response.size(),
                              kLongestMatched)};
    }
    if (!compiled_ || answer_ != j.answer) {
      // Allow any prefix: one anchored pass instead of one pass per position.
      auto compiled = compile("[^]*(?:" + with_answer(pattern_, j.answer) + ")");
      if (!compiled)
        return {.failure =
                    "the pattern with this answer does not compile: " + compiled.error().context};
      compiled_ = *std::move(compiled);
      answer_ = j.answer;
    }
    try {
      return reward_if(
          std::regex_search(j.response, *compiled_, std::regex_constants::match_continuous));
    } catch (const std::regex_error& e) {
      return {.failure = fmt::format("matching failed: {}", e.what())};
    }
  }

  const std::string pattern_;
  std::optional<std::regex> compiled_;  ///< Compiled for answer_, which the responses of a group
                                        ///< share.
  std::string answer_;
};

}  // namespace

std::unique_ptr<Verifier> make_exact_verifier() {
  return std::make_unique<ExactVerifier>();
}

std::unique_ptr<Verifier> make_numeric_verifier(double tolerance) {
  return std::make_unique<NumericVerifier>(tolerance);
}

Result<std::unique_ptr<Verifier>> make_regex_verifier(const std::string& pattern) {
  if (pattern.empty())
    return invalid_input("verifier.pattern: expected a pattern for kind `regex`, found none");
  const std::string where = fmt::format("verifier.pattern `{}`", pattern);
  if (has_look_ahead(pattern))
    return invalid_input("look-ahead is not supported").within(where);
  if (auto compiled = compile(with_answer(pattern, "0")); !compiled)
    return std::move(compiled).error().within(where);
  return std::unique_ptr<Verifier>(std::make_unique<RegexVerifier>(pattern));
}

}  // namespace temper::actors
