// CPU time of this process and of its child processes, by name.
#pragma once

#include "core/units.hpp"

#include <map>
#include <string>

namespace temper::study {

/// CPU time of all threads of each process so far. This process is "orchestrator"; a child has the
/// name that it set itself. Empty if the system has no /proc.
std::map<std::string, Duration> cpu_times();

}  // namespace temper::study
