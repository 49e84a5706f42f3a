// Converts library exceptions to errors at the outermost level: main() and the thread that runs a
// role. Users see an error with its place and next step, never the bare text of an exception.
#pragma once

#include "core/result.hpp"

#include <exception>

namespace temper {

/// Names the resource that the system refused: memory (OutOfMemory), a file (Io, with its path) or
/// another resource (Io). Any other exception is a defect (Internal); the message asks the user to
/// report it.
Error error_of(const std::exception& exception);

/// Installs a terminate handler: an uncaught exception on any thread is printed to stderr as
/// error_of() describes it before the process aborts.
void report_uncaught_exceptions();

}  // namespace temper
