// Where a server is: http addresses, and the three ways in which a configuration gives them.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

struct Url {
  std::string host;
  std::uint16_t port = 80;
  std::string prefix;  ///< Before every path; empty or "/something".
  bool operator==(const Url&) const = default;
};
/// "host:port", an IPv6 address in brackets.
std::string authority_of(const Url& url);
/// "http://host:port/prefix".
std::string text_of(const Url& url);

/// White space around it is ignored, and so are slashes and a "/v1" at its end, which requests name
/// themselves. Errors: not http, no host, a port that is none, a user, a query; none repeats a
/// password.
Result<Url> parse_url(std::string_view text);

/// The address of replica `index`: the entry of that index, or of the only entry `file:PATH` the
/// line, of `dns://NAME:PORT` the address in ascending order. Looked up anew at each call. Errors:
/// Unavailable where it may yet come (no such file, line or address); InvalidInput where not.
Result<Url> find_server(const std::vector<std::string>& entries, std::size_t index);

/// What is wrong with the entries whatever is there when they are looked up.
Status check_servers(const std::vector<std::string>& entries, std::size_t replicas);

}  // namespace temper::actors
