// Writes fitted constants to the file that Catalog reads: configs/calibration/NAME.yaml.
#pragma once

#include "core/result.hpp"
#include "sim_hw/hardware/constants.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace temper::sim_hw {

std::string to_yaml(const Calibration& calibration, const std::string& command);
Result<Calibration> load(const std::filesystem::path& file);
/// `command` is written into the file's header, so that the fit can be repeated.
Status save(const Calibration& calibration,
            const std::filesystem::path& file,
            const std::string& command);

/// Provenance of the constants that a new fit leaves alone: each record without the names in
/// `fitted`. Records left without a name are dropped.
std::vector<FitRecord> records_without(std::vector<FitRecord> records,
                                       std::span<const std::string> fitted);

}  // namespace temper::sim_hw
