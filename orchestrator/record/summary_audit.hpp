// The auditor's look at summary.json: do the states of every card sum to the wall time exactly, and
// the reasons of the waits to the wait states of all cards (to the precision of printed seconds)?
#pragma once

#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// What is wrong; empty if all is well or there is no summary (the run did not end).
std::vector<std::string> audit_times(const std::filesystem::path& summary);

}  // namespace temper::orchestrator
