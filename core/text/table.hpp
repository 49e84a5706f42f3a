// Rows for people and for files: columns lined up between bars (which is also Markdown), and CSV
// from describe().
#pragma once

#include "core/scalar_text.hpp"
#include "core/text/csv.hpp"

#include <span>
#include <string>
#include <vector>

namespace temper {

/// The first row is the head; the first column is text, the others are numbers.
/// Requires: rows of equal length, at least one.
std::string bar_table(const std::vector<std::vector<std::string>>& rows);

namespace detail {
/// Names, then values, of a struct of scalars; of an absent optional nothing.
struct CsvVisitor {
  enum class What { Names, Values } what;
  std::string line;
  template <class T>
  void field(int,
             std::string_view name,
             const T& value,
             const std::type_identity_t<FieldMeta<T>>& = {}) {
    if (!line.empty())
      line += ',';
    if (what == What::Names)
      line += name;
    else if constexpr (OptionalLike<T>)
      line += value ? scalar_text(*value) : "";  // NOLINT(bugprone-branch-clone): of three types
    else if constexpr (std::same_as<T, std::string>)
      line += csv_word(value);
    else
      line += scalar_text(value);
  }
};
}  // namespace detail

/// A line of names, then one per row.
template <class Row>
std::string to_csv(std::span<const Row> rows) {
  Row none{};
  detail::CsvVisitor names{detail::CsvVisitor::What::Names, {}};
  describe(names, none);
  std::string out = names.line + "\n";
  for (const Row& row : rows) {
    detail::CsvVisitor values{detail::CsvVisitor::What::Values, {}};
    describe(values, const_cast<Row&>(row));  // A writer only looks.
    out += values.line + "\n";
  }
  return out;
}

}  // namespace temper
