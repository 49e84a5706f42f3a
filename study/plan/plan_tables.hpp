// Plans beside each other, whatever they are of: term by term, why one loses to the first, and how
// far off the model may be. Pure functions.
#pragma once

#include "sim_hw/validation/error_spread.hpp"

#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace temper::study {

using PlanEntries = std::vector<std::pair<std::string_view, double>>;
double sum_of(const PlanEntries& entries);

/// A term of a plan's time or memory, for programs.
struct ShareJson {
  std::string name;
  double value = 0;  ///< Seconds or bytes.
};
template <class V>
void describe(V& v, ShareJson& s) {
  v.field(1, "name", s.name);
  v.field(2, "value", s.value);
}

struct PlanColumn {
  std::string name;     ///< "1", "2", ..., "yours"
  PlanEntries seconds;  ///< Summands of its time; every column has the same names.
  PlanEntries bytes;    ///< Of its fullest device.
  std::string misfit;   ///< What it exceeds; empty if it fits.
};

/// Values of the first column, and by how much the others differ; entries that none has are left
/// out. `title` heads the names, `total` names the last row. Requires: at least one column.
std::string difference_table(std::span<const PlanColumn> columns,
                             PlanEntries PlanColumn::*entries,
                             std::string_view unit,
                             std::string_view title,
                             std::string_view total);

/// A line: by how much `other` loses to `best`, and by what.
std::string why_text(const PlanColumn& best,
                     const PlanColumn& other,
                     const sim_hw::ErrorSpread& spread);

/// A line: how far off predictions like `what` ("the step") of `seconds` were on this hardware.
std::string sureness_text(const sim_hw::ErrorSpread& spread,
                          std::string_view hardware,
                          std::string_view what,
                          double seconds);

}  // namespace temper::study
