#include "orchestrator/pipeline/payloads_section.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>

namespace temper::orchestrator {

Result<HostAndPort> parse_host_and_port(std::string_view text) {
  if (text.find('@') != std::string_view::npos)
    return invalid_input(
        "expected HOST:PORT without a user or password, which belongs into TEMPER_REDIS_PASSWORD");
  const std::string found = text.empty() ? "nothing" : fmt::format("\"{}\"", text);
  const Error wrong = invalid_input(
      fmt::format("expected HOST:PORT, such as 10.0.0.7:6379 or [::1]:6379, found {}", found));
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos)
    return wrong;
  std::string_view host = text.substr(0, colon);
  const bool brackets = host.size() > 2 && host.front() == '[' && host.back() == ']';
  if (brackets)
    host = host.substr(1, host.size() - 2);
  const bool possible = std::ranges::all_of(host, [&](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_' || (brackets && c == ':');
  });
  const std::string_view digits = text.substr(colon + 1);
  HostAndPort out{std::string(host), 0};
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), out.port);
  if (host.empty() || !possible || error != std::errc() || end != digits.data() + digits.size() ||
      out.port == 0)
    return wrong;
  return out;
}

}  // namespace temper::orchestrator
