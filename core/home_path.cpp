#include "core/home_path.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cstdlib>

namespace temper {
namespace {

/// The path component that starts at `begin`.
std::string_view part_at(std::string_view path, std::size_t begin) {
  return path.substr(begin, std::min(path.find('/', begin), path.size()) - begin);
}

bool is_variable(std::string_view part) {
  const auto is_word = [](unsigned char c) { return std::isalnum(c) != 0 || c == '_'; };
  return part.size() > 1 && part.front() == '$' &&
         std::isdigit(static_cast<unsigned char>(part[1])) == 0 &&
         std::ranges::all_of(part.substr(1), is_word);
}

/// The first part of the path that a shell would expand; empty if there is none.
std::string_view shell_expansion(std::string_view path) {
  for (std::size_t begin = 0; begin < path.size();) {
    const std::string_view part = part_at(path, begin);
    if (is_variable(part))
      return part;
    begin += part.size() + 1;
  }
  for (const auto& [open, close] : {std::pair{"${", '}'}, std::pair{"$(", ')'}}) {
    if (const std::size_t at = path.find(open); at != std::string_view::npos) {
      const std::size_t end = std::min(path.find(close, at), path.size() - 1);
      return path.substr(at, end + 1 - at);
    }
  }
  const std::string_view first = part_at(path, 0);
  return first.size() > 1 && first.front() == '~' && first.size() < path.size() ? first : "";
}

}  // namespace

Result<std::string> expand_home(std::string_view path, std::string_view home) {
  constexpr std::array<std::string_view, 3> kHome{"~", "${HOME}", "$HOME"};
  const std::string_view first = part_at(path, 0);
  const bool from_home = std::ranges::find(kHome, first) != kHome.end();
  const std::string_view rest = from_home ? path.substr(first.size()) : path;
  if (const std::string_view found = shell_expansion(rest); !found.empty()) {
    return invalid_input(
        fmt::format("`{}` in the path \"{}\" is not expanded; only a leading `~/` or "
                    "`${{HOME}}/` is. Write out the full path",
                    found,
                    path));
  }
  if (!from_home)
    return std::string(path);
  if (!home.starts_with('/')) {
    return invalid_input(
        fmt::format("`{}` in the path \"{}\" needs an absolute HOME, found {}; set HOME or write "
                    "out the full path",
                    first,
                    path,
                    home.empty() ? "none" : fmt::format("\"{}\"", home)));
  }
  const std::size_t end = home.find_last_not_of('/');
  const std::string_view root = home.substr(0, end == std::string_view::npos ? 0 : end + 1);
  return root.empty() && rest.empty() ? "/" : fmt::format("{}{}", root, rest);
}

std::string home_folder() {
  const char* const home = std::getenv("HOME");  // NOLINT(concurrency-mt-unsafe): nobody writes.
  return home == nullptr ? std::string() : std::string(home);
}

}  // namespace temper
