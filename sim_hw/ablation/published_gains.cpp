#include "sim_hw/ablation/published_gains.hpp"

#include "core/yaml_file.hpp"

namespace temper::sim_hw {

Result<PublishedGains> read_published_gains(const std::filesystem::path& file) {
  return read_yaml_file<PublishedGains>(file);
}

}  // namespace temper::sim_hw
