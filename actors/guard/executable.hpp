// Resolves command names to executable files.
#pragma once

#include "core/result.hpp"

#include <string>

namespace temper::actors {

/// The file that a shell would run for `name`. Errors: NotFound if it is not in PATH; Io if it
/// cannot be executed.
Result<std::string> find_executable(const std::string& name);

/// The Python interpreter for chat templates, and for roles and rewards unless the configuration
/// names one: TEMPER_PYTHON, otherwise that of the virtual environment in which this program is
/// installed, otherwise `python3` from PATH.
std::string default_python();

}  // namespace temper::actors
