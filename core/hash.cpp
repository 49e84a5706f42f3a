#include "core/hash.hpp"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace temper {

std::uint64_t hash64(std::span<const std::byte> data, std::uint64_t seed) {
  return XXH3_64bits_withSeed(data.data(), data.size(), seed);
}

}  // namespace temper
