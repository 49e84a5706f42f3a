#include "actors/roles/canary.hpp"

#include "core/check.hpp"
#include "core/json_document.hpp"
#include "core/random.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

namespace temper::actors {

std::vector<std::int32_t> canary_tokens(std::int32_t vocabulary, Tokens context) {
  TEMPER_CHECK(vocabulary >= 2 && context >= Tokens(3),
               "a canary needs a context of 3 and a vocabulary of 2");
  constexpr std::int64_t kLength = 32;
  const std::int32_t first = vocabulary > 2 ? 2 : 0;
  Random random(17, "canary");  // The same sequence for the trainer and every engine.
  std::vector<std::int32_t> tokens(
      static_cast<std::size_t>(std::min(kLength, context.count() - 1)));
  for (std::int32_t& token : tokens)
    token = first +
            static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary - first)));
  return tokens;
}

std::string canary_text(const Canary& canary) {
  return fmt::format(R"({{"tokens":[{}],"logprobs":[{:.9g}]}})",
                     fmt::join(canary.tokens, ","),
                     fmt::join(canary.logprobs, ","));
}

Result<Canary> parse_canary(std::string_view text) {
  const nlohmann::json document = parse_json(text);
  const auto list_of_numbers = [&](const char* key) {
    return document.is_object() && document.contains(key) && document[key].is_array() &&
           std::ranges::all_of(document[key], [](const auto& x) { return x.is_number(); });
  };
  if (!list_of_numbers("tokens") || !list_of_numbers("logprobs"))
    return corrupt("canary: expected lists of numbers `tokens` and `logprobs`");
  Canary canary{document["tokens"].get<std::vector<std::int32_t>>(),
                document["logprobs"].get<std::vector<float>>()};
  const bool finite =
      std::ranges::all_of(canary.logprobs, [](float x) { return std::isfinite(x); });
  if (canary.tokens.size() < 2 || canary.tokens.size() != canary.logprobs.size() + 1 || !finite)
    return corrupt("canary: expected one log-prob for each token after the first");
  return canary;
}

double mean_distance(std::span<const float> a, std::span<const float> b) {
  TEMPER_CHECK(a.size() == b.size() && !a.empty(),
               "both lists must have the same length and not be empty");
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::abs(double{a[i]} - double{b[i]});
  return sum / static_cast<double>(a.size());
}

}  // namespace temper::actors
