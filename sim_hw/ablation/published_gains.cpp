#include "sim_hw/ablation/published_gains.hpp"

#include "core/files.hpp"
#include "core/yaml.hpp"

namespace temper::sim_hw {

Result<PublishedGains> read_published_gains(const std::filesystem::path& file) {
  TEMPER_TRY(const std::string text, read_file(file));
  YamlValue<PublishedGains> read = read_yaml<PublishedGains>(file.string(), text);
  if (!read.issues.empty())
    return invalid_input(render(locate(read.document, std::move(read.issues))));
  return read.value;
}

}  // namespace temper::sim_hw
