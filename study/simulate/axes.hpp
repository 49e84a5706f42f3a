// What a study varies: keys of a pipeline with the values that they take, bounds, seeds, and all
// combinations of the keys. Pure functions.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace temper::study {

/// Keys of a pipeline that change together, and the values they take.
struct SweepAxis {
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> values;  ///< Each one per key.

  std::string name() const;                   ///< "a+b"
  std::string text(std::size_t place) const;  ///< "1/2"
  std::vector<std::string> sets(std::size_t place) const;
};
/// "key=v1,v2" or "a+b=1/2,3/4"; commas within brackets are part of a value. `flag` is for errors.
Result<SweepAxis> parse_axis(std::string_view flag, std::string_view text);

inline constexpr std::size_t kMostCombinations = 20000;
/// How many there are; kMostCombinations + 1 where there are more than that.
std::size_t combination_count(const std::vector<SweepAxis>& axes);
/// The n-th: a place in the values of each axis, the last axis fastest.
std::vector<std::size_t> combination(const std::vector<SweepAxis>& axes, std::size_t n);
/// Adds its `key=value` words.
void add_sets(std::vector<std::string>& sets,
              const std::vector<SweepAxis>& axes,
              const std::vector<std::size_t>& places);
/// The words of every combination, each once; a single one without words where there is no axis.
/// Error: more than kMostCombinations.
Result<std::vector<std::vector<std::string>>> combinations(const std::vector<SweepAxis>& axes);

/// Bounds, as `--eta` has them. Errors: none, no number from 0 to 1024, twice the same.
Result<std::vector<double>> parse_etas(const std::vector<std::string>& texts);
/// As `--seeds` has them. Errors: no whole number, twice the same.
Result<std::vector<std::uint64_t>> parse_seeds(const std::vector<std::string>& texts);

}  // namespace temper::study
