// Audits summary.json: the states of every card must sum to the wall time exactly, and the reasons
// of waits to the wait states of all cards (to the precision of printed seconds). The time in the
// tail of a batch must be that of the log, and its waits those that name it.
#pragma once

#include "core/units.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// Of a log.
struct LoggedTimes {
  Duration tail{};  ///< Time in the tail of a batch.
  Time end{};       ///< Of the run; until it ends, of its last record.
};

/// The violations; empty if there is none, or no summary (the run did not finish). The tail is
/// compared if the log ends when the summary was written: a run may have been resumed since.
std::vector<std::string> audit_times(const std::filesystem::path& summary, const LoggedTimes& log);

}  // namespace temper::orchestrator
