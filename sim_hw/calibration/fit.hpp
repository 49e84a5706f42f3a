// Fits the constants of one hardware's operators to measurements, by least squares.
//
//   minimise  sum over rows w rho(log predicted - log measured) + prior^2 sum (log c - log c0)^2
//
// over the logarithms of the constants c, with Levenberg-Marquardt (Eigen). rho is the soft-L1 loss
// (outliers pull linearly). w is the weight of the row's kind: 1 for whole steps, less for single
// operators, because users see the error of steps. c0 are the priors: the defaults of
// OperatorConstants. A constant that no row depends on stays at its prior and is reported as
// undetermined. Constants that count an engine's reads and writes (kCountedConstants) are never
// fitted.
#pragma once

#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/measurements/measurement.hpp"
#include "sim_hw/validation/statistics.hpp"

#include <span>
#include <string>
#include <vector>

namespace temper::sim_hw {

struct FitOptions {
  std::vector<std::string> only;  ///< Constants to fit; empty: all that the rows determine.
  double prior =
      0.02;  ///< Weight of a prior: with 0.02, a factor e away costs as much as an error of 2 %.
  double soft = 0.08;  ///< Larger errors count linearly.
};

struct Fit {
  OperatorConstants constants;
  std::vector<std::string> fitted;
  std::vector<std::string> undetermined;  ///< Left at their prior, because no row depends on them.
  std::vector<Comparison> rows;           ///< Predictions with the fitted constants.
  std::vector<Comparison> left_out;       ///< Rows that exceed the memory; not part of the fit.
  std::int64_t evaluations = 0;
};

/// On success the catalog holds the hardware with the fitted constants; after an error, with the
/// constants it had. Ignores rows of other hardware and drops rows that exceed the memory. Error:
/// any other row cannot be predicted.
Result<Fit> fit_operators(Catalog& catalog,
                          std::string_view hardware,
                          std::span<const Row> rows,
                          const FitOptions& options = {});

/// For each model in turn: fits without its step rows, then predicts them. Rows of single operators
/// stay in the fit, because they are microbenchmarks that merely share a model's shape.
struct HeldOutModel {
  std::string model;
  std::vector<Comparison> rows;
};
Result<std::vector<HeldOutModel>> leave_one_model_out(Catalog& catalog,
                                                      std::string_view hardware,
                                                      std::span<const Row> rows,
                                                      const FitOptions& options = {});

}  // namespace temper::sim_hw
