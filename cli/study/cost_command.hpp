// `temper cost`: the cost of one operation, step or phase on a hardware, with its terms.
#pragma once

#include "cli/command/command_line.hpp"

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct CostOptions {
  std::vector<std::string> assignments;  ///< "kind=gemm", "hardware=nvidia-h200", "m=8192", ...
  bool json = false;
  bool explain = false;  ///< Each term with its equation.
  bool list = false;     ///< The kinds, with their parameters.
};

/// The exit code of the command. Results go to `out`, what is wrong to `err`.
int run_cost(const CostOptions& options, std::ostream& out, std::ostream& err);

/// `temper cost`: its flags, and what it does.
Handler cost_command(Flags& flags);

}  // namespace temper::cli
