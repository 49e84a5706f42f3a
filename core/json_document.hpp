// JSON documents without a described struct. The parser is instantiated once, in json_document.cpp,
// because it is our largest template.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

namespace temper {

/// Parses a document. The result `is_discarded()` if the text is not JSON.
nlohmann::json parse_json(std::string_view text);
/// Throws nlohmann::json::exception, which names the place of the error.
nlohmann::json parse_json_or_throw(std::string_view text);

}  // namespace temper
