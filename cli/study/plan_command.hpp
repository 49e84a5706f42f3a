// `temper plan`: the best parallel layouts for training or rollout on a cluster, or for both sides
// of a pipeline.
#pragma once

#include "cli/command/command_line.hpp"
#include "study/plan/emit.hpp"

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace temper::cli {

struct PlanOptions {
  /// "task=train", "model=...", "hardware=..." and other parameters; or the path of a pipeline
  /// YAML.
  std::vector<std::string> words;
  std::vector<std::string> sets;  ///< "key=value" for a pipeline.
  std::string svg;                ///< File for the plot; empty: none.
  std::string out;                ///< File for a pipeline with the best layouts; empty: none.
  /// Print the flags of this engine instead of the report.
  std::optional<study::EmitTarget> emit;
  bool json = false;
  bool list = false;  ///< List the parameters of each task.
};

/// Returns the exit code. Prints results to `out` and errors to `err`.
int run_plan(const PlanOptions& options, std::ostream& out, std::ostream& err);

/// Declares the flags of `temper plan`.
Handler plan_command(Flags& flags);

}  // namespace temper::cli
