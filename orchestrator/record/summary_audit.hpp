// Audits summary.json: the states of every card must sum to the wall time exactly, and the reasons
// of waits to the wait states of all cards (to the precision of printed seconds). The time in the
// tail of a batch must be that of the log, and its waits those that name it.
#pragma once

#include "core/units.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// The violations; empty if there is none, or no summary (the run did not finish). `tail`: time in
/// the tail of a batch, from the log.
std::vector<std::string> audit_times(const std::filesystem::path& summary, Duration tail);

}  // namespace temper::orchestrator
