#include "actors/server/url.hpp"

#include "core/files.hpp"
#include "core/split.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <memory>

namespace temper::actors {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kVersion = "/v1";
constexpr std::string_view kBlanks = " \t\r\n";
constexpr std::string_view kFile = "file:";
constexpr std::string_view kDns = "dns://";

struct Place {
  std::string host;
  std::uint16_t port = 80;
};

/// How an address of its kind is written.
struct Form {
  std::string_view expected;
  std::string_view password;  ///< Where a password belongs.
  bool port = false;          ///< Must be given.
};
constexpr Form kServer{"http://HOST:PORT", "TEMPER_SERVER_KEY for a server's key"};

/// An error that shows the address without its password.
Error refusal(std::string_view address, std::string_view why, const Form& form = kServer) {
  const std::size_t at = address.rfind('@');
  const std::size_t scheme = address.find("://");
  const std::size_t shown = scheme == std::string_view::npos ? 0 : scheme + 3;
  const bool secret = at != std::string_view::npos && shown <= at;
  return invalid_input(fmt::format("\"{}{}{}\": {}; expected {}",
                                   address.substr(0, secret ? shown : 0),
                                   secret ? "***" : "",
                                   address.substr(secret ? at : 0),
                                   why,
                                   form.expected));
}

bool is_name(std::string_view host) {
  return !host.empty() && std::ranges::all_of(host, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '.' || c == '-' || c == '_';
  });
}

bool is_ipv6(const std::string& host) {
  in6_addr address{};
  return ::inet_pton(AF_INET6, host.c_str(), &address) == 1;
}

/// Parses HOST or HOST:PORT; an IPv6 address is in brackets.
Result<Place> parse_place(std::string_view text,
                          std::string_view whole,
                          const Form& form = kServer) {
  const auto wrong = [&](std::string_view why) { return refusal(whole, why, form); };
  if (text.find('@') != std::string_view::npos)
    return wrong(fmt::format("user and password are not supported; set {}", form.password));
  Place place;
  std::string_view rest;
  if (text.starts_with('[')) {
    const std::size_t end = text.find(']');
    place.host = text.substr(1, end == std::string_view::npos ? 0 : end - 1);
    rest = text.substr(std::min(end, text.size() - 1) + 1);
    if (!is_ipv6(place.host))
      return wrong("expected an IPv6 address in the brackets");
  } else {
    const std::size_t colon = std::min(text.find(':'), text.size());
    place.host = text.substr(0, colon);
    rest = text.substr(colon);
    if (is_ipv6(std::string(text)) || std::ranges::count(rest, ':') > 1)
      return wrong("an IPv6 address needs brackets, such as [::1]:8000");
    if (place.host.empty())
      return wrong("the host is missing");
    if (!is_name(place.host))
      return wrong("the host name has an invalid character");
  }
  if (rest.empty() && !form.port)
    return place;
  const std::string_view digits = rest.substr(std::min<std::size_t>(1, rest.size()));
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), place.port);
  if (!rest.starts_with(':') || error != std::errc() || end != digits.data() + digits.size() ||
      place.port == 0)
    return wrong("expected a port from 1 to 65535 after the host");
  return place;
}

Result<Url> line_of_file(const std::string& path, std::size_t index) {
  const auto content = read_file(path);
  if (!content)
    return Error{ErrorCode::Unavailable, content.error().context};
  std::size_t line = 0;
  for (const std::string_view text : lines_of(*content)) {
    const std::string_view entry = trimmed(text);
    if (entry.empty() || entry.starts_with('#'))
      continue;
    if (line++ == index)
      return parse_url(entry);
  }
  return Error{ErrorCode::Unavailable,
               fmt::format("{} has {} addresses, too few for replica {}", path, line, index)};
}

Result<Url> address_of_name(const Place& place, std::size_t index) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(place.host.c_str(), nullptr, &hints, &found); error != 0) {
    return Error{ErrorCode::Unavailable,
                 fmt::format("cannot resolve {}: {}", place.host, ::gai_strerror(error))};
  }
  const std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, &::freeaddrinfo);
  std::vector<std::string> addresses;
  for (const addrinfo* a = found; a != nullptr; a = a->ai_next) {
    std::array<char, NI_MAXHOST> text{};
    if (::getnameinfo(
            a->ai_addr, a->ai_addrlen, text.data(), text.size(), nullptr, 0, NI_NUMERICHOST) == 0)
      addresses.emplace_back(text.data());
  }
  std::sort(addresses.begin(), addresses.end());
  addresses.erase(std::unique(addresses.begin(), addresses.end()), addresses.end());
  if (index >= addresses.size()) {
    return Error{
        ErrorCode::Unavailable,
        fmt::format(
            "{} has {} addresses, too few for replica {}", place.host, addresses.size(), index)};
  }
  return Url{addresses[index], place.port, {}};
}

}  // namespace

