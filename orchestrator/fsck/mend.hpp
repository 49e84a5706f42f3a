// Repairs single-bit errors. If a hash says what bytes should be and one bit is wrong, trying
// scan_all bits finds the one that makes the hash match. The probability of a wrong match is that
// of a hash collision.
#pragma once

#include "core/manifest.hpp"
#include "orchestrator/record/event_log.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// Repairs a log record by record; each damaged record is kept in a file beside the log. `said`
/// receives one line for each. Returns the summary of the log afterwards.
Result<LogSummary> mend_log(const std::filesystem::path& log, std::vector<std::string>& said);

/// The same for a file that a manifest names. False: the error is not a single bit, or the file is
/// too large.
Result<bool> mend_file(const std::filesystem::path& folder,
                       const FileSum& sum,
                       std::vector<std::string>& said);

/// The same of a manifest, which has a hash of itself.
Result<bool> mend_manifest(const std::filesystem::path& manifest, std::vector<std::string>& said);

}  // namespace temper::orchestrator
