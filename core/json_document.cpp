#include "core/json_document.hpp"

#include <algorithm>
#include <string>

namespace temper {
namespace {

/// The parser takes a NUL byte for the end of the text. Any other control character is an error.
std::string without_nul(std::string_view text) {
  std::string copy(text);
  std::ranges::replace(copy, '\0', '\1');
  return copy;
}

}  // namespace

nlohmann::json parse_json(std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    return nlohmann::json::value_t::discarded;
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

nlohmann::json parse_json_or_throw(std::string_view text) {
  if (text.find('\0') != std::string_view::npos)
    return nlohmann::json::parse(without_nul(text));
  return nlohmann::json::parse(text);
}

}  // namespace temper
