// Fits the constants of one hardware's operators to measurements, by least squares.
//
//   minimise  sum over rows w rho(log predicted - log measured) + prior^2 sum (log c - log c0)^2
//
// over the logarithms of the constants c, with Levenberg-Marquardt (Eigen). rho is the soft-L1 loss
// (outliers pull linearly), w the weight of the row's kind: whole steps 1, single operators less,
// since a step's error is what a user meets. c0 are the priors: the defaults of OperatorConstants,
// so that a constant that no row tells anything about stays at its prior and is reported as
// undetermined. Constants that are counts of an engine's reads and writes, not physics, are never
// fitted (kCountedConstants).
#pragma once

#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/measurements/measurement.hpp"
#include "sim_hw/validation/statistics.hpp"

#include <span>
#include <string>
#include <vector>

namespace temper::sim_hw {

struct FitOptions {
  std::vector<std::string> only;  ///< Constants to fit; empty: every one that the rows determine.
  double prior = 0.02;            ///< Weight of a prior: 0.02 a factor e away costs a 2 % error.
  double soft = 0.08;             ///< Errors above this count linearly.
};

struct Fit {
  OperatorConstants constants;
  std::vector<std::string> fitted;
  std::vector<std::string> undetermined;  ///< Left at their prior: the rows do not depend on them.
  std::vector<Comparison> rows;           ///< With the fitted constants.
  std::vector<Comparison> left_out;       ///< They do not fit the memory; the fit is without them.
  std::int64_t evaluations = 0;
};

/// The catalog holds the hardware with the fitted constants afterwards, after an error those it
/// had. Rows of other hardware are ignored, and rows that do not fit the memory are left out; any
/// other row that cannot be predicted is an error.
Result<Fit> fit_operators(Catalog& catalog,
                          std::string_view hardware,
                          std::span<const Row> rows,
                          const FitOptions& options = {});

/// Fit without the step rows of each model in turn, then predict them. Rows of single operators
/// stay in the fit: they are microbenchmarks, named after a shape.
struct LeftOut {
  std::string model;
  std::vector<Comparison> rows;
};
Result<std::vector<LeftOut>> leave_one_model_out(Catalog& catalog,
                                                 std::string_view hardware,
                                                 std::span<const Row> rows,
                                                 const FitOptions& options = {});

}  // namespace temper::sim_hw