std::string authority_of(const Url& url) {
  const bool v6 = url.host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", v6 ? "[" : "", url.host, v6 ? "]" : "", url.port);
}

std::string text_of(const Url& url) {
  return fmt::format("{}{}{}", kHttp, authority_of(url), url.prefix);
}

Result<Url> parse_url(std::string_view given) {
  const std::string_view text = trimmed(given);
  if (text.find_first_of(kBlanks) != std::string_view::npos)
    return refusal(text, "the address contains a blank");
  if (text.starts_with("https://"))
    return refusal(text, "https is not supported; put a proxy in front of the server");
  if (!text.starts_with(kHttp))
    return refusal(text, "the address must start with http://");
  const std::string_view rest = text.substr(kHttp.size());
  const std::size_t slash = std::min(rest.find_first_of("/?#"), rest.size());
  TEMPER_TRY(Place place, parse_place(rest.substr(0, slash), text));
  std::string prefix(rest.substr(slash));
  if (prefix.find_first_of("?#") != std::string::npos)
    return refusal(text, "the address must not have a query or a fragment");
  const auto drop_slashes = [&prefix] {
    while (prefix.ends_with('/'))
      prefix.pop_back();
  };
  drop_slashes();
  // Clients of OpenAI take addresses with this suffix; our requests add it themselves.
  if (prefix.ends_with(kVersion)) {
    prefix.resize(prefix.size() - kVersion.size());
    drop_slashes();
  }
  if ((prefix + '/').find("/v1/") != std::string::npos)
    return refusal(text, "this is the address of a request, not of a server");
  return Url{std::move(place.host), place.port, std::move(prefix)};
}

Result<RedisUrl> parse_redis_url(std::string_view text, std::string_view password_variable) {
  const Form form{"HOST:PORT, or rediss://HOST:PORT for TLS", password_variable, true};
  const std::size_t scheme = text.find("://");
  if (text.substr(std::min(text.find(','), text.size())).find("://") != std::string_view::npos)
    return refusal(text, "one scheme, in front of all servers, says whether they have TLS", form);
  const bool tls = text.starts_with("rediss://");
  if (scheme != std::string_view::npos && !tls && !text.starts_with("redis://"))
    return refusal(text, "the scheme must be redis:// or rediss://", form);
  const std::string_view rest = text.substr(scheme == std::string_view::npos ? 0 : scheme + 3);
  RedisUrl url{{}, tls};
  for (const std::string_view one : split(rest, ",")) {
    TEMPER_TRY(Place place, parse_place(trimmed(one), text, form));
    std::ranges::transform(place.host, place.host.begin(), [](unsigned char c) {
      return static_cast<char>(std::tolower(c));
    });
    std::pair server(std::move(place.host), place.port);
    if (std::ranges::find(url.servers, server) != url.servers.end())
      return refusal(text, "a server is there twice", form);
    url.servers.push_back(std::move(server));
  }
  return url;
}

Result<Url> find_server(const std::vector<std::string>& entries, std::size_t index) {
  TEMPER_TRY_STATUS(check_servers(entries, index + 1));
  const std::string_view first = entries.front();
  if (first.starts_with(kFile))
    return line_of_file(std::string(first.substr(kFile.size())), index);
  if (first.starts_with(kDns)) {
    TEMPER_TRY(const Place place, parse_place(first.substr(kDns.size()), first));
    return address_of_name(place, index);
  }
  return parse_url(entries[index]);
}

Status check_servers(const std::vector<std::string>& entries, std::size_t replicas) {
  if (entries.empty())
    return invalid_input("expected at least one address, found none");
  const std::string_view first = entries.front();
  if (entries.size() == 1 && first.starts_with(kFile) && first.size() > kFile.size())
    return {};
  if (entries.size() == 1 && first.starts_with(kDns)) {
    TEMPER_TRY(const Place place, parse_place(first.substr(kDns.size()), first));
    return {};
  }
  for (const std::string& entry : entries) {
    TEMPER_TRY(const Url url, parse_url(entry));
  }
  if (entries.size() < replicas) {
    return invalid_input(
        fmt::format("expected {} addresses, one per replica, found {}", replicas, entries.size()));
  }
  return {};
}

}  // namespace temper::actors
