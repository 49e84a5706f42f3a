// Determines which measurements a fit has used, from FitRecord::source. A source names rows by id
// ("PT134, PT136"), by range ("CO084-CO086") or by file ("h200.csv"), optionally with the kinds
// that it means ("h200.csv, gemm and moe_layer"). Errors on used rows show how well an equation can
// follow its data; only the others show how well it predicts. If a hardware records no fit for the
// constants behind a kind, its rows may have been used too. Pure functions.
#pragma once

#include "sim_hw/framework/framework.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/measurements/measurement.hpp"

#include <span>
#include <string_view>

namespace temper::sim_hw {

/// Whether `source` names the row.
bool names_row(std::string_view source, const Row& row);

enum class Provenance {
  Unused,      ///< No fit names the row, and the constants behind its kind name their sources.
  Used,        ///< A fit names the row.
  Unrecorded,  ///< The constants behind its kind name no source, so the row may have been used.
};
Provenance provenance(std::span<const HardwareSpec* const> hardware,
                      std::span<const FrameworkSpec* const> frameworks,
                      const Row& row);

}  // namespace temper::sim_hw
