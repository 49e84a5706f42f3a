#include "actors/server/reload.hpp"

#include "actors/server/internal/replace_all.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

namespace temper::actors {
namespace {

/// Escapes text for use inside a JSON string.
std::string in_json(const std::string& text) {
  const std::string quoted = nlohmann::json(text).dump();
  return quoted.substr(1, quoted.size() - 2);
}

/// Percent-encodes everything except letters, digits and /._~-.
std::string in_target(const std::string& text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ||
                       std::string_view("/._~-").find(c) != std::string_view::npos;
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace

Result<ServerCall> parse_reload(std::string_view text) {
  const std::size_t method_end = text.find(' ');
  const auto refused = [&](std::string_view why) {
    return invalid_input(fmt::format("\"{}\": {}", text, why));
  };
  if (method_end == std::string_view::npos || text.substr(method_end + 1, 1) != "/") {
    return refused(
        "expected `METHOD /PATH`, such as `POST /reload`, optionally followed by a space and a "
        "body");
  }
  ServerCall call;
  call.method = text.substr(0, method_end);
  if (call.method != "POST" && call.method != "PUT" && call.method != "GET")
    return refused("expected the method POST, PUT or GET");
  std::string_view rest = text.substr(method_end + 1);
  const std::size_t target_end = std::min(rest.find(' '), rest.size());
  call.target = rest.substr(0, target_end);
  rest.remove_prefix(std::min(target_end + 1, rest.size()));
  call.body = rest;
  if (!call.body.empty() && parse_json(call.body).is_discarded())
    return refused("expected a JSON body");
  if (text.find("{model}") == std::string_view::npos)
    return refused("expected {model} in the place of the weights folder");
  return call;
}

ServerCall fill_reload(ServerCall request, const std::string& folder, const std::string& label) {
  replace_all(request.target, "{model}", in_target(folder));
  replace_all(request.target, "{label}", in_target(label));
  replace_all(request.body, "{model}", in_json(folder));
  replace_all(request.body, "{label}", in_json(label));
  return request;
}

}  // namespace temper::actors
