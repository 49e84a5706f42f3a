// outputs.manifest: the files that were made from events.log, as they were when the run ended, and
// where the log ended. A log that was cut at the end of a record looks like one of a run that ended
// earlier; this tells them apart. A run that goes on removes it once its log says so; where the
// process ended in between, it is stale: the log went on behind the end that it proves.
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

/// Requires: nobody writes these files of the folder any more.
Status seal_outputs(const std::filesystem::path& run_dir,
                    const std::vector<std::string>& names,
                    std::uint64_t log_hash);
/// To be called before one of them changes.
Status unseal_outputs(const std::filesystem::path& run_dir);

/// The manifest of a run that has ended. None: it has not, or it went on since then. Error: it is
/// damaged. `log` as read.
Result<std::optional<Manifest>> read_outputs_manifest(const std::filesystem::path& run_dir,
                                                      const LogSummary& log);
/// What is not as it was when the run ended; empty also where there is no such manifest.
std::vector<std::string> check_outputs(const std::filesystem::path& run_dir, const LogSummary& log);

}  // namespace temper::orchestrator
