#include "sim_hw/calibration/store.hpp"

#include "core/files.hpp"
#include "core/yaml.hpp"

namespace temper::sim_hw {

std::string to_yaml(const Calibration& calibration, const std::string& command) {
  std::string out = "# Fitted constants; made by\n#   " + command +
                    "\n# Meaning of each: sim_hw/hardware/constants.hpp.\n";
  YamlWriter(out).write_root(calibration);
  return out;
}

Result<Calibration> load(const std::filesystem::path& file) {
  TEMPER_TRY(const std::string text, read_file(file));
  YamlValue<Calibration> read = read_yaml<Calibration>(file.string(), text);
  if (!read.issues.empty())
    return invalid_input(render(locate(read.document, std::move(read.issues))));
  return std::move(read.value);
}

Status save(const Calibration& calibration,
            const std::filesystem::path& file,
            const std::string& command) {
  std::error_code failed;
  std::filesystem::create_directories(file.parent_path(), failed);
  return write_file_atomically(file, to_yaml(calibration, command));
}

}  // namespace temper::sim_hw
