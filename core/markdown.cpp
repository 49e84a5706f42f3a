#include "core/markdown.hpp"

#include <fmt/format.h>

namespace temper::detail {
namespace {

/// Escapes the pipe, which would end the cell.
std::string cell(std::string_view text) {
  std::string out;
  for (const char c : text) {
    if (c == '|')
      out += '\\';
    out += c == '\n' ? ' ' : c;
  }
  return out;
}

}  // namespace

std::string markdown_code(const std::string& text) {
  return text.empty() ? "" : "`" + text + "`";
}

std::string markdown_heading(const std::string& title, const MarkdownOptions& options) {
  return fmt::format("{} `{}`\n\n", options.heading, title);
}

std::string markdown_table(const std::vector<MarkdownRow>& rows, const MarkdownOptions& options) {
  if (rows.empty())
    return "No fields.\n";
  std::string out = options.ids ? "| # | field | type |" : "| key | type |";
  std::string rule = options.ids ? "|---|---|---|" : "|---|---|";
  if (options.defaults) {
    out += " default | bounds |";
    rule += "---|---|";
  }
  out += " meaning |\n" + rule + "---|\n";
  for (const MarkdownRow& row : rows) {
    if (options.ids)
      out += fmt::format("| {} ", row.id);
    out += fmt::format("| `{}` | {} |", row.name, cell(row.type));
    if (options.defaults)
      out += fmt::format(" {} | {} |", cell(row.initial), cell(row.bounds));
    out += fmt::format(" {} |\n", cell(row.doc));
  }
  return out;
}

}  // namespace temper::detail
