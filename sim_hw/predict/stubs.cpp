// Areas whose kinds are not written yet. Each function here goes when its own source is there.
#include "sim_hw/predict/predict.hpp"

namespace temper::sim_hw {

std::span<const Kind> parallel_kinds() {
  return {};
}

}  // namespace temper::sim_hw
