// Several sets of items, taken in turns: a round takes one item of each set that still has one.
// Which item is at a position is a pure function of the sizes of the sets.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace temper {

struct AlternatingItem {
  std::size_t set = 0;
  std::uint64_t item = 0;  ///< Number within its set.
  bool operator==(const AlternatingItem&) const = default;
};

/// The item at this position. Requires: position is less than the sum of the sizes.
AlternatingItem alternating_item(std::span<const std::uint64_t> sizes, std::uint64_t position);

}  // namespace temper
