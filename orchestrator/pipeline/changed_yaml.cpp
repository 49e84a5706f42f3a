#include "orchestrator/pipeline/changed_yaml.hpp"

#include "core/yaml.hpp"
#include "orchestrator/pipeline/load.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>
#include <string_view>
#include <vector>

namespace temper::orchestrator {
namespace {

std::size_t indentation(std::string_view line) {
  return line.find_first_not_of(' ');
}

/// A key in the output of to_yaml(): its own line, and the indented lines below it.
struct Block {
  std::string_view line;
  std::span<const std::string_view> below;
};

std::vector<Block> blocks_of(std::span<const std::string_view> lines) {
  std::vector<Block> blocks;
  for (std::size_t begin = 0, end = 0; begin < lines.size(); begin = end) {
    end = begin + 1;
    while (end < lines.size() && indentation(lines[end]) > indentation(lines[begin]))
      ++end;
    blocks.push_back({lines[begin], lines.subspan(begin + 1, end - begin - 1)});
  }
  return blocks;
}

/// The blocks that differ from `known`; of a section, only the keys that differ.
std::string differing(std::span<const std::string_view> lines,
                      std::span<const std::string_view> known) {
  std::string out;
  const std::vector<Block> others = blocks_of(known);
  for (const Block& block : blocks_of(lines)) {
    const std::string_view key = block.line.substr(0, block.line.find(':'));
    const auto other = std::ranges::find_if(
        others, [&](const Block& o) { return o.line.substr(0, o.line.find(':')) == key; });
    const bool there = other != others.end();
    if (there && block.line == other->line && std::ranges::equal(block.below, other->below))
      continue;
    const bool section = there && !block.below.empty() && !other->below.empty() &&
                         block.below.front()[indentation(block.below.front())] != '-';
    out += fmt::format("{}\n", block.line);
    out += section
               ? differing(block.below, other->below)
               : fmt::format("{}{}", fmt::join(block.below, "\n"), block.below.empty() ? "" : "\n");
  }
  return out;
}

std::vector<std::string_view> lines_of(std::string_view text) {
  std::vector<std::string_view> lines;
  for (std::size_t end = 0; !text.empty(); text.remove_prefix(std::min(text.size(), end + 1))) {
    end = std::min(text.find('\n'), text.size());
    lines.push_back(text.substr(0, end));
  }
  return lines;
}

}  // namespace

std::string changed_yaml(const PipelineConfig& config) {
  const std::string set = fmt::format("hardware={}", name_of(config.hardware));
  const LoadedConfig defaults("", "", std::span(&set, 1));
  const std::string mine = to_yaml(config);
  PipelineConfig base = defaults.config();
  base.hardware = PipelineConfig().hardware;
  const std::string theirs = to_yaml(base);
  return differing(lines_of(mine), lines_of(theirs));
}

}  // namespace temper::orchestrator
