// The few physical constants per hardware that no data sheet states. Each is one number with a
// meaning, fitted by `temper calibrate` or taken from a named source; FitRecord says which.
#pragma once

#include "core/describe.hpp"
#include "sim_hw/hardware/collective_constants.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace temper::sim_hw {

/// Where a group of constants comes from and how well it describes its data.
struct FitRecord {
  std::string constants;  ///< Names, comma-separated.
  std::string source;     ///< File and rows, or publication.
  std::int64_t rows = 0;
  double mean_error = 0;  ///< Mean absolute relative error over those rows.
  double max_error = 0;
};
template <class V>
void describe(V& v, FitRecord& c) {
  v.field(1, "constants", c.constants, {.doc = "The constants that were fitted."});
  v.field(2, "source", c.source, {.doc = "What they were fitted to."});
  v.field(3, "rows", c.rows, {.doc = "Measurements used.", .min = 0});
  v.field(4, "mean_error", c.mean_error, {.doc = "Mean absolute relative error, a fraction."});
  v.field(5, "max_error", c.max_error, {.doc = "Largest absolute relative error, a fraction."});
}

/// Of one device's operators.
struct OperatorConstants {
  double matmul_efficiency = 0.75;  ///< Of the matrix peak, large GEMM.
  double memory_efficiency = 0.85;  ///< Of the HBM peak, streaming.
};
template <class V>
void describe(V& v, OperatorConstants& c) {
  v.field(1, "matmul_efficiency", c.matmul_efficiency, {.doc = "Share of the matrix peak of a large GEMM.", .min = 0.01, .max = 1.2});
  v.field(2, "memory_efficiency", c.memory_efficiency, {.doc = "Share of the HBM peak when streaming.", .min = 0.01, .max = 1.2});
}

struct HardwareConstants {
  OperatorConstants operators;
  CollectiveConstants collectives;
};
template <class V>
void describe(V& v, HardwareConstants& c) {
  v.field(1, "operators", c.operators, {.doc = "Of one device."});
  v.field(2, "collectives", c.collectives, {.doc = "Of communication."});
}

}  // namespace temper::sim_hw
