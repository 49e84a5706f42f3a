// Commands on the folder of a finished (or dead) run. Each returns the exit code: 0 only if all is
// well.
#pragma once

#include <string>

namespace temper::cli {

struct AfterRunOptions {
  std::string run_dir;
  bool json = false;
};

int run_replay(const AfterRunOptions& options);
int run_audit(const AfterRunOptions& options);
int run_events(const AfterRunOptions& options);

}  // namespace temper::cli
