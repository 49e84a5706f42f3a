#include "core/text/table.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper {

std::string bar_table(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i)
      widths[i] = std::max({widths[i], row[i].size(), std::size_t{3}});
  }
  std::string out;
  const auto line = [&](const std::vector<std::string>& row) {
    for (std::size_t i = 0; i < row.size(); ++i)
      out += i == 0 ? fmt::format("| {:<{}} |", row[i], widths[i])
                    : fmt::format(" {:>{}} |", row[i], widths[i]);
    out += '\n';
  };
  line(rows.front());
  for (std::size_t i = 0; i < widths.size(); ++i) {
    out += i == 0 ? fmt::format("|{:-<{}}|", "", widths[i] + 2)
                  : fmt::format("{:-<{}}:|", "", widths[i] + 1);
  }
  out += '\n';
  for (std::size_t i = 1; i < rows.size(); ++i)
    line(rows[i]);
  return out;
}

}  // namespace temper
