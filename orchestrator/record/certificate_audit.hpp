// The auditor's look at certificates.jsonl (metrics/certificate_file.hpp), with code of its own: is
// there one line for each update that counts, of the groups, versions, ages and bound that
// events.log tells of?
#pragma once

#include "orchestrator/record/audit.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// What is wrong; each names the step and, where it is about one, the group. Where the process
/// ended before the run did (`!report.ended`), the log and the file need not have come equally
/// far: the line of the last update may be missing or cut short, and lines of later ones are not
/// judged.
std::vector<std::string> audit_certificates(const std::filesystem::path& file,
                                            const AuditedBatches& batches,
                                            const AuditReport& report);

/// The first line that is not what was written, in words; empty: there is none, or no file. A last
/// line without its end does not count.
std::string check_certificate_chain(const std::filesystem::path& file);

}  // namespace temper::orchestrator
