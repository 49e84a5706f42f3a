// The possible error of an answer that depends on constants that were not measured on the hardware
// (sim_hw/hardware/unmeasured_constants.hpp). Pure functions.
#pragma once

#include "sim_hw/hardware/unmeasured_constants.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/validation/error_spread.hpp"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace temper::sim_hw {

/// Copies the constant `name` from `from` to `to`.
void copy_constant(HardwareSpec& to, const HardwareSpec& from, std::string_view name);

/// For answers that are too large to recompute: the possible error of answers of these kinds. None
/// if every constant was measured on the hardware.
struct UnmeasuredNote {
  std::string hardware;
  std::string source;  ///< Name for a command line; FILE: a user's file.
  std::vector<UnmeasuredConstant> constants;
  ErrorSpread spread;

  /// The error first, then the number of constants and the command that names them. One or more
  /// lines, each terminated.
  std::string text() const;
};
/// "defaults: operators.*; taken over from other hardware: collectives.p2p"
std::string constant_names(std::span<const UnmeasuredConstant> constants);
Result<std::optional<UnmeasuredNote>> unmeasured_note(Catalog& catalog,
                                                      const HardwareSpec& hardware,
                                                      std::span<const KindMetric> kinds);

/// For a simulated run on this hardware, with all of its roles. Empty if every constant was
/// measured there.
std::string simulated_run_note(const HardwareSpec& hardware);
/// For several; each hardware name once.
std::string simulated_run_note(std::span<const HardwareSpec* const> hardware);
/// By name or path; returns the error text if there is no such hardware.
std::string simulated_run_note(std::string_view hardware);

/// One unmeasured constant: its range on other hardware, and the range of the answer with these
/// values.
struct ConstantEffect {
  std::string name;
  ConstantOrigin origin = ConstantOrigin::Default;
  std::optional<double> used;       ///< None for a collective, which has several numbers.
  std::optional<double> low, high;  ///< Over hardware that measured it; nullopt: no hardware did.
  double least = 0;  ///< Smallest value of the answer's first metric with any of these values.
  double most = 0;
};
void describe(auto& v, ConstantEffect& d) {
  v.field(1, "name", d.name);
  v.field(2, "used", d.used);
  v.field(3, "low", d.low);
  v.field(4, "high", d.high);
  v.field(5, "least", d.least);
  v.field(6, "most", d.most);
}

/// Unmeasured constants that an answer depends on.
struct UnmeasuredConstants {
  std::string hardware;
  std::vector<ConstantEffect> constants;  ///< Widest range of the answer first.
  /// Hardware that measured some of them, and the answer with all of these taken from it.
  std::vector<std::pair<std::string, double>> together;
};
/// Analyzes the first metric of `cost`, the answer to `request`.
UnmeasuredConstants analyze_unmeasured(const CostContext& context,
                                       const Request& request,
                                       const Cost& cost);

}  // namespace temper::sim_hw
