// Writes fitted constants where Catalog reads them: configs/calibration/NAME.yaml.
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
/// `command` goes into the head of the file: how to make it again.
Status save(const Calibration& calibration,
            const std::filesystem::path& file,
            const std::string& command);

/// The provenance of the constants that a new fit leaves alone: each record without the names in
/// `fitted`, records left without a name dropped.
std::vector<FitRecord> records_without(std::vector<FitRecord> records,
                                       std::span<const std::string> fitted);

}  // namespace temper::sim_hw
