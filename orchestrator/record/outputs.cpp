#include "orchestrator/record/outputs.hpp"

#include "core/hash.hpp"
#include "core/msgpack.hpp"
#include "orchestrator/record/log_reader.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr const char* kLogHash = "log_hash";

/// Whether the run was resumed at the point at which the log had this hash.
Result<bool> was_resumed_at(const fs::path& path, std::uint64_t hash) {
  TEMPER_TRY(LogReader reader, LogReader::open(path));
  for (std::uint64_t before = 0;;) {
    TEMPER_TRY(const auto bytes, reader.next());
    if (!bytes)
      return false;
    if (before == hash) {
      const auto record = decode<Record>(*bytes);
      return record && std::holds_alternative<event::Resumed>(record->event);
    }
    before = hash64(*bytes, before);
  }
}

}  // namespace

Status seal_outputs(const fs::path& run_dir,
                    const std::vector<std::string>& names,
                    std::uint64_t log_hash) {
  TEMPER_TRY(auto files, sum_files(run_dir, names));
  return write_manifest(run_dir / kOutputsManifest, {{{kLogHash, log_hash}}, std::move(files)});
}

Status unseal_outputs(const fs::path& run_dir) {
  std::error_code error;
  fs::remove(run_dir / kOutputsManifest, error);
  if (error)
    return io_error("cannot remove " + (run_dir / kOutputsManifest).string(), error.value());
  return {};
}

Result<std::optional<Manifest>> read_outputs_manifest(const fs::path& run_dir,
                                                      const LogSummary& log) {
  auto manifest = read_manifest(run_dir / kOutputsManifest);
  if (!manifest && manifest.error().code == ErrorCode::NotFound)
    return std::optional<Manifest>();
  if (!manifest)
    return std::move(manifest).error();
  const auto hash = manifest->facts.find(kLogHash);
  if (hash == manifest->facts.end() || hash->second == log.hash)
    return std::optional(*std::move(manifest));
  TEMPER_TRY(const bool stale, was_resumed_at(run_dir / "events.log", hash->second));
  return stale ? std::optional<Manifest>() : std::optional(*std::move(manifest));
}

std::vector<std::string> check_outputs(const fs::path& run_dir, const LogSummary& log) {
  const auto read = read_outputs_manifest(run_dir, log);
  if (!read)
    return {read.error().context};
  if (!*read)
    return {};
  const Manifest& manifest = **read;
  std::vector<std::string> wrong;
  const auto hash = manifest.facts.find(kLogHash);
  if (hash == manifest.facts.end() || hash->second != log.hash) {
    wrong.push_back(fmt::format(
        "events.log does not end as at the end of the run: of the {} bytes of its last file, {} "
        "are whole, and its hash is {:016x}",
        log.end.file_bytes,
        log.end.whole_bytes,
        log.hash));
  }
  for (const FileSum& file : manifest.files) {
    if (const Status whole = check_file(run_dir, file); !whole)
      wrong.push_back(whole.error().context);
  }
  return wrong;
}

}  // namespace temper::orchestrator
