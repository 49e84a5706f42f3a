// `temper cost`: the predicted cost of one operation, training step or phase, with its terms.
#pragma once

#include "cli/command/command_line.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct CostOptions {
  std::vector<std::string> assignments;  ///< "kind=gemm", "hardware=nvidia-h200", "m=8192", ...
  bool json = false;
  bool explain = false;  ///< Print each term with its equation.
  bool list = false;     ///< List the kinds and their parameters.
};

/// Returns the exit code. Prints results to `out` and errors to `err`.
int run_cost(const CostOptions& options, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper cost`.
Handler cost_command(Flags& flags);

}  // namespace temper::cli
