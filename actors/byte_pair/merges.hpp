// Byte pair encoding: the bytes of a piece of text, joined pair by pair in the order of the merges'
// ranks (Sennrich et al., 2016).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace temper::actors {

class Merges {
 public:
  /// Merges are added in the order of their ranks; of a pair that comes twice the last one counts.
  void add(std::int32_t left, std::int32_t right, std::int32_t joined);
  /// Joins the symbols of a piece until no pair of neighbours can be joined: always the pair of
  /// lowest rank, the leftmost of them. Takes n log n steps.
  std::vector<std::int32_t> apply(std::span<const std::int32_t> symbols) const;

 private:
  struct Merge {
    std::int32_t rank = 0;
    std::int32_t joined = 0;
  };
  const Merge* find(std::int32_t left, std::int32_t right) const;

  std::unordered_map<std::uint64_t, Merge> merges_;
  std::int32_t count_ = 0;
};

}  // namespace temper::actors
