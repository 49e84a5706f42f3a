// Byte pair encoding: joins the bytes of a piece of text pair by pair in the order of merge ranks
// (Sennrich et al., 2016).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <unordered_map>
#include <vector>

namespace temper::actors {

class Merges {
 public:
  /// Adds the merge of the next rank. If a pair is added twice, the last one counts.
  void add(std::int32_t left, std::int32_t right, std::int32_t joined);
  /// Joins adjacent symbols until no pair can be joined: always the pair of lowest rank, the
  /// leftmost of equal ones. Takes O(n log n).
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
