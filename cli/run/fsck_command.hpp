// temper fsck RUN: is every file of a run what was written?
#pragma once

#include "cli/command/command_line.hpp"

#include <string>

namespace temper::cli {

struct FsckOptions {
  std::string run_dir;
  bool repair = false;
  bool json = false;
};

/// kDone: every file is whole. kFound: some are not, and the run can go on; what --repair did is
/// said. kLost: the run cannot go on as it is. Else: there is no run, or it cannot be read.
int run_fsck(const FsckOptions& options);

Handler fsck_command(Flags& flags);

}  // namespace temper::cli
