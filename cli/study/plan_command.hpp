// `temper plan`: the best layouts for training or rollout on a cluster, or for both sides of a
// pipeline, before anything runs.
#pragma once

#include "cli/command/command_line.hpp"
#include "study/plan/emit.hpp"

#include <iosfwd>
#include <optional>
#include <string>
#include <vector>

namespace temper::cli {

struct PlanOptions {
  /// "task=train", "model=...", "hardware=..." and so on; or the path of a pipeline's YAML.
  std::vector<std::string> words;
  std::vector<std::string> sets;  ///< "key=value", of a pipeline.
  std::string svg;                ///< Where the plot goes; empty: nowhere.
  std::string out;                ///< Where a pipeline with the best layout goes; empty: nowhere.
  /// Print the flags of this engine in place of the report.
  std::optional<study::EmitTarget> emit;
  bool json = false;
  bool list = false;  ///< What the words of each task are.
};

/// The exit code of the command. Results go to `out`, what is wrong to `err`.
int run_plan(const PlanOptions& options, std::ostream& out, std::ostream& err);

/// `temper plan`: its flags, and what it does.
Handler plan_command(Flags& flags);

}  // namespace temper::cli
