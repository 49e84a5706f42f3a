#include "sim_hw/calibration/fit.hpp"

#include "core/nearest_name.hpp"
#include "core/scalar_text.hpp"
#include "sim_hw/hardware/constant_list.hpp"

#include <Eigen/Core>
#include <fmt/format.h>
#include <unsupported/Eigen/NonLinearOptimization>
#include <unsupported/Eigen/NumericalDiff>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

namespace temper::sim_hw {
namespace {

double weight_of(std::string_view kind) {
  constexpr std::array<std::pair<std::string_view, double>, 5> kOperators{
      {{"gemm", 0.6},
       {"attention_prefill", 0.7},
       {"attention_decode", 0.5},
       {"moe_layer", 0.7},
       {"device_copy", 1.0}}};
  for (const auto& [name, weight] : kOperators) {
    if (name == kind)
      return weight;
  }
  return 1;
}

/// Signed square root of the soft-L1 loss of a residual.
double softened(double residual, double soft) {
  const double z = residual / soft;
  return std::copysign(soft * std::sqrt(2 * (std::sqrt(1 + z * z) - 1)), residual);
}

/// Residuals as a function of the logarithms of the free constants.
class Problem {
 public:
  Problem(Catalog& catalog, HardwareSpec spec, std::vector<Row> rows, const FitOptions& options)
      : catalog_(catalog), spec_(std::move(spec)), rows_(std::move(rows)), options_(options) {}

  /// Predicts every row with these constants.
  std::vector<Comparison> rows_with(const OperatorConstants& constants) {
    spec_.constants.operators = constants;
    catalog_.put(spec_);
    ++evaluations_;
    return compare(catalog_, rows_);
  }

  std::vector<double> residuals(const OperatorConstants& constants) {
    std::vector<double> out;
    for (const Comparison& row : rows_with(constants)) {
      const bool usable = row.predicted && *row.predicted > 0 && row.measured > 0;
      const double error = usable ? std::log(*row.predicted / row.measured) : 10;
      out.push_back(weight_of(row.row.kind) * softened(error, options_.soft));
    }
    return out;
  }

  std::size_t size() const { return rows_.size(); }
  std::int64_t evaluations() const { return evaluations_; }
  const FitOptions& options() const { return options_; }

 private:
  Catalog& catalog_;
  HardwareSpec spec_;
  const std::vector<Row> rows_;
  const FitOptions options_;
  std::int64_t evaluations_ = 0;
};

OperatorConstants with(const OperatorConstants& base,
                       const std::vector<std::string>& names,
                       const Eigen::VectorXd& logs) {
  OperatorConstants out = base;
  for (NamedConstant& constant : constants_of(out)) {
    const auto found = std::find(names.begin(), names.end(), constant.name);
    if (found == names.end())
      continue;
    *constant.value = std::clamp(std::exp(logs[found - names.begin()]), constant.min, constant.max);
  }
  return out;
}

/// Adapter for Eigen's optimizer.
struct Functor {
  using Scalar = double;
  using InputType = Eigen::VectorXd;
  using ValueType = Eigen::VectorXd;
  using JacobianType = Eigen::MatrixXd;
  enum { InputsAtCompileTime = Eigen::Dynamic, ValuesAtCompileTime = Eigen::Dynamic };

  Problem* problem;
  OperatorConstants base;
  std::vector<std::string> names;
  Eigen::VectorXd start;

  int inputs() const { return static_cast<int>(names.size()); }
  int values() const { return static_cast<int>(problem->size() + names.size()); }

  int operator()(const Eigen::VectorXd& x, Eigen::VectorXd& out) const {
    const std::vector<double> rows = problem->residuals(with(base, names, x));
    const auto n = static_cast<Eigen::Index>(rows.size());
    for (Eigen::Index i = 0; i < n; ++i)
      out[i] = rows[static_cast<std::size_t>(i)];
    for (Eigen::Index i = 0; i < x.size(); ++i)
      out[n + i] = problem->options().prior * (x[i] - start[i]);
    return 0;
  }

