// The text of what is wrong with a configuration.
#include "core/result.hpp"
#include "core/yaml_tree.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper {

std::string render(std::span<const ConfigIssue> issues) {
  constexpr std::size_t kShown = 100;
  std::string out;
  for (std::size_t i = 0; i < std::min(issues.size(), kShown); ++i) {
    const ConfigIssue& issue = issues[i];
    out += issue.location + ": ";
    if (!issue.key.empty())
      out += issue.key + ": ";
    out += issue.message + "\n";
  }
  if (issues.size() > kShown)
    out += fmt::format("... and {} more\n", issues.size() - kShown);
  return out;
}

Error config_error(std::span<const ConfigIssue> issues) {
  std::string text = render(issues);
  if (text.ends_with('\n'))
    text.pop_back();
  return invalid_input(std::move(text));
}

}  // namespace temper
