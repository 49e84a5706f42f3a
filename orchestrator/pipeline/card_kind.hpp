// The kinds of cards in a run, where its clusters differ.
#pragma once

#include "core/ids.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// A contiguous range of cards of one kind.
struct CardKind {
  std::string name;  ///< As in the configuration; of a path, its last part.
  std::uint32_t first = 0;
  std::uint32_t cards = 0;

  bool has(CardId card) const { return card.value() >= first && card.value() - first < cards; }
};

/// " of NAME"; empty if the card has no kind.
inline std::string kind_text(const std::vector<CardKind>& kinds, CardId card) {
  const auto kind = std::ranges::find_if(kinds, [&](const CardKind& k) { return k.has(card); });
  return kind == kinds.end() ? std::string() : " of " + kind->name;
}

}  // namespace temper::orchestrator
