// How many published rows have a prediction, by table and area, and why the others have none.
// Values only; no threads.
#pragma once

#include "core/describe.hpp"
#include "sim_hw/published/published.hpp"
#include "sim_hw/validation/statistics.hpp"

#include <map>
#include <span>
#include <string>
#include <vector>

namespace temper::sim_hw {

/// Published rows of one area of a table. `rows` = points + bands + rows without a prediction.
struct Coverage {
  std::string table;  ///< "published_3".
  std::string area;   ///< "serving_decode".
  std::int64_t rows = 0;
  std::int64_t points = 0;   ///< Rows with one value as their prediction.
  std::int64_t bands = 0;    ///< Rows whose prediction is an interval.
  std::int64_t in_band = 0;  ///< Of these, rows whose measured value the interval holds.
  std::map<std::string, std::int64_t> reasons{};  ///< Rows without one, by reason class.
};
void describe(auto& v, Coverage& c) {
  v.field(1, "table", c.table, {.doc = "Table of publications."});
  v.field(2, "area", c.area, {.doc = "Area of the rows."});
  v.field(3, "rows", c.rows, {.doc = "Rows of the area."});
  v.field(4, "points", c.points, {.doc = "Rows with one value as their prediction."});
  v.field(6, "bands", c.bands, {.doc = "Rows with an interval."});
  v.field(7, "in_band", c.in_band, {.doc = "Rows whose value the interval holds."});
  v.field(5, "reasons", c.reasons, {.doc = "Rows without a prediction, by reason."});
}

/// "model not described: GLM-5" -> "model not described"; missing conditions keep their names.
std::string reason_class(std::string_view reason);

/// Sorted by table and area. Rows without a table are not published and do not count.
std::vector<Coverage> coverage(std::span<const Comparison> rows, std::span<const UnusedRow> unused);
/// The areas of each table together, with the area "all".
std::vector<Coverage> by_table(std::span<const Coverage> areas);

}  // namespace temper::sim_hw
