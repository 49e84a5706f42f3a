// What the manifest of a checkpoint says of it: which version, and at which record of which log it
// was saved. The manifest of best/ says the same.
#pragma once

#include "core/ids.hpp"
#include "core/manifest.hpp"
#include "orchestrator/record/log_files.hpp"

namespace temper::orchestrator {

struct CheckpointMark {
  PolicyVersion version;
  std::uint64_t sequence = 0;  ///< Of the CheckpointSaved record in events.log.
  LogPosition log;             ///< Behind that record: which history it is of.
  bool operator==(const CheckpointMark&) const = default;
};

std::map<std::string, std::uint64_t> facts_of(const CheckpointMark& mark);
/// `path`: of the manifest, for the error.
Result<CheckpointMark> mark_of(const Manifest& manifest, const std::filesystem::path& path);
/// The mark of a folder; empty if its manifest is missing or cannot be read.
std::optional<CheckpointMark> mark_in(const std::filesystem::path& folder);

}  // namespace temper::orchestrator
