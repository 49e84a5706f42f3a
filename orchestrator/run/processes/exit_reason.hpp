// Why a child process ended, for messages: its exit status, and the last line of its output where
// that line can explain the end. No threads, no I/O.
#pragma once

#include "core/result.hpp"
#include "orchestrator/run/processes/supervisor.hpp"

#include <string>
#include <string_view>

namespace temper::orchestrator {

/// The last line that is not blank. Of a line that a progress bar overwrites, the part that a
/// terminal would show.
std::string_view last_line(std::string_view output);

/// The last line of the output of run_program(), or without one how it ended.
std::string last_words(std::string_view output, const Status& ended);

/// last_line(), or nothing if it is a log line of level debug or info, as core/log.hpp or a Python
/// worker writes it: a worker that was killed says nothing about its end. A line of any other form
/// is kept, for example the last one of a traceback or the message of a library that aborts.
std::string_view explaining_line(std::string_view output);

/// "killed by signal 9 (Killed)", or "exit code 1; ValueError: no such model". The line is cut as
/// bounded_text() does. An exit code of 0 stands alone.
std::string exit_reason(const ChildExit& exit);

}  // namespace temper::orchestrator
