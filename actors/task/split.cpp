#include "actors/task/split.hpp"

#include "core/hash.hpp"
#include "core/random.hpp"

#include <algorithm>
#include <cmath>
#include <span>

namespace temper::actors {

std::uint64_t held_out_count(std::uint64_t problems, double share) {
  if (share <= 0 || problems < 2)
    return 0;
  const auto rounded =
      static_cast<std::uint64_t>(std::llround(share * static_cast<double>(problems)));
  return std::clamp(rounded, std::uint64_t{1}, problems - 1);
}

std::uint64_t shuffled(std::uint64_t index, std::uint64_t n, std::uint64_t seed) {
  const std::uint64_t epoch = index / n;
  return permuted(index % n, n, hash64(std::as_bytes(std::span(&epoch, 1)), seed));
}

}  // namespace temper::actors
