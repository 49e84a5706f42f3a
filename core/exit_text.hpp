// Describes how a process ended: "exit code 3", "killed by signal 9 (Killed)".
#pragma once

#include <signal.h>

#include <string>

namespace temper {

/// Takes the status that waitpid() returned for a process that has ended.
std::string exit_text(int wait_status);
/// Takes the information that waitid() filled in.
std::string exit_text(const siginfo_t& info);

}  // namespace temper
