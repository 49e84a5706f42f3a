#include "actors/server/url.hpp"

#include "core/files.hpp"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netdb.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <memory>

namespace temper::actors {
namespace {

constexpr std::string_view kHttp = "http://";
constexpr std::string_view kFile = "file:";
constexpr std::string_view kDns = "dns://";

struct Place {
  std::string host;
  std::uint16_t port = 80;
};

/// HOST or HOST:PORT; an IPv6 address in brackets.
Result<Place> parse_place(std::string_view text, std::string_view whole) {
  const std::size_t bracket = text.find(']');
  const std::size_t colon = text.find(':', bracket == std::string_view::npos ? 0 : bracket);
  Place place{std::string(text.substr(0, colon)), 80};
  if (place.host.starts_with('[') && place.host.ends_with(']'))
    place.host = place.host.substr(1, place.host.size() - 2);
  if (place.host.empty())
    return invalid_input(fmt::format("\"{}\" names no host", whole));
  if (colon == std::string_view::npos)
    return place;
  const std::string_view digits = text.substr(colon + 1);
  const auto [end, error] =
      std::from_chars(digits.data(), digits.data() + digits.size(), place.port);
  if (error != std::errc() || end != digits.data() + digits.size() || place.port == 0)
    return invalid_input(fmt::format("\"{}\": \"{}\" is no port", whole, digits));
  return place;
}

std::string_view trimmed(std::string_view line) {
  while (!line.empty() && (line.back() == '\r' || line.back() == ' ' || line.back() == '\t'))
    line.remove_suffix(1);
  while (!line.empty() && (line.front() == ' ' || line.front() == '\t'))
    line.remove_prefix(1);
  return line;
}

Result<Url> line_of_file(const std::string& path, std::size_t index) {
  const auto content = read_file(path);
  if (!content)
    return Error{ErrorCode::Unavailable, content.error().context};
  std::size_t line = 0;
  std::string_view rest = *content;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find('\n'), rest.size());
    const std::string_view entry = trimmed(rest.substr(0, end));
    rest.remove_prefix(std::min(end + 1, rest.size()));
    if (entry.empty() || entry.starts_with('#'))
      continue;
    if (line++ == index)
      return parse_url(entry);
  }
  return Error{ErrorCode::Unavailable,
               fmt::format("{} has {} addresses, replica {} needs one more", path, line, index)};
}

Result<Url> address_of_name(const Place& place, std::size_t index) {
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  addrinfo* found = nullptr;
  if (const int error = ::getaddrinfo(place.host.c_str(), nullptr, &hints, &found); error != 0) {
    return Error{ErrorCode::Unavailable,
                 fmt::format("no address of {}: {}", place.host, ::gai_strerror(error))};
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
            "{} has {} addresses, replica {} needs one more", place.host, addresses.size(), index)};
  }
  return Url{addresses[index], place.port, {}};
}

}  // namespace

std::string text_of(const Url& url) {
  const bool v6 = url.host.find(':') != std::string::npos;
  return fmt::format(
      "{}{}{}{}:{}{}", kHttp, v6 ? "[" : "", url.host, v6 ? "]" : "", url.port, url.prefix);
}

Result<Url> parse_url(std::string_view text) {
  if (!text.starts_with(kHttp)) {
    return invalid_input(fmt::format(
        "\"{}\": a server's address begins with http:// (for https, put a proxy before it)", text));
  }
  const std::string_view rest = text.substr(kHttp.size());
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  TEMPER_TRY(Place place, parse_place(rest.substr(0, slash), text));
  std::string prefix(rest.substr(slash));
  while (prefix.ends_with('/'))
    prefix.pop_back();
  return Url{std::move(place.host), place.port, std::move(prefix)};
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
    return invalid_input("no address is given");
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
    return invalid_input(fmt::format("{} addresses for {} replicas", entries.size(), replicas));
  }
  return {};
}

}  // namespace temper::actors
