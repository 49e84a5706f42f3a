// Comma-separated values with a header line, as RFC 4180 has them: fields may be in double quotes,
// a quote inside them is doubled. Values only; no threads.
#pragma once

#include "core/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace temper {

struct CsvTable {
  std::vector<std::string> header;
  std::vector<std::vector<std::string>> rows;  ///< Each as long as the header.
  std::vector<int> lines;                      ///< Where each row begins, from 1.

  /// Index of a column, or header.size() if there is none.
  std::size_t column(std::string_view name) const;
  bool has(std::string_view name) const { return column(name) < header.size(); }
};

/// Errors name `name:line`. Empty lines are passed over.
Result<CsvTable> parse_csv(std::string_view name, std::string_view text);

/// In double quotes where commas, quotes or line breaks need them.
std::string csv_word(std::string_view text);
/// The words as one line, with its line break.
std::string csv_line(const std::vector<std::string>& words);

}  // namespace temper
