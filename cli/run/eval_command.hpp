// `temper eval`: evaluates a checkpoint or a model folder on held-out problems. It is a run with no
// training steps: engines, verifiers and scheduler work as in the evaluations of a run.
#pragma once

#include "cli/command/command_line.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper::cli {

struct EvalOptions {
  std::string what;    ///< RUN, RUN@STEP, RUN@best, or a model folder.
  std::string config;  ///< For a model folder; empty: the run's config.yaml.
  std::vector<std::string> sets;
  std::string task;  ///< File of problems; empty: the held-out problems.
  int problems = 0;  ///< 0: from the configuration.
  int samples = 0;   ///< Responses per problem; 0: from the configuration.
  bool json = false;
};

/// Returns the exit code.
int run_eval(const EvalOptions& options);

Handler eval_command(Flags& flags);

}  // namespace temper::cli
