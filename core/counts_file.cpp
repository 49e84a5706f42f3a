#include "core/counts_file.hpp"

#include "core/files.hpp"
#include "core/json_document.hpp"

#include <fmt/format.h>

namespace temper {

Result<std::vector<std::int64_t>> read_counts(const std::filesystem::path& file,
                                              std::string_view what) {
  TEMPER_TRY(const std::string text, read_file(file));
  const nlohmann::json parsed = parse_json(text);
  if (!parsed.is_array() || parsed.empty())
    return invalid_input(
        fmt::format("{}: expected a non-empty JSON array of {}", file.string(), what));
  std::vector<std::int64_t> counts;
  counts.reserve(parsed.size());
  for (const nlohmann::json& each : parsed) {
    if (!each.is_number_integer() || each.get<std::int64_t>() < 1) {
      return invalid_input(fmt::format("{}: entry {}: expected an integer >= 1, found `{}`",
                                       file.string(),
                                       counts.size() + 1,
                                       each.dump()));
    }
    counts.push_back(each.get<std::int64_t>());
  }
  return counts;
}

}  // namespace temper
