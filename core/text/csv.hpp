// CSV with a header line, as in RFC 4180: fields may be in double quotes, and a quote inside them
// is doubled. Pure functions.
#pragma once

#include "core/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace temper {

struct CsvTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  ///< Each row has as many fields as the header.
  std::vector<int> lines;                      ///< Line on which each row begins, from 1.

  /// Index of the column, or header.size() if there is no such column.
  std::size_t column(std::string_view name) const;
  bool has(std::string_view name) const { return column(name) < header.size(); }
};

/// Skips empty lines. Errors: InvalidInput, starting with `name:line`.
Result<CsvTable> parse_csv(std::string_view name, std::string_view text);

/// Quotes the text if it contains a comma, quote or line break.
std::string csv_word(std::string_view text);
/// Joins the fields into one line, including the line break.
std::string csv_line(const std::vector<std::string>& words);

}  // namespace temper
