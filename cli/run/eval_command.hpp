// `temper eval`: a checkpoint of a run, or a model folder, held against problems that it was not
// trained on. It is a run of no updates: the same engines, verifiers and scheduler answer, judge
// and count as in the evaluations of a run.
#pragma once

#include "cli/command/command_line.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper::cli {

struct EvalOptions {
  std::string what;    ///< RUN, RUN@STEP, RUN@best, or a model folder.
  std::string config;  ///< Of a model folder; of a run, its own.
  std::vector<std::string> sets;
  std::string task;  ///< A file of problems; empty: as the configuration says.
  int problems = 0;  ///< 0: as the configuration says.
  int samples = 0;   ///< The same.
  bool json = false;
};

/// The exit code.
int run_eval(const EvalOptions& options);

Handler eval_command(Flags& flags);

}  // namespace temper::cli
