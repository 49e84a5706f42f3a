// `temper calibrate`: fits the constants of a hardware description to measurements and stores them
// with error and provenance.
#pragma once

#include "cli/command/command_line.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct CalibrateOptions {
  std::vector<std::string> files;
  std::string hardware;           ///< Empty: from the rows, if they agree.
  std::string hardware_file;      ///< The user's own description, instead of `hardware`.
  std::vector<std::string> only;  ///< Constants to fit; empty: all that the rows determine.
  std::vector<std::string>
      ids;          ///< Rows to use; a final `*` matches a prefix; empty: operators, steps.
  std::string out;  ///< Empty: beside the hardware's file (sim_hw::calibration_file).
  std::string report_tables;   ///< With leave_one_out: YAML file of tables for the report.
  bool leave_one_out = false;  ///< Also fit without each model and predict it.
  bool dry_run = false;        ///< Print the fit, write nothing.
  bool json = false;
};

/// 0 only if the fit was made (and written).
int run_calibrate(const CalibrateOptions& options, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper calibrate`.
Handler calibrate_command(Flags& flags);

}  // namespace temper::cli
