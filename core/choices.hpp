// Tables of what a key can be: one row for each enumerator, with at least `value`, `name` and
// `doc`. Names, documentation and properties of the enumeration come from its table.
#pragma once

#include <array>
#include <cstddef>
#include <functional>
#include <string>
#include <string_view>
#include <utility>

namespace temper {

/// For EnumNames: `static constexpr auto value = names_of_rows(kTable);`
template <class Row, std::size_t N>
constexpr auto names_of_rows(const std::array<Row, N>& rows) {
  std::array<std::pair<decltype(Row::value), std::string_view>, N> names;
  for (std::size_t i = 0; i < N; ++i)
    names[i] = {rows[i].value, rows[i].name};
  return names;
}

/// Requires: a row of this value.
template <class Row, std::size_t N>
constexpr const Row& row_of(const std::array<Row, N>& rows, decltype(Row::value) value) {
  std::size_t at = 0;
  while (rows[at].value != value)
    ++at;
  return rows[at];
}

/// "`one`: what it does; `two`, `three`: what these do."
template <class Row, std::size_t N>
std::string doc_of_rows(std::string_view introduction, const std::array<Row, N>& rows) {
  std::string out(introduction);
  for (std::size_t i = 0; i < N; ++i) {
    out.append("`").append(rows[i].name).append("`");
    const bool last = i + 1 == N;
    if (!last && rows[i + 1].doc == rows[i].doc)
      out.append(", ");
    else
      out.append(": ").append(rows[i].doc).append(last ? "." : "; ");
  }
  return out;
}

/// "`one`, `two` or `three`" of those rows that `holds`.
template <class Row, std::size_t N, class P>
std::string names_where(const std::array<Row, N>& rows, P&& holds) {
  std::string out, last;
  for (const Row& row : rows) {
    if (!std::invoke(holds, row))
      continue;
    if (!last.empty())
      out.append(out.empty() ? "" : ", ").append(last);
    last.assign("`").append(row.name).append("`");
  }
  return out.empty() ? last : out + " or " + last;
}

}  // namespace temper
