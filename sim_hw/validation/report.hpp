// docs/validation.md: how far the hardware model is from measurements, what it was not held against
// and why, where it is known to hold, and where its constants come from. Generated, never edited.
#pragma once

#include "core/describe.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/published/published.hpp"
#include "sim_hw/validation/statistics.hpp"

#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace temper::sim_hw {

/// Why rows are far off, by id of a row or by kind: configs/validation/notes.yaml.
struct ReportNotes {
  std::map<std::string, std::string> notes;
};
template <class V>
void describe(V& v, ReportNotes& c) {
  v.field(1, "notes", c.notes, {.doc = "A sentence by row id or by kind."});
}

/// A table of its own, such as the errors on models that a fit has not seen.
struct StatisticsTable {
  std::string title;
  std::string text;  ///< One paragraph: what was done.
  std::vector<Statistics> rows;
};

template <class V>
void describe(V& v, StatisticsTable& t) {
  v.field(1, "title", t.title, {.doc = "Heading."});
  v.field(2, "text", t.text, {.doc = "What was done, one paragraph."});
  v.field(3, "rows", t.rows, {.doc = "Its rows."});
}

/// Tables that other commands leave for the report: configs/validation/tables.yaml.
struct ReportTables {
  std::vector<StatisticsTable> tables;
};
template <class V>
void describe(V& v, ReportTables& t) {
  v.field(1, "tables", t.tables, {.doc = "Placed after the summary, in this order."});
}
/// A file that does not exist holds no tables.
Result<ReportTables> read_report_tables(const std::filesystem::path& file);
/// Replaces the table of the same title, else appends.
Status put_report_table(const std::filesystem::path& file, StatisticsTable table);

struct ReportInput {
  std::vector<Comparison> comparisons;
  std::vector<UnusedRow> unused;
  ReportNotes notes;
  std::vector<const HardwareSpec*> hardware;  ///< Whose fitted constants are listed.
  std::vector<StatisticsTable> tables;        ///< Placed after the summary.
};

std::string validation_report(const ReportInput& input);

}  // namespace temper::sim_hw
