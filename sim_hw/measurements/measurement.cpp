#include "sim_hw/measurements/measurement.hpp"

#include "core/files.hpp"
#include "core/scalar_text.hpp"
#include "core/text/numbers.hpp"

#include <fmt/format.h>

#include <array>
#include <cmath>

namespace temper::sim_hw {
namespace {

/// One line of a table; errors name the file, line and column.
class TableLine {
 public:
  TableLine(const CsvTable& table, const std::filesystem::path& file, std::size_t index)
      : table_(table), file_(file), index_(index) {}

  /// Empty if the column does not exist.
  std::string_view text(std::string_view column) const {
    const std::size_t at = table_.column(column);
    return at < table_.header.size() ? std::string_view(table_.rows[index_][at])
                                     : std::string_view();
  }

  template <class T>
  Result<T> number(std::string_view column) const {
    const std::string_view word = text(column);
    auto value = parse_number<T>(word);
    if (!value)
      return std::move(value).error().within(fmt::format("{}: {}", where(), column));
    if constexpr (std::is_floating_point_v<T>) {
      if (!std::isfinite(*value))
        return invalid_input(
            fmt::format("{}: {}: expected a number, found `{}`", where(), column, word));
    }
    return *value;
  }

  std::string where() const { return fmt::format("{}:{}", file_.string(), table_.lines[index_]); }
  std::string id() const {
    const std::string_view given = text("id");
    return given.empty() ? fmt::format("{}:{}", file_.filename().string(), table_.lines[index_])
                         : std::string(given);
  }

 private:
  const CsvTable& table_;
  const std::filesystem::path& file_;
  const std::size_t index_;
};

Row row_at(const TableLine& line, const std::filesystem::path& file) {
  Row row;
  row.id = line.id();
  row.source = line.text("source");
  row.table = line.text("table");
  row.area = line.text("area");
  row.folder = file.parent_path();
  return row;
}

Result<Row> measured_row(const TableLine& line, const std::filesystem::path& file) {
  Row row = row_at(line, file);
  row.hardware = line.text("hardware");
  row.kind = line.text("kind");
  row.params = line.text("params");
  row.metric = line.text("metric");
  row.unit = line.text("unit");
  TEMPER_TRY(row.cards, line.number<std::int64_t>("cards"));
  TEMPER_TRY(row.value, line.number<double>("value"));
  if (const auto params = Params::parse(row.params); !params)
    return Error(params.error()).within(line.where());
  return row;
}

constexpr std::string_view kSimGrid = "SimGrid 3.32, max-min fair fluid flows (CM02)";

Row simgrid_row(const TableLine& line, const std::filesystem::path& file, std::string kind) {
  Row row = row_at(line, file);
  row.hardware = "simgrid";
  row.kind = std::move(kind);
  row.unit = "ns";
  row.source = kSimGrid;
  return row;
}

Result<Row> flat_row(const TableLine& line, const std::filesystem::path& file) {
  Row row = simgrid_row(line, file, "flat_" + std::string(line.text("algorithm")));
  TEMPER_TRY(row.cards, line.number<std::int64_t>("npus"));
  row.params = fmt::format("npus={};size_bytes={}", line.text("npus"), line.text("size_bytes"));
  row.metric = "time";
  TEMPER_TRY(row.value, line.number<double>("sim_time_ns"));
  return row;
}

/// Up to three rows: the whole scenario, and the end of each group that exists.
Status add_contended_rows(const TableLine& line,
                          const std::filesystem::path& file,
                          std::vector<Row>& out) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 3> kMetrics{
      {{"sim_time_ns", "time"}, {"group0_end_ns", "group0_end"}, {"group1_end_ns", "group1_end"}}};
  for (const auto& [column, metric] : kMetrics) {
    Row row = simgrid_row(line, file, "contended");
    row.id += "." + std::string(metric);
    TEMPER_TRY(row.cards, line.number<std::int64_t>("npus"));
    row.params = fmt::format("scenario={};npus={};oversubscription={};size_bytes={}",
                             line.text("scenario"),
                             line.text("npus"),
                             line.text("node_uplink_oversubscription"),
                             line.text("size_bytes"));
    row.metric = metric;
    TEMPER_TRY(row.value, line.number<double>(column));
    if (row.value > 0)  // 0: the scenario has no such group.
      out.push_back(std::move(row));
  }
  return {};
}

Status require_columns(const CsvTable& table, const std::filesystem::path& file) {
  for (const char* column : {"hardware", "cards", "kind", "params", "metric", "unit", "value"}) {
    if (!table.has(column)) {
      return invalid_input(
          fmt::format("{}: no column `{}`; expected hardware,cards,kind,params,metric,unit,value{}",
                      file.string(),
                      column,
                      table.has("conditions") ? " (publications are read with --convert)" : ""));
    }
  }
  return {};
}

}  // namespace

Result<std::vector<Row>> to_rows(const CsvTable& table, const std::filesystem::path& file) {
  const bool flat = table.has("algorithm") && table.has("sim_time_ns");
  const bool contended = table.has("scenario") && table.has("sim_time_ns");
  if (!flat && !contended)
    TEMPER_TRY_STATUS(require_columns(table, file));
  std::vector<Row> rows;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const TableLine line(table, file, i);
    if (contended) {
      TEMPER_TRY_STATUS(add_contended_rows(line, file, rows));
      continue;
    }
    TEMPER_TRY(Row row, flat ? flat_row(line, file) : measured_row(line, file));
    rows.push_back(std::move(row));
  }
  return rows;
}

Result<std::vector<Row>> read_measurements(const std::filesystem::path& file) {
  TEMPER_TRY(const std::string text, read_file(file));
  TEMPER_TRY(const CsvTable table, parse_csv(file.string(), text));
  return to_rows(table, file);
}

std::string to_csv(std::span<const Row> rows) {
  std::string out = "id,hardware,cards,kind,params,metric,unit,value,source,table,area\n";
  for (const Row& row : rows) {
    out += fmt::format("{},{},{},{},{},{},{},{},{},{},{}\n",
                       csv_word(row.id),
                       csv_word(row.hardware),
                       row.cards,
                       row.kind,
                       csv_word(row.params),
                       row.metric,
                       row.unit,
                       number_text(row.value),
                       csv_word(row.source),
                       csv_word(row.table),
                       row.area);
  }
  return out;
}

}  // namespace temper::sim_hw
