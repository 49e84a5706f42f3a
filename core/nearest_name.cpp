#include "core/nearest_name.hpp"

#include <algorithm>
#include <vector>

namespace temper {

std::size_t edit_distance(std::string_view a, std::string_view b) {
  // Three rows of the Damerau-Levenshtein table (restricted: no letter is edited twice).
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  for (std::size_t j = 0; j <= b.size(); ++j)
    above[j] = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({substitution, above[j] + 1, row[j - 1] + 1});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
        row[j] = std::min(row[j], before[j - 2] + 1);
    }
    before.swap(above);
    above.swap(row);
  }
  return above[b.size()];
}

std::optional<std::string_view> nearest_name(std::string_view written,
                                             std::span<const std::string> names) {
  constexpr std::size_t kLongest = 64;  // Longer input is not a misspelled name.
  if (written.size() > kLongest)
    return std::nullopt;
  std::optional<std::string_view> best;
  std::size_t best_distance = 0;
  for (const std::string& name : names) {
    const std::size_t allowed = std::max<std::size_t>(1, std::max(name.size(), written.size()) / 3);
    const std::size_t distance = edit_distance(written, name);
    if (distance <= allowed && distance < name.size() && (!best || distance < best_distance)) {
      best = name;
      best_distance = distance;
    }
  }
  return best;
}

}  // namespace temper
