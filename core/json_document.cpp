#include "core/json_document.hpp"

namespace temper {

nlohmann::json parse_json(std::string_view text) {
  return nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
}

nlohmann::json parse_json_or_throw(std::string_view text) {
  return nlohmann::json::parse(text);
}

}  // namespace temper