  /// Central differences: the costs have kinks, where one-sided differences stall.
  int df(const Eigen::VectorXd& x, Eigen::MatrixXd& jacobian) const {
    constexpr double kStep = 1e-4;
    Eigen::VectorXd above(values());
    Eigen::VectorXd below(values());
    for (Eigen::Index i = 0; i < x.size(); ++i) {
      Eigen::VectorXd moved = x;
      moved[i] = x[i] + kStep;
      (*this)(moved, above);
      moved[i] = x[i] - kStep;
      (*this)(moved, below);
      jacobian.col(i) = (above - below) / (2 * kStep);
    }
    return 0;
  }
};

/// Whether any row changes when the constant does.
bool matters(Problem& problem, const OperatorConstants& base, const std::string& name) {
  OperatorConstants moved = base;
  for (NamedConstant& constant : constants_of(moved)) {
    if (constant.name == name)
      *constant.value *= 0.99;
  }
  const std::vector<double> before = problem.residuals(base);
  const std::vector<double> after = problem.residuals(moved);
  for (std::size_t i = 0; i < before.size(); ++i) {
    if (std::abs(before[i] - after[i]) > 1e-7)
      return true;
  }
  return false;
}

Result<std::vector<std::string>> candidates(const FitOptions& options) {
  OperatorConstants defaults;
  std::vector<std::string> all;
  for (const NamedConstant& constant : constants_of(defaults))
    all.push_back(constant.name);
  for (const std::string& name : options.only) {
    if (std::find(all.begin(), all.end(), name) == all.end()) {
      return invalid_input(fmt::format("no constant `{}`; did you mean `{}`?",
                                       name,
                                       nearest_name(name, all).value_or(all.front())));
    }
  }
  if (!options.only.empty())
    return options.only;
  std::erase_if(all, [](const std::string& name) {
    return std::find(kCountedConstants.begin(), kCountedConstants.end(), name) !=
           kCountedConstants.end();
  });
  return all;
}

/// Drops rows that exceed the memory and reports them in `fit`. Error: another row has no
/// prediction.
Result<std::vector<Row>> rows_that_fit(Catalog& catalog, std::vector<Row> rows, Fit& fit) {
  std::vector<Row> kept;
  for (Comparison& row : compare(catalog, rows)) {
    if (row.predicted) {
      kept.push_back(std::move(row.row));
    } else if (row.exceeds_memory) {
      fit.left_out.push_back(std::move(row));
    } else {
      return invalid_input(fmt::format("row {}: cannot be predicted: {}", row.row.id, row.failure));
    }
  }
  if (!kept.empty())
    return kept;
  return Error{ErrorCode::OutOfMemory,
               fmt::format("no row fits the memory; row {}: {}",
                           fit.left_out.front().row.id,
                           fit.left_out.front().failure)};
}

}  // namespace

Result<Fit> fit_operators(Catalog& catalog,
                          std::string_view hardware,
                          std::span<const Row> rows,
                          const FitOptions& options) {
  TEMPER_TRY(const HardwareSpec* spec, catalog.hardware(hardware));
  std::vector<Row> own;
  for (const Row& row : rows) {
    const auto other = catalog.hardware(row.hardware);
    if (other && *other == spec)
      own.push_back(row);
  }
  if (own.empty())
    return invalid_input(fmt::format("no measurement row is of hardware `{}`", hardware));
  TEMPER_TRY(const std::vector<std::string> names, candidates(options));
  Functor functor;
  // If all constants are free, the fit starts from the priors; otherwise the others keep their
  // present values.
  functor.base = options.only.empty() ? OperatorConstants{} : spec->constants.operators;
  Fit fit;
  TEMPER_TRY(own, rows_that_fit(catalog, std::move(own), fit));
  Problem problem(catalog, *spec, std::move(own), options);
  for (const std::string& name : names)
    (matters(problem, functor.base, name) ? fit.fitted : fit.undetermined).push_back(name);
  functor.problem = &problem;
  functor.names = fit.fitted;
  functor.start.resize(functor.inputs());
  OperatorConstants start = functor.base;
  for (const NamedConstant& constant : constants_of(start)) {
    const auto found = std::find(fit.fitted.begin(), fit.fitted.end(), constant.name);
    if (found != fit.fitted.end())
      functor.start[found - fit.fitted.begin()] = std::log(*constant.value);
  }
  Eigen::VectorXd x = functor.start;
  Eigen::LevenbergMarquardt<Functor> optimizer(functor);
  optimizer.parameters.maxfev = 200;
  optimizer.parameters.ftol = optimizer.parameters.xtol = 1e-6;
  optimizer.minimize(x);
  fit.constants = with(functor.base, fit.fitted, x);
  fit.rows = problem.rows_with(fit.constants);
  fit.evaluations = problem.evaluations();
  return fit;
}

Result<std::vector<HeldOutModel>> leave_one_model_out(Catalog& catalog,
                                                      std::string_view hardware,
                                                      std::span<const Row> rows,
                                                      const FitOptions& options) {
  std::set<std::string> operators;
  for (const Kind& kind : operator_kinds())
    operators.emplace(kind.name);
  const auto model_of = [&](const Row& row) -> std::string {
    if (operators.contains(row.kind))
      return {};
    const auto params = Params::parse(row.params);
    return params ? params->text("model", "") : std::string();
  };
  std::set<std::string> models;
  for (const Row& row : rows)
    models.insert(model_of(row));
  models.erase(std::string());
  TEMPER_TRY(const HardwareSpec* spec, catalog.hardware(hardware));
  const HardwareSpec before = *spec;
  std::vector<HeldOutModel> out;
  for (const std::string& model : models) {
    std::vector<Row> kept;
    std::vector<Row> left;
    for (const Row& row : rows)
      (model_of(row) == model ? left : kept).push_back(row);
    TEMPER_TRY_STATUS(fit_operators(catalog, hardware, kept, options));
    out.push_back({model, compare(catalog, left)});
    catalog.put(before);
  }
  return out;
}

}  // namespace temper::sim_hw
