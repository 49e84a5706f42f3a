#include "actors/model_folder/merges_by_score.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <tuple>
#include <unordered_set>

namespace temper::actors {
namespace {

bool begins_character(char byte) {
  return (static_cast<unsigned char>(byte) & 0xc0U) != 0x80U;
}

/// A way to form a token from two others.
struct Merge {
  std::size_t id = 0;   ///< Of the joined token.
  std::size_t cut = 0;  ///< Length of the left one.
};

std::vector<Merge> merges_of(std::span<const std::string_view> tokens) {
  std::unordered_set<std::string_view> known(tokens.begin(), tokens.end());
  known.erase("");
  std::vector<Merge> out;
  for (std::size_t id = 0; id < tokens.size(); ++id) {
    const std::string_view text = tokens[id];
    for (std::size_t cut = 1; cut < text.size(); ++cut) {
      if (begins_character(text[cut]) && known.contains(text.substr(0, cut)) &&
          known.contains(text.substr(cut)))
        out.push_back({id, cut});
    }
  }
  return out;
}

/// The character of which a token is a run; empty if it has several.
std::string_view repeated_character(std::string_view text) {
  std::size_t size = 1;
  while (size < text.size() && !begins_character(text[size]))
    ++size;
  return text.substr(0, text.size() - size) == text.substr(size) ? text.substr(0, size) : "";
}

}  // namespace

Result<std::vector<std::pair<std::string, std::string>>> merges_by_score(
    std::span<const std::string_view> tokens, std::span<const double> scores) {
  std::vector<Merge> merges = merges_of(tokens);
  for (const Merge& merge : merges) {
    if (const double score = scores[merge.id]; !(score == std::floor(score))) {
      return Error{ErrorCode::Unsupported,
                   fmt::format("token {}: expected an integer as score, as BPE has them, found "
                               "{}; Temper does not support Unigram",
                               merge.id,
                               score)};
    }
  }
  std::ranges::stable_sort(merges, std::ranges::greater(), [&](const Merge& merge) {
    return std::tuple(scores[merge.id], merge.cut, tokens[merge.id].size());
  });
  std::vector<std::pair<std::string, std::string>> out;
  for (std::size_t i = 0; i < merges.size(); ++i) {
    const std::string_view text = tokens[merges[i].id];
    const Merge& before = merges[i == 0 ? 0 : i - 1];
    const bool tie = before.id != merges[i].id && scores[before.id] == scores[merges[i].id];
    const std::string_view character = repeated_character(text);
    if (tie && (character.empty() || repeated_character(tokens[before.id]) != character)) {
      return Error{ErrorCode::Unsupported,
                   fmt::format("tokens {} and {}: both have the score {}, so it is unknown which "
                               "of them is merged first; use the model's Hugging Face folder",
                               before.id,
                               merges[i].id,
                               scores[before.id])};
    }
    out.emplace_back(text.substr(0, merges[i].cut), text.substr(merges[i].cut));
  }
  return out;
}

}  // namespace temper::actors
