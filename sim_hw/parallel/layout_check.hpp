// Checks whether a model can be trained in a layout. Errors name the violated constraint, its
// numbers and the nearest value that works. Pure functions.
#pragma once

#include "core/result.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/layout/layout.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/model/model_spec.hpp"

#include <cstdint>
#include <string>

namespace temper::sim_hw {

/// Checks divisibility, without memory. Cheap; builds text only on failure.
Status check_layout(const ModelSpec& model,
                    std::int64_t devices,
                    const Layout& layout,
                    const TrainShape& shape);

/// check_layout() on `cards` cards of `hardware`, and that the fullest device's ledger fits its
/// memory.
Status check(const ModelSpec& model,
             const HardwareSpec& hardware,
             std::int64_t cards,
             const Layout& layout,
             const TrainShape& shape);

/// "weights 1.50 + optimizer 3.00": the entries above 0, in GiB.
std::string ledger_text(const Ledger& ledger);

}  // namespace temper::sim_hw
