// The answer to a Request: one value per metric in SI units (seconds, bytes, FLOP/s, B/s, counts),
// and the terms of the time with their equations. Values only.
#pragma once

#include "core/result.hpp"

#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

/// One summand of a time or of a memory.
struct Term {
  std::string name;      ///< "gate_up projection"
  double count = 1;      ///< Number of occurrences.
  double value = 0;      ///< Seconds or bytes of all occurrences together.
  std::string equation;  ///< With numbers.
};

struct Metric {
  std::string name;  ///< "time", "peak_memory", ...
  std::string unit;  ///< "s", "B", "FLOP/s", "B/s", "count".
  double value = 0;
  std::vector<Term> terms;  ///< Add up to `value` if the metric is a sum; otherwise empty.
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

/// SI units per `unit`: "ms" -> 1e-3, "GB" -> 1e9, "GiB", "TFLOP/s", "tokens" -> 1.
Result<double> si_factor(std::string_view unit);

}  // namespace temper::sim_hw
