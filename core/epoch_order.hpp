// The order in which the items of a set are visited: epoch after epoch, each item once in each, and
// in another order every time. Position p of the endless sequence is a pure function, so there is
// no order to store.
#pragma once

#include <cstdint>
#include <string>

namespace temper {

struct EpochOrder {
  std::string stream;  ///< Names the set: orders of other streams are independent.
  std::uint64_t seed = 0;
  std::uint64_t size = 1;  ///< Items of the set; positive.
  bool shuffle = true;     ///< False: every epoch has the items in their order.

  std::uint64_t epoch(std::uint64_t position) const { return position / size; }
  /// The item at this position.
  std::uint64_t at(std::uint64_t position) const;
};

}  // namespace temper
