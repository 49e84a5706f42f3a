// Which measurements a fit has used, read from where it says so: FitRecord::source names rows by id
// ("PT134, PT136"), by range ("CO084-CO086") or by file ("h200.csv"), a file together with the
// kinds that are meant if it is not all of them ("h200.csv, gemm and moe_layer"). Errors on such
// rows say how well an equation can follow its data; only the others say how well it predicts. Pure
// functions.
#pragma once

#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/validation/measurement.hpp"

#include <span>
#include <string_view>

namespace temper::sim_hw {

/// Whether `source` names the row.
bool names_row(std::string_view source, const Row& row);

/// Whether a fit of any of `hardware` names it.
bool seen_by_a_fit(std::span<const HardwareSpec* const> hardware, const Row& row);

}  // namespace temper::sim_hw
