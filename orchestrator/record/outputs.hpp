// outputs.manifest: checksums of the files derived from events.log at the end of the run, and the
// hash of the log there. A log truncated at the end of a record looks like that of a shorter run;
// the manifest tells them apart. A resumed run removes the manifest once its log records the
// resume. If the process ends in between, the manifest is stale: the log continues behind the end
// that it certifies.
#pragma once

#include "core/manifest.hpp"
#include "orchestrator/record/event_log.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

inline constexpr std::string_view kMetricsFile = "metrics.jsonl";
inline constexpr std::string_view kCertificateFile = "certificates.jsonl";
inline constexpr std::string_view kSummaryFile = "summary.json";
inline constexpr std::string_view kOutputsManifest = "outputs.manifest";

/// Requires: no process writes these files of the folder. Errors: see sum_files() and
/// write_manifest().
Status seal_outputs(const std::filesystem::path& run_dir,
                    const std::vector<std::string>& names,
                    std::uint64_t log_hash);
/// Removes the manifest, if there is one. Call before one of the files changes. Error: Io.
Status unseal_outputs(const std::filesystem::path& run_dir);

/// The manifest of a finished run. None: the run has not finished, or was resumed since. Error: it
/// is damaged. `log`: summary of the log as read.
Result<std::optional<Manifest>> read_outputs_manifest(const std::filesystem::path& run_dir,
                                                      const LogSummary& log);
/// The files that differ from those at the end of the run, as text; empty also if there is no such
/// manifest.
std::vector<std::string> check_outputs(const std::filesystem::path& run_dir, const LogSummary& log);

}  // namespace temper::orchestrator
