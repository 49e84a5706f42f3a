// Server addresses: http URLs, the three ways to configure them, and addresses of Redis servers.
#pragma once

#include "core/result.hpp"

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace temper::actors {

struct Url {
  std::string host;
  std::uint16_t port = 80;
  std::string prefix;  ///< Before every path; empty or "/something".
  bool operator==(const Url&) const = default;
};
/// "host:port", with brackets around an IPv6 address.
std::string authority_of(const Url& url);
/// "http://host:port/prefix".
std::string text_of(const Url& url);

/// Ignores surrounding white space, trailing slashes and a trailing "/v1", which requests add
/// themselves. Error InvalidInput: not http, no host, an invalid port, a user, or a query; the
/// message never contains a password.
Result<Url> parse_url(std::string_view text);

struct RedisUrl {
  std::vector<std::pair<std::string, std::uint16_t>> servers;  ///< Hosts and ports, all different.
  bool tls = false;
  bool operator==(const RedisUrl&) const = default;
};

/// "host:port" or "redis://host:port", or with TLS "rediss://host:port"; brackets around an IPv6
/// address. Further servers follow after commas, without the scheme. Error InvalidInput: another
/// scheme, no host, no valid port, a user, or a server twice; the message names the variable that a
/// password belongs to, and never a password.
Result<RedisUrl> parse_redis_url(std::string_view text, std::string_view password_variable);

/// The address of replica `index`: the entry with that index, or with a single entry, that line of
/// `file:PATH` or that address, in ascending order, of `dns://NAME:PORT`. Looked up at each call.
/// Errors: Unavailable if it may still appear (no such file, line or address); otherwise
/// InvalidInput.
Result<Url> find_server(const std::vector<std::string>& entries, std::size_t index);

/// Checks the form of the entries without looking them up. Error: InvalidInput.
Status check_servers(const std::vector<std::string>& entries, std::size_t replicas);

}  // namespace temper::actors
