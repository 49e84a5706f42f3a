// The answer to a Request: one value per metric in SI units (seconds, bytes, FLOP/s, B/s, counts),
// and the terms that the time is made of, each with its equation and numbers. Values only.
#pragma once

#include "core/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

/// One summand of a time or of a memory.
struct Term {
  std::string name;      ///< "gate_up projection"
  double count = 1;      ///< How often it occurs.
  double value = 0;      ///< Of all occurrences together: seconds or bytes.
  std::string equation;  ///< With the numbers put in.
};

struct Metric {
  std::string name;  ///< "time", "peak_memory", ...
  std::string unit;  ///< "s", "B", "FLOP/s", "B/s", "count".
  double value = 0;
  std::vector<Term> terms;  ///< Sum to value where the metric is a sum; else empty.
};

struct Cost {
  std::vector<Metric> metrics;

  const Metric* find(std::string_view name) const {
    for (const Metric& metric : metrics) {
      if (metric.name == name)
        return &metric;
    }
    return nullptr;
  }
};

/// How many SI units one of `unit` is: "ms" -> 1e-3, "GB" -> 1e9, "GiB", "TFLOP/s", "tokens" -> 1.
Result<double> si_factor(std::string_view unit);

}  // namespace temper::sim_hw
