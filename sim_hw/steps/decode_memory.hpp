// Checks whether the weights, keys and values of a decode step or a forward pass fit a device.
#pragma once

#include "core/result.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/steps/rollout_layout.hpp"

namespace temper::sim_hw {

/// `batch` sequences of `context` tokens on each replica. The error names the ledger and the
/// nearest batch that fits or, if the weights alone do not fit, the nearest tensor parallelism.
Status check_decode_memory(const ModelSpec& model,
                           const HardwareSpec& hardware,
                           const RolloutDevices& layout,
                           double batch,
                           double context);

/// The same for a forward pass over `batch` x `seq` tokens on one device. Kept: keys and values
/// stay in the cache (prefill); Dropped: they do not (log-probs).
enum class CacheRetention { Dropped, Kept };
Status check_pass_memory(const ModelSpec& model,
                         const HardwareSpec& hardware,
                         double batch,
                         double seq,
                         CacheRetention cached);

}  // namespace temper::sim_hw
