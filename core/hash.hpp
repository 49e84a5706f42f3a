// 64-bit checksums (XXH3): weights in transit, frames of events.log, the log hash of a run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace temper {

std::uint64_t hash64(std::span<const std::byte> data, std::uint64_t seed = 0);
inline std::uint64_t hash64(std::string_view text, std::uint64_t seed = 0) {
  return hash64(std::as_bytes(std::span(text)), seed);
}

}  // namespace temper
