// Where exceptions of libraries stop: main(), the thread that runs a role. A user sees an error
// with its place and next step, never the text of an exception alone.
#pragma once

#include "core/result.hpp"

#include <exception>

namespace temper {

/// What the system refused, as an error that names it: memory (OutOfMemory), a file (Io, with its
/// path), another resource (Io). Any other exception is a defect (Internal): the error says so and
/// what to report.
Error error_of(const std::exception& exception);

/// From now on an exception that nothing catches, on whichever thread, is said on stderr as
/// error_of() has it before the process aborts.
void report_uncaught_exceptions();

}  // namespace temper
