// `temper run`: from a YAML file to a finished run folder.
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
  std::string from;    ///< RUN, RUN@STEP or RUN@best whose weights it begins with; empty: its own.
  bool go_on = false;  ///< As `resume`, where the folder holds a run.
  bool plain = false;
  bool json = false;
  std::string faults;                    ///< Plan of failures to play; empty: as configured.
  std::optional<std::string> dashboard;  ///< Serve its page; where, unless empty.
  orchestrator::DriverKind driver = orchestrator::DriverKind::Auto;
};

/// 0 only if the run made all its updates, or SIGUSR1 stopped it, which says that its time is up;
/// 130 if it was stopped on request; else 1.
int run_pipeline(const RunOptions& options);

/// `temper run`: its flags, and what it does.
Handler run_command(Flags& flags);

}  // namespace temper::cli
