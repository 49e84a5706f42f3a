// `temper fsck RUN`: verifies every file of a run folder against its checksums.
#pragma once

#include "cli/command/command_line.hpp"

#include <string>

namespace temper::cli {

struct FsckOptions {
  std::string run_dir;
  bool repair = false;
  bool json = false;
};

/// kDone: every file is intact. kFound: some files are damaged, but the run can be resumed; repairs
/// are printed. kLost: the run cannot be resumed. Other codes: no run, or it cannot be read.
int run_fsck(const FsckOptions& options);

Handler fsck_command(Flags& flags);

}  // namespace temper::cli
