#include "orchestrator/run/live/checks.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::orchestrator {
namespace {

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float x) { return std::isfinite(x); });
}

template <class... Args>
Error wrong(ResponseId response, fmt::format_string<Args...> what, Args&&... args) {
  return invalid_input(
      fmt::format("response {}: {}", response, fmt::format(what, std::forward<Args>(args)...)));
}

/// Finds the fields of a described struct that are not finite.
struct FiniteCheck {
  template <class T>
  void field(int, std::string_view name, T& value, const std::type_identity_t<FieldMeta<T>>& = {}) {
    if constexpr (std::floating_point<T>) {
      if (!std::isfinite(value) && found.empty())
        found = fmt::format("{} is {}", name, value);
    }
  }
  std::string found;
};

}  // namespace

Status check(const actors::Generated::Item& item,
             std::size_t before,
             const ResponseLimits& limits) {
  const std::size_t n = item.tokens.size();
  if (n != item.logprobs.size())
    return wrong(item.response, "{} tokens but {} log-probs", n, item.logprobs.size());
  if ((!item.mask.empty() && item.mask.size() != n) ||
      (!item.rewards.empty() && item.rewards.size() != n)) {
    return wrong(item.response,
                 "{} tokens but a mask of {} and rewards of {}",
                 n,
                 item.mask.size(),
                 item.rewards.size());
  }
  if (!all_finite(item.logprobs) || !all_finite(item.rewards))
    return wrong(item.response, "log-probs or rewards that are not finite");
  if (std::cmp_greater(before + n, limits.longest.count())) {
    return wrong(item.response,
                 "{} tokens, of which sampling.max_new_tokens allows {}",
                 before + n,
                 limits.longest.count());
  }
  const auto outside = [&](std::int32_t token) { return token < 0 || token >= limits.vocabulary; };
  if (const auto at = std::ranges::find_if(item.tokens, outside);
      limits.vocabulary != std::numeric_limits<std::int32_t>::max() && at != item.tokens.end()) {
    return wrong(item.response, "token {}; there are {}", *at, limits.vocabulary);
  }
  return {};
}

Status check_scores(std::span<const float> logprobs, std::size_t tokens, ResponseId response) {
  if (logprobs.size() != tokens)
    return wrong(response, "{} reference log-probs for {} tokens", logprobs.size(), tokens);
  if (!all_finite(logprobs))
    return wrong(response, "reference log-probs that are not finite");
  return {};
}

Status check(actors::UpdateMetrics metrics) {
  FiniteCheck finite;
  describe(finite, metrics);
  if (!finite.found.empty())
    return invalid_input("metrics of an update: " + finite.found);
  return {};
}

}  // namespace temper::orchestrator
