#include "orchestrator/record/checkpoint_mark.hpp"

namespace temper::orchestrator {

std::map<std::string, std::uint64_t> facts_of(const CheckpointMark& mark) {
  return {{"version", mark.version.value()},
          {"sequence", mark.sequence},
          {"log_bytes", static_cast<std::uint64_t>(mark.log.bytes)},
          {"log_chain", mark.log.chain}};
}

Result<CheckpointMark> mark_of(const Manifest& manifest, const std::filesystem::path& path) {
  const auto fact = [&](const char* name) {
    const auto it = manifest.facts.find(name);
    return it == manifest.facts.end() ? 0 : it->second;
  };
  if (manifest.facts.size() != 4 || !manifest.facts.contains("log_chain")) {
    return corrupt(
        path.string() +
        " is not the manifest of a checkpoint: it lacks version, sequence, log_bytes or log_chain");
  }
  return CheckpointMark{PolicyVersion(fact("version")),
                        fact("sequence"),
                        {static_cast<std::int64_t>(fact("log_bytes")), fact("log_chain")}};
}

std::optional<CheckpointMark> mark_in(const std::filesystem::path& folder) {
  const std::filesystem::path path = folder / kFolderManifest;
  const auto mark =
      read_manifest(path).and_then([&](const Manifest& m) { return mark_of(m, path); });
  return mark ? std::optional(*mark) : std::nullopt;
}

}  // namespace temper::orchestrator
