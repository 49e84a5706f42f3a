// What stands behind the constants of a hardware, and what an answer may be off by where that is no
// measurement. A constant is measured if a FitRecord of its hardware names it and has rows of its
// own ("taken over from ..." has none). Counts of an engine's reads and writes
// (kCountedConstants) are not among them; of collectives the operations are, not the small
// protocol. Pure functions.
#pragma once

#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/validation/error_spread.hpp"

#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace temper::sim_hw {

enum class Behind {
  Default,    ///< No record, and the value that a description without it has.
  Given,      ///< The description has a value of its own, and no record says from where.
  TakenOver,  ///< A record says where it comes from, and that is no measurement on this hardware.
};

struct Unmeasured {
  std::string name;  ///< "operators.matmul_boost", "collectives.all_gather"
  Behind behind = Behind::Default;
};

/// In the order of their declaration.
std::vector<Unmeasured> unmeasured_constants(const HardwareSpec& hardware);

/// Gives the constant of this name the value that it has in `from`.
void take_constant(HardwareSpec& to, const HardwareSpec& from, std::string_view name);

/// For answers that are too large to be asked again: the range that an answer of these kinds may be
/// off by. Nothing if every constant was measured on the hardware.
struct UnmeasuredNote {
  std::string hardware;
  std::string source;  ///< As a command line names it; FILE: one of the user's.
  std::vector<Unmeasured> constants;
  ErrorSpread spread;

  /// The error first, then how many constants there are and the command that names them. Lines,
  /// the last one ended.
  std::string text() const;
};
/// "defaults: operators.*; taken over from other hardware: collectives.p2p"
std::string names_of(std::span<const Unmeasured> constants);
Result<std::optional<UnmeasuredNote>> unmeasured_note(Catalog& catalog,
                                                      const HardwareSpec& hardware,
                                                      std::span<const MeasuredAs> kinds);

/// Of a simulated run on this hardware: of all that its roles do. Empty if every constant was
/// measured there.
std::string note_of_runs(const HardwareSpec& hardware);
/// The same of several, each name once.
std::string note_of_runs(std::span<const HardwareSpec* const> hardware);
/// The same, by name or path; the error as text if there is no such hardware.
std::string note_of_runs(std::string_view hardware);

/// One constant behind an answer: what others measured, and the answer with these values.
struct Doubt {
  std::string name;
  Behind behind = Behind::Default;
  std::optional<double> used;       ///< Of an operator; a collective has several numbers.
  std::optional<double> low, high;  ///< Of hardware that measured it; none: no hardware did.
  double least = 0;                 ///< The answer's first metric with any of these values.
  double most = 0;
};
template <class V>
void describe(V& v, Doubt& d) {
  v.field(1, "name", d.name);
  v.field(2, "used", d.used);
  v.field(3, "low", d.low);
  v.field(4, "high", d.high);
  v.field(5, "least", d.least);
  v.field(6, "most", d.most);
}

/// What an answer rests on that was not measured on its hardware.
struct Doubts {
  std::string hardware;
  std::vector<Doubt> constants;  ///< Only such as the answer depends on; widest range first.
  /// Hardware that measured some of them, and the answer with all of these as it has them.
  std::vector<std::pair<std::string, double>> together;
};
/// Of the first metric of `cost`, the answer to `request`.
Doubts doubts_of(const CostContext& context, const Request& request, const Cost& cost);

}  // namespace temper::sim_hw
