// `temper plan`: the best layouts for training or rollout on a cluster, before anything runs.
#pragma once

#include <iosfwd>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct PlanOptions {
  std::vector<std::string> words;  ///< "model=...", "hardware=...", "task=train", or a pipeline.
  std::string svg;                 ///< Where the plot goes; empty: nowhere.
  bool json = false;
};

/// The exit code of the command. Results go to `out`, what is wrong to `err`.
int run_plan(const PlanOptions& options, std::ostream& out, std::ostream& err);

}  // namespace temper::orchestrator
