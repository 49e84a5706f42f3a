// Error statistics of predictions against measurements, shared by the command line, the report and
// the calibration. Pure functions; any thread.
//
// For a row, error = predicted / measured - 1. Over n rows
//   MAPE = mean |error|     bias = mean error     max = largest |error|
//   rank correlation = Spearman's rho of predicted against measured (core/statistics.hpp):
//   whether the model orders configurations correctly. Metrics of a kind are not comparable with
//   each other (a time, a memory), so the value of a group is the mean over its metrics, weighted
//   by their rows. A metric with fewer than two distinct measured values has none.
#pragma once

#include "core/describe.hpp"
#include "sim_hw/measurements/measurement.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/validation/band.hpp"

#include <optional>
#include <span>
#include <string>
#include <vector>

namespace temper::sim_hw {

/// A row with its prediction, in SI units.
struct Comparison {
  Row row;
  double measured = 0;
  std::optional<double> predicted;  ///< None: the prediction failed, or is an interval.
  std::string failure;              ///< Reason of the failure.
  bool exceeds_memory = false;      ///< The prediction failed because it exceeds the memory.

  std::optional<Band> band{};  ///< Answer of a row that leaves parameters open.

  /// Whether the row has a prediction, be it a value or an interval.
  bool answered() const { return predicted || band; }
  /// Whether the interval holds the measured value.
  bool in_band() const { return band && band->low <= measured && measured <= band->high; }
  /// predicted / measured - 1; none if undefined. For an upper bound (a metric "..._upper_bound"),
  /// 0 if the prediction keeps it.
  std::optional<double> error() const;
};

/// Predicts each distinct request once.
std::vector<Comparison> compare(Catalog& catalog, std::span<const Row> rows);
std::vector<Comparison> compare(Catalog& catalog,
                                std::span<const Row> rows,
                                std::span<const Kind> known);

struct Statistics {
  std::string kind;
  std::string hardware;  ///< Empty: all hardware.
  std::string metric;    ///< Empty: all metrics.
  std::int64_t n = 0;
  std::int64_t failed = 0;  ///< Rows without a prediction; not in n. Intervals are in neither.
  std::optional<double> mape;
  std::optional<double> bias;
  std::optional<double> max;
  std::optional<double> rank_correlation;
};

void describe(auto& v, Statistics& s) {
  v.field(1, "kind", s.kind, {.doc = "Kind of request."});
  v.field(2, "hardware", s.hardware, {.doc = "Empty: all hardware."});
  v.field(3, "metric", s.metric, {.doc = "Empty: all metrics."});
  v.field(4, "n", s.n, {.doc = "Rows with a prediction."});
  v.field(5, "failed", s.failed, {.doc = "Rows without a prediction."});
  v.field(6, "mape", s.mape, {.doc = "Mean absolute relative error."});
  v.field(7, "bias", s.bias, {.doc = "Mean relative error."});
  v.field(8, "max", s.max, {.doc = "Largest absolute relative error."});
  v.field(9, "rank_correlation", s.rank_correlation, {.doc = "Spearman's rho."});
}

/// Sorted by name.
std::vector<Statistics> by_kind(std::span<const Comparison> rows);
std::vector<Statistics> by_kind_hardware_metric(std::span<const Comparison> rows);

}  // namespace temper::sim_hw
