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
  TEMPER_CHECK(vocabulary >= 2 && context >= Tokens(3), "a canary needs room and two tokens");
  constexpr std::int64_t kLength = 32;
  const std::int32_t first = vocabulary > 2 ? 2 : 0;
  Random random(17, "canary");  // The same for whoever computes it and whoever compares it.
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
    return corrupt("a canary without its tokens and log-probs");
  Canary canary{document["tokens"].get<std::vector<std::int32_t>>(),
                document["logprobs"].get<std::vector<float>>()};
  const bool finite =
      std::ranges::all_of(canary.logprobs, [](float x) { return std::isfinite(x); });
  if (canary.tokens.size() < 2 || canary.tokens.size() != canary.logprobs.size() + 1 || !finite)
    return corrupt("a canary whose log-probs are not one for each token but the first");
  return canary;
}

double mean_distance(std::span<const float> a, std::span<const float> b) {
  TEMPER_CHECK(a.size() == b.size() && !a.empty(), "distances are between lists of one length");
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    sum += std::abs(double{a[i]} - double{b[i]});
  return sum / static_cast<double>(a.size());
}

}  // namespace temper::actors
