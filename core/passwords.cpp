#include "core/passwords.hpp"

#include <algorithm>

namespace temper {
namespace {

/// `word` has no blanks, quotes or brackets. Redacts up to the last "@", since a password may
/// contain one.
std::string without_password(std::string_view word) {
  constexpr std::string_view kScheme = "://";
  const std::size_t at = word.rfind('@');
  if (at == std::string_view::npos)
    return std::string(word);
  const std::size_t scheme = word.substr(0, at).find(kScheme);
  const bool is_address = scheme != std::string_view::npos;
  const std::size_t begin = is_address ? scheme + kScheme.size() : word.find('=') + 1;
  if (begin > at || (!is_address && word.substr(begin, at - begin).find(':') == word.npos))
    return std::string(word);
  return std::string(word.substr(0, begin)) + "***" + std::string(word.substr(at));
}

}  // namespace

std::string without_passwords(std::string_view text) {
  constexpr std::string_view kEnds = " \t\r\n\"'`,[](){}<>";
  std::string out;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(kEnds), text.size());
    out += without_password(text.substr(0, end));
    out += text.substr(end, 1);
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return out;
}

}  // namespace temper
