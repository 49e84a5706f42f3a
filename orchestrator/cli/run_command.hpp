// `temper run`: from a YAML file to a finished run folder.
#pragma once

#include "orchestrator/cli/conduct.hpp"

#include <string>
#include <vector>

namespace temper::orchestrator {

struct RunOptions {
  std::string config;             ///< Pipeline YAML; with `resume` also the folder of a run.
  std::vector<std::string> sets;  ///< "a.b=c"
  bool resume = false;
  bool plain = false;
  bool json = false;
  DriverKind driver = DriverKind::Auto;
};

/// 0 only if the run made all its updates; 130 if it was stopped on request; else 1.
int run_pipeline(const RunOptions& options);

}  // namespace temper::orchestrator
