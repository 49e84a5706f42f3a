// Audits certificates.jsonl (metrics/certificate_file.hpp) with independent code: there must be
// exactly one line for each step that is not void, with the groups, versions, ages and bound of
// events.log.
#pragma once

#include "orchestrator/record/audit.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// The violations; each names the step and, if it concerns one, the group. If the process ended
/// before the run did (`!report.ended`), log and file may differ in length: the line of the last
/// step may be missing or truncated, and lines of later steps are ignored.
std::vector<std::string> audit_certificates(const std::filesystem::path& file,
                                            const AuditedBatches& batches,
                                            const AuditReport& report);

/// Describes the first line that differs from what was written; empty if there is none, or no file.
/// A truncated last line is ignored.
std::string check_certificate_chain(const std::filesystem::path& file);

}  // namespace temper::orchestrator
