// Identity of a checkpoint, from its manifest: its version, and the log record at which it was
// saved. The manifest of best/ has the same facts.
#pragma once

#include "core/ids.hpp"
#include "core/manifest.hpp"
#include "orchestrator/record/log_files.hpp"

namespace temper::orchestrator {

struct CheckpointMark {
  PolicyVersion version;
  std::uint64_t sequence = 0;  ///< Sequence number of its CheckpointSaved record in events.log.
  LogPosition log;             ///< End of that record; identifies the history.
  bool operator==(const CheckpointMark&) const = default;
};

std::map<std::string, std::uint64_t> facts_of(const CheckpointMark& mark);
/// `path`: path of the manifest, for error messages.
Result<CheckpointMark> mark_of(const Manifest& manifest, const std::filesystem::path& path);
/// The mark of a folder; none if its manifest is missing or cannot be read.
std::optional<CheckpointMark> mark_in(const std::filesystem::path& folder);

}  // namespace temper::orchestrator
