// `temper calibrate`: fits the constants of a hardware to measurements and stores them with the
// fit's error and provenance.
#pragma once

#include "cli/command/command_line.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct CalibrateOptions {
  std::vector<std::string> files;
  std::string hardware;           ///< Empty: that of the rows, if they agree.
  std::string hardware_file;      ///< A description of one's own, in place of `hardware`.
  std::vector<std::string> only;  ///< Constants to fit; empty: every one that the rows determine.
  std::vector<std::string>
      ids;          ///< Rows to use, `*` at the end: all that begin so; empty: operators, steps.
  std::string out;  ///< Empty: beside the hardware's file (sim_hw::calibration_file).
  std::string report_tables;   ///< With leave_one_out: the YAML that the report takes tables from.
  bool leave_one_out = false;  ///< Also fit without each model and predict it.
  bool dry_run = false;        ///< Print, write nothing.
  bool machine = false;        ///< What `temper measure` does now: refused.
  bool json = false;
};

/// 0 only if the fit was made (and written).
int run_calibrate(const CalibrateOptions& options, std::ostream& out, std::ostream& err);

/// `temper calibrate`: its flags, and what it does.
Handler calibrate_command(Flags& flags);

}  // namespace temper::cli
