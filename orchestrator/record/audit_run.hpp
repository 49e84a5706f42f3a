// The complete audit of a run folder: its log (Auditor), the files derived from the log
// (certificates.jsonl, summary.json) and the manifest that proves they are complete
// (outputs.manifest).
#pragma once

#include "orchestrator/record/audit.hpp"

#include <filesystem>

namespace temper::orchestrator {

/// A log that is damaged, or shorter than at the end of the run, is a violation. A log that is
/// merely torn at its end is not; the report says so. Error: there is no log, or it has no record.
Result<AuditReport> audit_run(const std::filesystem::path& run_dir);

}  // namespace temper::orchestrator
