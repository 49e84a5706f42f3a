// JSON that is read without a struct of its own. The library's parser is instantiated once, in
// json_document.cpp: it is the largest template that we have.
#pragma once

#include <nlohmann/json.hpp>

#include <string_view>

namespace temper {

/// The document; `is_discarded()` where the text is no JSON.
nlohmann::json parse_json(std::string_view text);
/// The same. Throws nlohmann::json::exception, which says where, instead.
nlohmann::json parse_json_or_throw(std::string_view text);

}  // namespace temper
