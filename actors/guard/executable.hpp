// Which file a command's name means.
#pragma once

#include "core/result.hpp"

#include <string>

namespace temper::actors {

/// The file that `name` means, as a shell would find it. Error: it is not there, or cannot be
/// executed.
Result<std::string> find_executable(const std::string& name);

/// The Python that roles and rewards run in where the configuration names none: TEMPER_PYTHON, else
/// that of the virtual environment that this program was installed into, else `python3` of PATH.
std::string default_python();

}  // namespace temper::actors
