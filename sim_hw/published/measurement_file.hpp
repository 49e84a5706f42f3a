// Reads every file of configs/validation: measurements, published rows, and the list of published
// rows that no rule converts. No threads.
#pragma once

#include "core/result.hpp"
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/measurements/measurement.hpp"
#include "sim_hw/published/published.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace temper::sim_hw {

/// Rows of a file in any known format: measurements, publications (converted), or unused published
/// rows (id,what,reason,table).
struct MeasurementFile {
  std::vector<Row> rows;
  std::vector<UnusedRow> unused;
};
/// Errors name the file and line.
Result<MeasurementFile> read_any(const std::filesystem::path& file, Catalog& catalog);

std::string to_csv(std::span<const UnusedRow> unused);

}  // namespace temper::sim_hw
