// `temper doctor`: what this machine has of what a run needs. `temper init`: a configuration for a
// task of one's own, to be filled in.
#pragma once

#include "cli/command/command_line.hpp"

#include <iosfwd>
#include <string>

namespace temper::cli {

/// kFound where something that every run needs is missing.
int run_doctor(bool json, std::ostream& out);

struct InitOptions {
  std::string file;
  std::string task{};   ///< JSONL; empty: a file to be named.
  std::string model{};  ///< Folder; empty: a small network of its own.
};

/// Never overwrites. The file it writes is a good configuration once `task.path` is there.
int run_init(const InitOptions& options, std::ostream& out, std::ostream& err);

/// What `temper init` writes.
std::string starter_config(const InitOptions& options, std::size_t cores);

Handler doctor_command(Flags& flags);
Handler init_command(Flags& flags);

}  // namespace temper::cli
