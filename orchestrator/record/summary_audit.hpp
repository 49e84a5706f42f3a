// Audits summary.json: the states of every card must sum to the wall time exactly, and the reasons
// of waits to the wait states of all cards (to the precision of printed seconds).
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// The violations; empty if there is none, or no summary (the run did not finish).
std::vector<std::string> audit_times(const std::filesystem::path& summary);

}  // namespace temper::orchestrator
