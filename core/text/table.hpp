// Tables: aligned columns between bars (also valid Markdown), and CSV from describe().
#pragma once

#include "core/scalar_text.hpp"
#include "core/text/csv.hpp"

#include <span>
#include <string>
#include <vector>

namespace temper {

/// Formats rows as a table. The first row is the header. The first column is left-aligned text, the
/// others are right-aligned. Requires: at least one row; all rows have the same length.
std::string bar_table(const std::vector<std::vector<std::string>>& rows);

namespace detail {
/// Writes the field names or the values of a struct of scalars. An absent optional is an empty
/// field.
struct CsvVisitor {
  enum class Content { Names, Values } content;
  std::string line;
  template <class T>
  void field(int,
             std::string_view name,
             const T& value,
             const std::type_identity_t<FieldMeta<T>>& = {}) {
    if (!line.empty())
      line += ',';
    if (content == Content::Names)
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

/// A header line with the field names, then one line per row.
template <class Row>
std::string to_csv(std::span<const Row> rows) {
  Row none{};
  detail::CsvVisitor names{detail::CsvVisitor::Content::Names, {}};
  describe(names, none);
  std::string out = names.line + "\n";
  for (const Row& row : rows) {
    detail::CsvVisitor values{detail::CsvVisitor::Content::Values, {}};
    describe(values, const_cast<Row&>(row));  // A writer does not modify it.
    out += values.line + "\n";
  }
  return out;
}

}  // namespace temper
