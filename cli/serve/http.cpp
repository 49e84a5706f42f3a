#include "cli/serve/http.hpp"

#include <algorithm>
#include <charconv>

namespace temper::cli {
namespace {

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
      out += text[i] == '+' ? ' ' : text[i];
    }
  }
  return out;
}

}  // namespace

Target parse_target(std::string_view target) {
  Target out;
  const std::size_t mark = target.find('?');
  out.path = decoded(target.substr(0, mark));
  while (mark != std::string_view::npos) {
    target.remove_prefix(std::min(target.size(), target.find_first_of("?&") + 1));
    const std::string_view pair = target.substr(0, target.find('&'));
    const std::size_t equals = pair.find('=');
    out.query[decoded(pair.substr(0, equals))] =
        equals == std::string_view::npos ? "" : decoded(pair.substr(equals + 1));
    if (target.find('&') == std::string_view::npos)
      break;
  }
  return out;
}

}  // namespace temper::cli
