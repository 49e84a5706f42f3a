// The whole audit of a run folder: its log by the Auditor, and with it what was made from the log
// (certificates.jsonl, summary.json) and what proves that it is all there (outputs.manifest).
#pragma once

#include "orchestrator/record/audit.hpp"

#include <filesystem>

namespace temper::orchestrator {

/// A log that is damaged, or shorter than when the run ended, is a violation; one that is only torn
/// at its end is not, and the report says so. Error: there is no log, or no record in it.
Result<AuditReport> audit_run(const std::filesystem::path& run_dir);

}  // namespace temper::orchestrator
