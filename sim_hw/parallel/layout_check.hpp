// Whether a model can be trained in a layout: if not, which term breaks, with its numbers and the
// nearest value that works. Pure functions.
#pragma once

#include "core/result.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/layout/layout.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <cstdint>

namespace temper::sim_hw {

/// Divisors of the layout, with no regard to memory: cheap, and no text unless it fails.
Status check_layout(const ModelSpec& model,
                    std::int64_t devices,
                    const Layout& layout,
                    const TrainShape& shape);

/// The above on `cards` cards of `hardware`, and that the worst device's ledger fits its memory.
Status check(const ModelSpec& model,
             const HardwareSpec& hardware,
             std::int64_t cards,
             const Layout& layout,
             const TrainShape& shape);

}  // namespace temper::sim_hw
