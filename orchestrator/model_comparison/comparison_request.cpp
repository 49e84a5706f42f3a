#include "orchestrator/model_comparison/comparison_request.hpp"

#include "core/files.hpp"
#include "core/json_read.hpp"
#include "core/random.hpp"

#include <algorithm>
#include <array>
#include <filesystem>
#include <set>

namespace temper::orchestrator {

std::int64_t ComparisonRequest::positions() const {
  std::int64_t sum = 0;
  for (const auto& sequence : sequences)
    sum += std::ssize(sequence);
  return sum;
}

std::vector<std::vector<std::int32_t>> comparison_sequences(std::int32_t vocabulary,
                                                            Tokens context) {
  constexpr std::array<std::int64_t, 5> kLengths{1, 2, 7, 33, 64};
  std::set<std::int64_t> lengths;
  for (const std::int64_t length : kLengths)
    lengths.insert(std::min<std::int64_t>(length, context.count()));
  Random random(1, "model comparison");
  std::vector<std::vector<std::int32_t>> sequences;
  for (const std::int64_t length : lengths) {
    auto& sequence = sequences.emplace_back();
    for (std::int64_t i = 0; i < length; ++i)
      sequence.push_back(
          static_cast<std::int32_t>(random.below(static_cast<std::uint64_t>(vocabulary))));
  }
  return sequences;
}

std::vector<std::string> comparison_texts() {
  return {"The quick brown fox jumps over 13 lazy dogs. Why? It's 1,024 times faster!",
          "  Two spaces, a tab\tand\n\n  line breaks \n",
          "def square(x):\n    return x**2  # it isn't x*2\n",
          "Grüße aus Köln, 你好世界, здравствуй, नमस्ते, \U0001F642",
          "12+34="};
}

std::vector<Chat> comparison_chats() {
  return {{{"user", "What is 2 + 2?"}},
          {{"user", "Name a color. "}, {"assistant", "Blue."}, {"user", "\nAnother <one>?"}}};
}

Result<ComparisonRequest> read_comparison_request(const std::string& folder) {
  const std::filesystem::path file = std::filesystem::path(folder) / kRequestFile;
  TEMPER_TRY(const std::string text, read_file(file));
  auto request = from_json<ComparisonRequest>(text);
  if (!request)
    return corrupt(file.string() + ": expected a JSON object");
  return *std::move(request);
}

}  // namespace temper::orchestrator
