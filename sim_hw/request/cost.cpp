#include "sim_hw/request/cost.hpp"

#include "core/nearest_name.hpp"

#include <fmt/format.h>

#include <array>
#include <span>

namespace temper::sim_hw {
namespace {

struct Unit {
  std::string_view name;
  double factor;
};

// Units in measurements and publications. "per card" and "per GPU" remain in the metric's name.
constexpr std::array kUnits{
    Unit{"s", 1},
    Unit{"ms", 1e-3},
    Unit{"us", 1e-6},
    Unit{"ns", 1e-9},
    Unit{"min", 60},
    Unit{"h", 3600},
    Unit{"B", 1},
    Unit{"kB", 1e3},
    Unit{"MB", 1e6},
    Unit{"GB", 1e9},
    Unit{"TB", 1e12},
    Unit{"KiB", 1024},
    Unit{"MiB", 1024.0 * 1024},
    Unit{"GiB", 1024.0 * 1024 * 1024},
    Unit{"TiB", 1024.0 * 1024 * 1024 * 1024},
    Unit{"B/s", 1},
    Unit{"MB/s", 1e6},
    Unit{"GB/s", 1e9},
    Unit{"TB/s", 1e12},
    Unit{"GiB/s", 1024.0 * 1024 * 1024},
    Unit{"FLOP", 1},
    Unit{"FLOP/s", 1},
    Unit{"GFLOP/s", 1e9},
    Unit{"TFLOP/s", 1e12},
    Unit{"TFLOPS", 1e12},
    Unit{"TFLOPS/GPU", 1e12},
    Unit{"PFLOP/s", 1e15},
    Unit{"count", 1},
    Unit{"tokens", 1},
    Unit{"token", 1},
    Unit{"steps", 1},
    Unit{"tokens/s", 1},
    Unit{"k tokens/s", 1e3},
    Unit{"tokens/s/card", 1},
    Unit{"tokens/s/device", 1},
    Unit{"tokens/s/GPU", 1},
    Unit{"requests/s", 1},
    Unit{"fraction", 1},
    Unit{"percent", 1e-2},
    Unit{"x", 1},
    Unit{"", 1},
};

}  // namespace

Result<double> si_factor(std::string_view unit) {
  for (const Unit& known : kUnits) {
    if (known.name == unit)
      return known.factor;
  }
  std::vector<std::string> names;
  names.reserve(std::size(kUnits));
  for (const Unit& known : kUnits)
    names.emplace_back(known.name);
  const auto nearest = nearest_name(unit, names);
  return invalid_input(nearest
                           ? fmt::format("unknown unit `{}`; did you mean `{}`?", unit, *nearest)
                           : fmt::format("unknown unit `{}`", unit));
}

}  // namespace temper::sim_hw
