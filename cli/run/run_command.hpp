// `temper run`: runs a pipeline from a YAML file and writes its run folder.
#pragma once

#include "cli/command/command_line.hpp"
#include "orchestrator/start/start_run.hpp"

#include <string>
#include <vector>

namespace temper::cli {

struct RunOptions {
  std::string config;             ///< Pipeline YAML; with `resume` also the folder of a run.
  std::vector<std::string> sets;  ///< "a.b=c"
  bool resume = false;
  std::string from;    ///< RUN, RUN@STEP or RUN@best with the initial weights; empty: its own base.
  bool go_on = false;  ///< Resume if the folder holds a run.
  bool plain = false;
  bool json = false;
  std::string faults;  ///< Fault plan; empty: as configured.
  std::optional<std::string>
      dashboard;  ///< Serve the web page at this address; empty: the default address.
  orchestrator::DriverKind driver = orchestrator::DriverKind::Auto;
};

/// Returns exit code 0 if the run finished all its steps or was stopped by SIGUSR1 (time limit; the
/// launcher resubmits the job), 130 if it was stopped on request, else 1 or 2.
int run_pipeline(const RunOptions& options);

/// Declares the flags of `temper run`.
Handler run_command(Flags& flags);

}  // namespace temper::cli
