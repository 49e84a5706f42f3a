#include "sim_hw/validation/error_spread.hpp"

#include "sim_hw/published/measurement_file.hpp"
#include "sim_hw/request/readable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace temper::sim_hw {
namespace {

/// Rows of these kinds in the files that ship, in the order of their names.
Result<std::vector<Row>> measured_rows(Catalog& catalog, std::span<const MeasuredAs> kinds) {
  std::vector<std::filesystem::path> files;
  std::error_code error;
  const std::filesystem::path folder = catalog.configs() / "validation";
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (entry.path().extension() == ".csv")
      files.push_back(entry.path());
  }
  if (error)
    return Error{ErrorCode::NotFound, fmt::format("{}: {}", folder.string(), error.message())};
  std::ranges::sort(files);
  std::vector<Row> rows;
  for (const std::filesystem::path& file : files) {
    TEMPER_TRY(MeasurementFile each, read_any(file, catalog));
    for (Row& row : each.rows) {
      if (std::ranges::any_of(kinds, [&](const MeasuredAs& k) {
            return k.kind == row.kind && k.metric == row.metric;
          }))
        rows.push_back(std::move(row));
    }
  }
  return rows;
}

}  // namespace

std::string ErrorSpread::text() const {
  return fmt::format("{} at most ({} on average) over {} measured {} of {} on {}",
                     percent(max),
                     percent(mean),
                     rows,
                     rows == 1 ? "row" : "rows",
                     kinds,
                     hardware);
}

Result<ErrorSpread> error_spread(Catalog& catalog,
                                 const HardwareSpec& hardware,
                                 std::span<const MeasuredAs> kinds) {
  TEMPER_TRY(const std::vector<Row> rows, measured_rows(catalog, kinds));
  std::map<std::string, ErrorSpread> by_hardware;
  for (const Comparison& row : compare(catalog, rows)) {
    const auto error = row.error();
    if (!error)
      continue;
    const auto spec = catalog.hardware(row.row.hardware);
    if (!spec)
      continue;
    ErrorSpread& spread = by_hardware[(*spec)->name];
    spread.hardware = (*spec)->name;
    const std::string kind = row.row.kind + " " + row.row.metric;
    if (spread.kinds.find(kind) == std::string::npos)
      spread.kinds += (spread.kinds.empty() ? "" : ", ") + kind;
    ++spread.rows;
    spread.mean += std::abs(*error);
    spread.max = std::max(spread.max, std::abs(*error));
  }
  if (by_hardware.empty())
    return Error{ErrorCode::NotFound, "no measurement of these kinds"};
  for (auto& [name, spread] : by_hardware)
    spread.mean /= static_cast<double>(spread.rows);
  if (const auto here = by_hardware.find(hardware.name); here != by_hardware.end())
    return here->second;
  ErrorSpread worst =
      std::ranges::max_element(by_hardware, {}, [](const auto& s) { return s.second.max; })->second;
  worst.elsewhere = true;
  return worst;
}

}  // namespace temper::sim_hw
