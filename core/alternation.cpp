#include "core/alternation.hpp"

#include "core/check.hpp"

#include <algorithm>
#include <limits>
#include <vector>

namespace temper {

/// The sets in a round change only after as many rounds as the smallest of them has items.
AlternatingItem alternating_item(std::span<const std::uint64_t> sizes, std::uint64_t position) {
  for (std::uint64_t rounds = 0;;) {
    std::vector<std::size_t> left;
    std::uint64_t next = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t set = 0; set < sizes.size(); ++set) {
      if (sizes[set] > rounds) {
        left.push_back(set);
        next = std::min(next, sizes[set]);
      }
    }
    TEMPER_CHECK(!left.empty(), "a position beyond the last item");
    const std::uint64_t items = (next - rounds) * left.size();
    if (position < items)
      return {left[position % left.size()], rounds + position / left.size()};
    position -= items;
    rounds = next;
  }
}

}  // namespace temper
