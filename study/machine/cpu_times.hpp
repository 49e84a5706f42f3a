// CPU time of this process and of the processes it has started, by name.
#pragma once

#include "core/units.hpp"

#include <map>
#include <string>

namespace temper::study {

/// Of all threads of each, so far; this process is "orchestrator", a child has the name that it
/// gave itself. Empty where the system does not tell (no /proc).
std::map<std::string, Duration> cpu_times();

}  // namespace temper::study
