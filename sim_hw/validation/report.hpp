// Writes the validation report (docs): errors of the hardware model by kind, rows that were not
// used and why, the range of validity, and the sources of the constants. Generated; do not edit.
#pragma once

#include "core/describe.hpp"
#include "sim_hw/framework/framework.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/published/published.hpp"
#include "sim_hw/validation/coverage.hpp"
#include "sim_hw/validation/statistics.hpp"

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace temper::sim_hw {

/// Explanations of large errors, by row id or by kind: configs/validation/notes.yaml.
struct ReportNotes {
  std::map<std::string, std::string> notes;
};
void describe(auto& v, ReportNotes& c) {
  v.field(1, "notes", c.notes, {.doc = "Explanations by row id or by kind."});
}

/// An additional table, such as the errors on models that a fit has not seen.
struct StatisticsTable {
  std::string title;
  std::string text;  ///< One paragraph on the method.
  std::vector<Statistics> rows;
};

void describe(auto& v, StatisticsTable& t) {
  v.field(1, "title", t.title, {.doc = "Heading."});
  v.field(2, "text", t.text, {.doc = "One paragraph on the method."});
  v.field(3, "rows", t.rows, {.doc = "Rows of the table."});
}

/// Tables that other commands add to the report: configs/validation/tables.yaml.
struct ReportTables {
  std::vector<StatisticsTable> tables;
  std::vector<Coverage> coverage_before{};  ///< Recorded once, to compare with.
};
void describe(auto& v, ReportTables& t) {
  v.field(2, "coverage_before", t.coverage_before, {.doc = "Coverage to compare with."});
  v.field(1, "tables", t.tables, {.doc = "Tables after the summary, in this order."});
}
/// A missing file has no tables.
Result<ReportTables> read_report_tables(const std::filesystem::path& file);
/// Replaces the table with the same title, or appends it.
Status put_report_table(const std::filesystem::path& file, StatisticsTable table);

struct ReportInput {
  std::vector<Comparison> comparisons;
  std::vector<UnusedRow> unused;
  ReportNotes notes;
  std::vector<const HardwareSpec*> hardware;  ///< Hardware whose fitted constants are listed.
  std::vector<const FrameworkSpec*> frameworks;
  std::vector<StatisticsTable> tables;      ///< Placed after the summary.
  std::vector<Coverage> coverage_before{};  ///< Printed beside today's coverage.
};

std::string validation_report(const ReportInput& input);

}  // namespace temper::sim_hw
