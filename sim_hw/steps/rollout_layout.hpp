// Checks whether a rollout fits a cluster's devices: tensor-parallel replicas, experts over all.
#pragma once

#include "core/result.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <cstdint>

namespace temper::sim_hw {

struct RolloutDevices {
  std::int64_t tp = 1;
  std::int64_t dp = 1;
  std::int64_t ep = 1;
  std::int64_t redundant_experts = 0;
};

/// Errors name the violated constraint, its numbers and the nearest value that works.
Status check_rollout_layout(const ModelSpec& model,
                            const HardwareSpec& hardware,
                            std::int64_t cards,
                            const RolloutDevices& layout);

}  // namespace temper::sim_hw
