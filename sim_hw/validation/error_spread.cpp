#include "sim_hw/validation/error_spread.hpp"

#include "core/text/numbers.hpp"
#include "sim_hw/published/measurement_file.hpp"
#include "sim_hw/validation/unmeasured.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

namespace temper::sim_hw {
namespace {

/// Rows of these kinds in the shipped files, in the order of the file names.
Result<std::vector<Row>> measured_rows(Catalog& catalog, std::span<const KindMetric> kinds) {
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
      if (std::ranges::any_of(kinds, [&](const KindMetric& k) {
            return k.kind == row.kind && k.metric == row.metric;
          }))
        rows.push_back(std::move(row));
    }
  }
  return rows;
}

using Spreads = std::map<std::string, ErrorSpread>;

/// Error spread by hardware.
Spreads spreads_of(Catalog& catalog, std::span<const Row> rows) {
  Spreads out;
  for (const Comparison& row : compare(catalog, rows)) {
    const auto error = row.error();
    if (!error)
      continue;
    const auto spec = catalog.hardware(row.row.hardware);
    if (!spec)
      continue;
    ErrorSpread& spread = out[(*spec)->name];
    spread.hardware = (*spec)->name;
    const std::string kind = row.row.kind + " " + row.row.metric;
    if (spread.kinds.find(kind) == std::string::npos)
      spread.kinds += (spread.kinds.empty() ? "" : ", ") + kind;
    ++spread.rows;
    spread.mean += std::abs(*error);
    spread.max = std::max(spread.max, std::abs(*error));
  }
  for (auto& [name, spread] : out)
    spread.mean /= static_cast<double>(spread.rows);
  return out;
}

/// Error spread stated by the fits of the hardware; their rows may be in a user's file.
std::optional<ErrorSpread> spread_of_fits(const HardwareSpec& hardware,
                                          std::span<const KindMetric> kinds) {
  ErrorSpread out;
  out.hardware = hardware.name;
  for (const FitRecord& fit : hardware.fits) {
    const auto named = std::ranges::find_if(kinds, [&](const KindMetric& k) {
      return fit.source.ends_with(fmt::format(", {}", k.kind)) ||
             fit.source.starts_with(fmt::format("{}, rows", k.kind));
    });
    if (fit.rows == 0 || named == kinds.end())
      continue;
    out.kinds += (out.kinds.empty() ? "" : ", ") + std::string(named->kind);
    out.rows += fit.rows;
    out.mean += fit.mean_error * static_cast<double>(fit.rows);
    out.max = std::max(out.max, fit.max_error);
  }
  if (out.rows == 0)
    return std::nullopt;
  out.mean /= static_cast<double>(out.rows);
  return out;
}

/// The spreads of other hardware when the default and unsourced values of `hardware` replace their
/// measured ones. False: there are no such values.
bool put_defaults_in(const Catalog& catalog,
                     const HardwareSpec& hardware,
                     std::span<const Row> rows,
                     Spreads& spreads) {
  std::vector<UnmeasuredConstant> unmeasured = unmeasured_constants(hardware);
  std::erase_if(unmeasured,
                [](const UnmeasuredConstant& u) { return u.origin == ConstantOrigin::TakenOver; });
  if (unmeasured.empty())
    return false;
  Catalog changed(catalog.configs());
  for (const auto& [name, spread] : spreads) {
    const auto spec = changed.hardware(name);
    if (!spec)
      continue;
    HardwareSpec with = **spec;
    for (const UnmeasuredConstant& constant : unmeasured)
      copy_constant(with, hardware, constant.name);
    changed.put(std::move(with));
  }
  spreads = spreads_of(changed, rows);
  return true;
}

}  // namespace

std::string ErrorSpread::text() const {
  return fmt::format("{} at most ({} on average) over {} measured {} of {} on {}",
                     percent_text(max, 1),
                     percent_text(mean, 1),
                     rows,
                     rows == 1 ? "row" : "rows",
                     kinds,
                     hardware);
}

Result<ErrorSpread> error_spread(Catalog& catalog,
                                 const HardwareSpec& hardware,
                                 std::span<const KindMetric> kinds) {
  TEMPER_TRY(const std::vector<Row> rows, measured_rows(catalog, kinds));
  Spreads spreads = spreads_of(catalog, rows);
  if (spreads.empty())
    return Error{ErrorCode::NotFound, "no shipped measurement is of these kinds"};
  if (const auto here = spreads.find(hardware.name); here != spreads.end())
    return here->second;
  if (auto own = spread_of_fits(hardware, kinds))
    return *std::move(own);
  const bool substituted = put_defaults_in(catalog, hardware, rows, spreads);
  ErrorSpread worst =
      std::ranges::max_element(spreads, {}, [](const auto& s) { return s.second.max; })->second;
  worst.elsewhere = true;
  worst.substituted = substituted;
  return worst;
}

}  // namespace temper::sim_hw
