#include "sim_hw/parallel/recorded_traces.hpp"

#include "core/files.hpp"
#include "core/text/csv.hpp"
#include "core/text/numbers.hpp"
#include "sim_hw/model/numbers.hpp"

#include <fmt/format.h>

namespace temper::sim_hw {
namespace {

Result<CsvTable> read_table(const std::string& path) {
  TEMPER_TRY(const std::string text, read_file(path));
  return parse_csv(path, text);
}

Result<double> number_of(const std::string& path, int line, const std::string& text) {
  const auto value = parse_number<double>(text);
  if (!value || !(*value >= 0) || *value > 1e18)
    return invalid_input(
        fmt::format("{}:{}: expected a number of 0 or more, found `{}`", path, line, text));
  return *value;
}

}  // namespace

Result<std::vector<ExpertLoads>> read_expert_loads(const std::string& path, std::int64_t experts) {
  TEMPER_TRY(const CsvTable table, read_table(path));
  const auto columns = static_cast<std::int64_t>(table.header.size());
  if (columns != experts) {
    return invalid_input(
        fmt::format("{}:1: found {} columns, expected one per expert of the model: {}",
                    path,
                    columns,
                    experts));
  }
  if (table.rows.empty())
    return invalid_input(fmt::format("{}: found no rows, expected one row per step", path));
  std::vector<ExpertLoads> out;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    ExpertLoads loads;
    double sum = 0;
    for (const std::string& text : table.rows[i]) {
      TEMPER_TRY(const double load, number_of(path, table.lines[i], text));
      loads.push_back(load);
      sum += load;
    }
    if (sum <= 0)
      return invalid_input(fmt::format(
          "{}:{}: all loads are 0; expected at least one above 0", path, table.lines[i]));
    for (double& load : loads)
      load /= sum;
    out.push_back(std::move(loads));
  }
  return out;
}

Result<std::vector<double>> read_samples(const std::string& path, std::int64_t seq) {
  TEMPER_TRY(const CsvTable table, read_table(path));
  const std::size_t sample = table.column("sample");
  const std::size_t length = table.column("length");
  if (!table.has("sample") || !table.has("length"))
    return invalid_input(fmt::format("{}:1: expected the columns `sample` and `length`", path));
  std::vector<double> out;
  double tokens = 0;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    TEMPER_TRY(const double document, number_of(path, table.lines[i], table.rows[i][length]));
    if (i == 0 || table.rows[i][sample] != table.rows[i - 1][sample]) {
      out.push_back(0);
      tokens = 0;
    }
    tokens += document;
    out.back() += document * document;
    if (tokens > as_double(seq)) {
      return invalid_input(fmt::format("{}:{}: sample {} has {:.0f} tokens, and a sequence {}",
                                       path,
                                       table.lines[i],
                                       table.rows[i][sample],
                                       tokens,
                                       seq));
    }
  }
  return out;
}

}  // namespace temper::sim_hw
