#include "cli/serve/http.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

namespace temper::cli {
namespace {

/// The end of a deflate flush. Packer omits it, but browsers need it.
constexpr std::string_view kFlushMark{"\x00\x00\xff\xff", 4};

std::string decoded(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    unsigned value = 0;
    if (text[i] == '%' && i + 2 < text.size() &&
        std::from_chars(text.data() + i + 1, text.data() + i + 3, value, 16).ptr ==
            text.data() + i + 3) {
      out += static_cast<char>(value);
      i += 2;
    } else {
      out += text[i];
    }
  }
  return out;
}

/// Decodes a part of a query, in which "+" means a space.
std::string decoded_query(std::string text) {
  std::ranges::replace(text, '+', ' ');
  return decoded(text);
}

}  // namespace

std::string encoded(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    out += plain ? std::string(1, c) : fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

Target parse_target(std::string_view target) {
  Target out;
  const std::size_t mark = target.find('?');
  out.path = decoded(target.substr(0, mark));
  while (mark != std::string_view::npos) {
    target.remove_prefix(std::min(target.size(), target.find_first_of("?&") + 1));
    const std::string_view pair = target.substr(0, target.find('&'));
    const std::size_t equals = pair.find('=');
    out.query[decoded_query(std::string(pair.substr(0, equals)))] =
        equals == std::string_view::npos ? "" : decoded_query(std::string(pair.substr(equals + 1)));
    if (target.find('&') == std::string_view::npos)
      break;
  }
  return out;
}

bool accepts_gzip(std::string_view accept) {
  while (!accept.empty()) {
    std::string_view one = accept.substr(0, accept.find(','));
    accept.remove_prefix(std::min(accept.size(), one.size() + 1));
    one.remove_prefix(std::min(one.find_first_not_of(' '), one.size()));
    const std::string_view name = one.substr(0, one.find_first_of("; "));
    if (name != "gzip")
      continue;
    const std::size_t q = one.find("q=");
    return q == std::string_view::npos ||
           one.substr(q + 2).find_first_of("123456789") != std::string_view::npos;
  }
  return false;
}

std::string pack_frame(Packer& packer, std::string_view frame) {
  std::string packed;
  packer.begin();
  packer.pack(frame, packed);
  packed += kFlushMark;
  return packed;
}

}  // namespace temper::cli
