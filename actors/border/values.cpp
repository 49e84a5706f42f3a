#include "actors/border/values.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cmath>
#include <numeric>

namespace temper::actors {
namespace {

/// Returns false for NaN.
bool is_within(double value, double least, double most) {
  return value >= least && value <= most;
}

double least_of(LogprobOf of) {
  return of == LogprobOf::SampledToken ? kLeastSampledLogprob : kLeastScoredLogprob;
}

bool is_logprob(double value, LogprobOf of) {
  return is_within(value, least_of(of), kLogprobRounding);
}

bool is_reward(double value) {
  return is_within(value, -kLargestReward, kLargestReward);
}

std::string logprob_fault(double value, LogprobOf of) {
  return fmt::format("log-prob {:g}, expected {:g} to 0", value, least_of(of));
}

std::string reward_fault(double value) {
  return fmt::format("reward {:g}, expected {:g} to {:g}", value, -kLargestReward, kLargestReward);
}

std::string token_fault(std::int64_t id, std::int32_t vocabulary) {
  return fmt::format("token id {}; the vocabulary has ids 0 to {}", id, vocabulary - 1);
}

Status check_token_rewards(std::span<const float> rewards) {
  const auto wrong = std::ranges::find_if_not(rewards, is_reward);
  if (wrong != rewards.end())
    return invalid_input(
        fmt::format("token {}: {}", wrong - rewards.begin(), reward_fault(*wrong)));
  const double sum = std::accumulate(rewards.begin(), rewards.end(), 0.0);
  if (!is_reward(sum))
    return invalid_input("the sum over tokens: " + reward_fault(sum));
  return {};
}

Status check_tokens(std::span<const std::int32_t> tokens, std::int32_t vocabulary) {
  if (vocabulary == kAnyVocabulary)
    return {};
  const auto wrong =
      std::ranges::find_if(tokens, [&](auto id) { return id < 0 || id >= vocabulary; });
  if (wrong == tokens.end())
    return {};
  return invalid_input(
      fmt::format("token {}: {}", wrong - tokens.begin(), token_fault(*wrong, vocabulary)));
}

Status check_lengths(const ResponseValues& v) {
  const std::size_t n = v.tokens.size();
  const auto unequal = [n](std::string_view what, std::size_t size) {
    return invalid_input(fmt::format("{} tokens but {} {}", n, size, what));
  };
  if (v.logprobs.size() != n)
    return unequal("log-probs", v.logprobs.size());
  if (!v.mask.empty() && v.mask.size() != n)
    return unequal("entries of the mask", v.mask.size());
  if (!v.rewards.empty() && v.rewards.size() != n)
    return unequal("rewards", v.rewards.size());
  return {};
}

/// Of one position: different ids, and a sum of at most 1, which half precision may exceed.
Status check_distribution(std::span<const std::int32_t> ids, std::span<const float> logprobs) {
  constexpr double kLargestSum = 1.01;
  std::vector<std::int32_t> sorted(ids.begin(), ids.end());
  std::ranges::sort(sorted);
  if (const auto twice = std::ranges::adjacent_find(sorted); twice != sorted.end())
    return invalid_input(fmt::format("token id {} twice among the most likely ones", *twice));
  double sum = 0;
  for (const float logprob : logprobs)
    sum += std::exp(static_cast<double>(logprob));
  if (sum > kLargestSum)
    return invalid_input(fmt::format(
        "most likely tokens with a probability of {:.6g} together, expected at most 1", sum));
  return {};
}

Status check_mask(std::span<const std::uint8_t> mask) {
  const auto wrong = std::ranges::find_if(mask, [](auto m) { return m > 1; });
  if (wrong == mask.end())
    return {};
  return invalid_input(
      fmt::format("token {}: mask {}, expected 0 or 1", wrong - mask.begin(), *wrong));
}

}  // namespace

Status check_logprob(double value, LogprobOf of) {
  return is_logprob(value, of) ? Status() : invalid_input(logprob_fault(value, of));
}

Status check_logprobs(std::span<const float> values, LogprobOf of) {
  const auto wrong =
      std::ranges::find_if_not(values, [of](float value) { return is_logprob(value, of); });
  if (wrong == values.end())
    return {};
  return invalid_input(
      fmt::format("token {}: {}", wrong - values.begin(), logprob_fault(*wrong, of)));
}

Status check_reward(double value) {
  return is_reward(value) ? Status() : invalid_input(reward_fault(value));
}

bool is_term_name(std::string_view name) {
  return !name.empty() && name.size() <= kLongestTermName &&
         std::ranges::all_of(name, [](unsigned char c) {
           return std::isalnum(c) != 0 ||
                  std::string_view("_-.:").find(static_cast<char>(c)) != std::string_view::npos;
         });
}

Status check_terms(const std::map<std::string, std::vector<double>>& terms, std::size_t responses) {
  if (terms.size() > kMostTerms)
    return invalid_input(fmt::format("{} terms, expected at most {}", terms.size(), kMostTerms));
  for (const auto& [name, rewards] : terms) {
    if (!is_term_name(name)) {
      return invalid_input(
          fmt::format("name of a term: expected 1 to {} letters, digits and "
                      "`_ - . :`, found {}",
                      kLongestTermName,
                      bounded_text(name, kLongestTermName)));
    }
    if (rewards.size() != responses) {
      return invalid_input(
          fmt::format("term {}: {} rewards of {} responses", name, rewards.size(), responses));
    }
    const auto wrong = std::ranges::find_if_not(
        rewards, [](double reward) { return std::isnan(reward) || is_reward(reward); });
    if (wrong != rewards.end())
      return invalid_input(fmt::format("term {}: {}", name, reward_fault(*wrong)));
  }
  return {};
}

Status check_token(std::int64_t id, std::int32_t vocabulary) {
  return id >= 0 && id < vocabulary ? Status() : invalid_input(token_fault(id, vocabulary));
}

Status check_response(const ResponseValues& values,
                      std::size_t prefix,
                      const ResponseLimits& limits) {
  TEMPER_TRY_STATUS(check_lengths(values));
  if (values.tokens.size() > limits.tokens - std::min(limits.tokens, prefix)) {
    return invalid_input(fmt::format("{} tokens; sampling.max_new_tokens allows {}",
                                     prefix + values.tokens.size(),
                                     limits.tokens));
  }
  TEMPER_TRY_STATUS(check_tokens(values.tokens, limits.vocabulary));
  TEMPER_TRY_STATUS(check_logprobs(values.logprobs, LogprobOf::SampledToken));
  TEMPER_TRY_STATUS(check_mask(values.mask));
  return check_token_rewards(values.rewards);
}

Status check_scores(std::span<const float> logprobs, std::size_t tokens) {
  if (logprobs.size() != tokens)
    return invalid_input(
        fmt::format("{} reference log-probs for {} tokens", logprobs.size(), tokens));
  return check_logprobs(logprobs, LogprobOf::ScoredToken);
}

Status check_top(std::span<const std::int32_t> ids,
                 std::span<const float> logprobs,
                 std::size_t tokens,
                 const ResponseLimits& limits) {
  const std::size_t k = limits.top_k;
  if (ids.size() != tokens * k || logprobs.size() != ids.size()) {
    return invalid_input(
        fmt::format("{} ids and {} log-probs of most likely tokens, expected {} of each, for {} "
                    "tokens and algorithm.distillation_top_k {}",
                    ids.size(),
                    logprobs.size(),
                    tokens * k,
                    tokens,
                    k));
  }
  TEMPER_TRY_STATUS(check_tokens(ids, limits.vocabulary));
  TEMPER_TRY_STATUS(check_logprobs(logprobs, LogprobOf::ScoredToken));
  for (std::size_t t = 0; t < tokens; ++t) {
    if (Status one = check_distribution(ids.subspan(t * k, k), logprobs.subspan(t * k, k)); !one)
      return std::move(one).error().within(fmt::format("token {}", t));
  }
  return {};
}

std::string bounded_text(std::string text, std::size_t most) {
  if (text.size() <= most)
    return text;
  std::size_t kept = most;
  while (kept > 0 && (static_cast<unsigned char>(text[kept]) & 0xC0U) == 0x80U && most - kept < 4)
    --kept;
  const std::size_t size = text.size();
  text.resize(kept);
  return text + fmt::format("... ({} bytes)", size);
}

}  // namespace temper::actors
