#include "sim_hw/calibration/store.hpp"

#include "core/files.hpp"
#include "core/yaml.hpp"
#include "core/yaml_file.hpp"

#include <algorithm>
#include <string_view>

namespace temper::sim_hw {
namespace {

/// Splits "a, b, c".
std::vector<std::string_view> names_of(std::string_view list) {
  constexpr std::string_view kBetween = ", ";
  std::vector<std::string_view> names;
  while (!list.empty()) {
    const std::size_t end = list.find_first_of(kBetween);
    if (end != 0)
      names.push_back(list.substr(0, end));
    list.remove_prefix(end == std::string_view::npos ? list.size() : end + 1);
  }
  return names;
}

}  // namespace

std::string to_yaml(const Calibration& calibration, const std::string& command) {
  std::string out = "# Fitted constants; made by\n#   " + command +
                    "\n# Meaning of each: sim_hw/hardware/constants.hpp.\n";
  YamlWriter(out).write_root(calibration);
  return out;
}

Result<Calibration> load(const std::filesystem::path& file) {
  return read_yaml_file<Calibration>(file);
}

Status save(const Calibration& calibration,
            const std::filesystem::path& file,
            const std::string& command) {
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  return write_file_atomically(file, to_yaml(calibration, command));
}

std::vector<FitRecord> records_without(std::vector<FitRecord> records,
                                       std::span<const std::string> fitted) {
  std::vector<FitRecord> kept;
  for (FitRecord& record : records) {
    std::string left;
    for (const std::string_view name : names_of(record.constants)) {
      constexpr std::string_view kGroup = "operators.";
      const auto own = name.starts_with(kGroup) ? name.substr(kGroup.size()) : name;
      if (std::find(fitted.begin(), fitted.end(), own) == fitted.end())
        left.append(left.empty() ? "" : ", ").append(name);
    }
    if (left.empty())
      continue;
    record.constants = std::move(left);
    kept.push_back(std::move(record));
  }
  return kept;
}

}  // namespace temper::sim_hw
