#include "sim_hw/published/measurement_file.hpp"

#include "core/files.hpp"
#include "core/text/csv.hpp"

#include <fmt/format.h>

namespace temper::sim_hw {

Result<MeasurementFile> read_any(const std::filesystem::path& file, Catalog& catalog) {
  TEMPER_TRY(const std::string text, read_file(file));
  TEMPER_TRY(const CsvTable table, parse_csv(file.string(), text));
  MeasurementFile out;
  if (is_publication_table(table)) {
    TEMPER_TRY(Conversion converted, convert_publications(table, file.string(), catalog));
    out = {std::move(converted.rows), std::move(converted.unused)};
    for (Row& row : out.rows)
      row.folder = file.parent_path();
  } else if (table.has("what") && table.has("reason") && table.has("id")) {
    for (const auto& row : table.rows) {
      out.unused.push_back({row[table.column("id")],
                            row[table.column("what")],
                            row[table.column("reason")],
                            table.has("table") ? row[table.column("table")] : ""});
    }
  } else {
    TEMPER_TRY(out.rows, to_rows(table, file));
  }
  return out;
}

std::string to_csv(std::span<const UnusedRow> unused) {
  std::string out = "id,what,reason,table\n";
  for (const UnusedRow& row : unused) {
    out += fmt::format("{},{},{},{}\n",
                       csv_word(row.id),
                       csv_word(row.what),
                       csv_word(row.reason),
                       csv_word(row.table));
  }
  return out;
}

}  // namespace temper::sim_hw
