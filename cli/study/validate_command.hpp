// `temper validate`: compares predictions with measurements, per row and per kind. It also converts
// publications into rows and writes the report docs/reports/validation.md.
#pragma once

#include "cli/command/command_line.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct ValidateOptions {
  std::vector<std::string> files;
  std::vector<std::string> max_mape;  ///< "gemm=0.2" or "gemm=20%".
  std::string hardware_file;          ///< Replaces the shipped description of the same name.
  std::string report;                 ///< File for the report; empty: none.
  std::string notes;  ///< Notes of the report; empty: configs/validation/notes.yaml.
  std::string out;    ///< Folder of --convert; empty: rows go to stdout.
  bool json = false;
  bool rows = true;  ///< Print each row, not only the tables.
  bool convert = false;
  bool allow_failures = false;  ///< A row without a prediction does not fail the command.
};

/// Returns the exit code: 0 only if every row has a prediction and every limit holds.
int run_validate(const ValidateOptions& options, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper validate`.
Handler validate_command(Flags& flags);

}  // namespace temper::cli
