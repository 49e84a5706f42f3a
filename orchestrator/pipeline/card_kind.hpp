// Which cards of a run are of which kind, where there are several kinds.
#pragma once

#include "core/ids.hpp"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// Cards of one kind.
struct CardKind {
  std::string name;  ///< As the configuration names it, a path by its last part.
  std::uint32_t first = 0;
  std::uint32_t cards = 0;

  bool has(CardId card) const { return card.value() >= first && card.value() - first < cards; }
};

/// " of NAME"; empty where the card is of no kind.
inline std::string kind_text(const std::vector<CardKind>& kinds, CardId card) {
  const auto kind = std::ranges::find_if(kinds, [&](const CardKind& k) { return k.has(card); });
  return kind == kinds.end() ? std::string() : " of " + kind->name;
}

}  // namespace temper::orchestrator
