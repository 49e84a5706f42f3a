#include "core/epoch_order.hpp"

#include "core/check.hpp"
#include "core/hash.hpp"
#include "core/random.hpp"

namespace temper {

std::uint64_t EpochOrder::at(std::uint64_t position) const {
  TEMPER_CHECK(size > 0, "an empty set has no order");
  const std::uint64_t place = position % size;
  if (!shuffle)
    return place;
  return permuted(place, size, hash64(stream, seed ^ hash64("epoch", epoch(position))));
}

}  // namespace temper
