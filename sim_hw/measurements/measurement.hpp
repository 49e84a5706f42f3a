// Reads rows of measurements.
//
// A measurement file is CSV with the columns hardware, cards, kind, params, metric, unit, value,
// and optionally id, source, table and area, in any order:
//   hardware,cards,kind,params,metric,unit,value
//   nvidia-h200,1,gemm,m=8192;n=8192;k=8192,throughput,TFLOP/s,755.176
// SimGrid outputs are recognized by their header (algorithm,npus,size_bytes,... and
// scenario,npus,...) and become rows of hardware `simgrid`. Values only; no threads.
#pragma once

#include "core/result.hpp"
#include "core/text/csv.hpp"
#include "sim_hw/request/request.hpp"

#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace temper::sim_hw {

struct Row {
  std::string id;  ///< From the file, or `file:line`.
  std::string hardware;
  std::int64_t cards = 1;
  std::string kind;
  std::string params;  ///< "k=v;k=v"
  std::string metric;
  std::string unit;
  double value = 0;  ///< In `unit`.
  std::string source;
  std::string table{};  ///< Table of publications that the row comes from; empty: measured here.
  std::string area{};   ///< Its area in that table: "serving_decode".
  std::filesystem::path folder;  ///< Folder of the file, for side files such as `lengths=`.
};

/// Errors name the file and line; a file of another kind, the expected columns.
Result<std::vector<Row>> read_measurements(const std::filesystem::path& file);
Result<std::vector<Row>> to_rows(const CsvTable& table, const std::filesystem::path& file);

/// Writes the format above, with id, source, table and area.
std::string to_csv(std::span<const Row> rows);

}  // namespace temper::sim_hw
