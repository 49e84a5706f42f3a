// Turns one flipped bit back. Where a hash says what bytes should be and only one bit is wrong,
// there is one bit that makes the hash right again: it is found by trying all. That a wrong one
// fits is as likely as that the hash fails.
#pragma once

#include "core/manifest.hpp"
#include "orchestrator/record/event_log.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// Turns back what can be in a log, record by record, each keeping its bytes as they were in a file
/// of its own beside the log. `said`: a line for each. The result: the log as it is then.
Result<LogSummary> mend_log(const std::filesystem::path& log, std::vector<std::string>& said);

/// The same of a file that a manifest names. False: it is not one bit that is wrong, or too large.
Result<bool> mend_file(const std::filesystem::path& folder,
                       const FileSum& sum,
                       std::vector<std::string>& said);

}  // namespace temper::orchestrator
