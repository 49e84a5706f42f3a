// Values that a study varies: configuration keys, bounds, seeds, and all combinations of the keys.
// Pure functions.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace temper::study {

/// Configuration keys that change together, and their values.
struct SweepAxis {
  std::vector<std::string> keys;
  std::vector<std::vector<std::string>> values;  ///< Each entry has one value per key.

  std::string name() const;                   ///< "a+b"
  std::string text(std::size_t place) const;  ///< "1/2"
  std::vector<std::string> sets(std::size_t place) const;
};
/// Parses "key=v1,v2" or "a+b=1/2,3/4"; commas inside brackets belong to a value. `flag` names the
/// option in errors.
Result<SweepAxis> parse_axis(std::string_view flag, std::string_view text);
Result<std::vector<SweepAxis>> parse_axes(std::string_view flag,
                                          const std::vector<std::string>& texts);

inline constexpr std::size_t kMostCombinations = 20000;
/// Number of combinations; kMostCombinations + 1 if there are more than kMostCombinations.
std::size_t combination_count(const std::vector<SweepAxis>& axes);
/// The n-th combination: an index into the values of each axis, the last axis fastest.
std::vector<std::size_t> combination(const std::vector<SweepAxis>& axes, std::size_t n);
/// Appends the `key=value` words of a combination.
void add_sets(std::vector<std::string>& sets,
              const std::vector<SweepAxis>& axes,
              const std::vector<std::size_t>& places);
/// The words of every combination; one empty entry without axes. Error: more than
/// kMostCombinations.
Result<std::vector<std::vector<std::string>>> combinations(const std::vector<SweepAxis>& axes);

/// Parses --eta. Errors: no value, not a number from 0 to 1024, a duplicate.
Result<std::vector<double>> parse_etas(const std::vector<std::string>& texts);
/// Parses --seeds. Errors: not a whole number, a duplicate.
Result<std::vector<std::uint64_t>> parse_seeds(const std::vector<std::string>& texts);

}  // namespace temper::study
