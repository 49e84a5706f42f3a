#include "core/text/csv.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper {
namespace {

/// Removes one record from the front of `text` and advances `line`.
Result<std::vector<std::string>> take_record(std::string_view& text, int& line) {
  std::vector<std::string> fields(1);
  bool quoted = false;
  std::size_t i = 0;
  for (; i < text.size(); ++i) {
    const char c = text[i];
    if (c == '\n')
      ++line;
    if (quoted) {
      if (c != '"') {
        fields.back() += c;
      } else if (i + 1 < text.size() && text[i + 1] == '"') {
        fields.back() += '"';
        ++i;
      } else {
        quoted = false;
      }
    } else if (c == '"' && fields.back().empty()) {
      quoted = true;
    } else if (c == ',') {
      fields.emplace_back();
    } else if (c == '\n') {
      ++i;
      break;
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  text.remove_prefix(i);
  if (quoted)
    return invalid_input("unterminated quote");
  return fields;
}

}  // namespace

std::size_t CsvTable::column(std::string_view name) const {
  return static_cast<std::size_t>(
      std::distance(header.begin(), std::find(header.begin(), header.end(), name)));
}

Result<CsvTable> parse_csv(std::string_view name, std::string_view text) {
  CsvTable table;
  int line = 1;
  while (!text.empty()) {
    const int begin = line;
    Result<std::vector<std::string>> fields = take_record(text, line);
    if (!fields)
      return std::move(fields).error().within(fmt::format("{}:{}", name, begin));
    if (fields->size() == 1 && fields->front().empty())
      continue;
    if (table.header.empty()) {
      table.header = std::move(*fields);
      continue;
    }
    if (fields->size() != table.header.size()) {
      return invalid_input(fmt::format("{}:{}: expected {} columns, found {}",
                                       name,
                                       begin,
                                       table.header.size(),
                                       fields->size()));
    }
    table.rows.push_back(std::move(*fields));
    table.lines.push_back(begin);
  }
  if (table.header.empty())
    return invalid_input(fmt::format("{}: expected a header line", name));
  return table;
}

std::string csv_word(std::string_view text) {
  if (text.find_first_of(",\"\r\n") == std::string_view::npos)
    return std::string(text);
  std::string out = "\"";
  for (const char c : text)
    out += c == '"' ? std::string("\"\"") : std::string(1, c);
  return out + '"';
}

std::string csv_line(const std::vector<std::string>& words) {
  std::string out;
  for (const std::string& word : words)
    out += (&word == &words.front() ? "" : ",") + csv_word(word);
  return out + '\n';
}

}  // namespace temper
