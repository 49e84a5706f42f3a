// How a process ended, in words: "exit code 3", "killed by signal 9 (Killed)".
#pragma once

#include <signal.h>

#include <string>

namespace temper {

/// Of a status as waitpid() gives it, of a process that has ended.
std::string exit_text(int wait_status);
/// Of what waitid() gives.
std::string exit_text(const siginfo_t& info);

}  // namespace temper
