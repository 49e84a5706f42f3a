// `temper estimate`: the cost of one operation, step or phase on a hardware, with its terms.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::cli {

struct EstimateOptions {
  std::vector<std::string> assignments;  ///< "kind=gemm", "hardware=nvidia-h200", "m=8192", ...
  bool json = false;
  bool explain = false;  ///< Each term with its equation.
  bool list = false;     ///< The kinds, with their parameters.
};

/// The exit code of the command. Results go to `out`, what is wrong to `err`.
int run_estimate(const EstimateOptions& options, std::ostream& out, std::ostream& err);

}  // namespace temper::cli
