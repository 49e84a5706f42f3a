#include "orchestrator/run/checkpoints.hpp"

#include "core/files.hpp"
#include "core/msgpack.hpp"
#include "orchestrator/record/best_audit.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <tuple>
#include <utility>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kReplaced = ".replaced";  // The step was saved again.
constexpr std::string_view kStateFile = "orchestrator.msgpack";

fs::path with(const fs::path& path, std::string_view suffix) {
  return path.string() + std::string(suffix);
}

/// "step-000040", and "step-000040.replaced" while the step is being saved again.
bool is_checkpoint_name(const std::string& name) {
  const std::size_t dot = std::min(name.find('.'), name.size());
  return name.starts_with("step-") && (dot == name.size() || name.substr(dot) == kReplaced);
}

}  // namespace

fs::path Checkpoints::named(PolicyVersion version) const {
  return folder_ / fmt::format("step-{:06}", version.value());
}

Result<fs::path> Checkpoints::begin(PolicyVersion version) const {
  const fs::path partial = with(named(version), kPartial);
  std::error_code error;
  fs::remove_all(partial, error);
  fs::create_directory(partial, error);
  if (error)
    return io_error("cannot create folder " + partial.string(), error.value());
  return partial;
}

Status Checkpoints::complete(const CheckpointState& state,
                             const LogPosition& log,
                             std::int32_t keep) const {
  const CheckpointMark mark{state.version, state.sequence, log};
  const fs::path whole = named(state.version);
  const fs::path partial = with(whole, kPartial);
  for (const std::string_view ours : {kStateFile, kFolderManifest, kBestFile}) {
    if (std::error_code none; fs::exists(partial / ours, none)) {
      return invalid_input(
          fmt::format("{}: the trainer saved a file named {}, which is the orchestrator's; give it "
                      "another name",
                      partial.string(),
                      ours));
    }
  }
  TEMPER_TRY_STATUS(write_file_atomically(partial / kStateFile, encode(state)));
  TEMPER_TRY(auto files, sum_folder(partial));
  TEMPER_TRY_STATUS(write_manifest(partial / kFolderManifest, {facts_of(mark), std::move(files)}));
  TEMPER_TRY_STATUS(put_in_place(partial, whole));
  std::int32_t kept = 0;
  for (const FoundCheckpoint& found : find()) {
    if (!found.mark || found.mark->sequence > state.sequence || ++kept <= keep)
      continue;
    TEMPER_TRY_STATUS(remove(found.folder));
  }
  return {};
}

/// An older checkpoint of that name counts until the new one does.
Status Checkpoints::put_in_place(const fs::path& partial, const fs::path& whole) const {
  const fs::path replaced = with(whole, kReplaced);
  std::error_code ignored;
  const bool again = fs::exists(whole, ignored);
  if (again && fs::exists(replaced, ignored))
    TEMPER_TRY_STATUS(remove(replaced));
  if (again)
    TEMPER_TRY_STATUS(rename_durably(whole, replaced));
  TEMPER_TRY_STATUS(rename_durably(partial, whole));
  return again ? remove(replaced) : Status();
}

/// Renames it before its first file is removed, so that it no longer counts.
Status Checkpoints::remove(const fs::path& checkpoint) const {
  const fs::path partial = with(checkpoint, kPartial);
  std::error_code error;
  fs::remove_all(partial, error);
  TEMPER_TRY_STATUS(rename_durably(checkpoint, partial));
  fs::remove_all(partial, error);
  if (error)
    return io_error("cannot remove " + partial.string(), error.value());
  return {};
}

std::vector<FoundCheckpoint> Checkpoints::find() const {
  std::vector<FoundCheckpoint> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(folder_, error)) {
    if (!is_checkpoint_name(entry.path().filename().string()))
      continue;
    FoundCheckpoint found{entry.path(), std::nullopt, {}};
    const fs::path path = found.folder / kFolderManifest;
    auto mark = read_manifest(path).and_then([&](const Manifest& m) { return mark_of(m, path); });
    if (mark)
      found.mark = *mark;
    else
      found.damage = mark.error().context;
    all.push_back(std::move(found));
  }
  std::ranges::sort(all, std::greater(), [](const FoundCheckpoint& c) {
    return std::tuple(c.mark.has_value(), c.mark ? c.mark->sequence : 0, c.folder);
  });
  return all;
}

Result<Checkpoint> Checkpoints::load(const FoundCheckpoint& found) {
  if (!found.mark)
    return corrupt(found.damage);
  TEMPER_TRY(const Manifest manifest, check_folder(found.folder));
  if (manifest.find(kStateFile) == nullptr)
    return corrupt(fmt::format("{}: the manifest has no {}", found.folder.string(), kStateFile));
  const fs::path path = found.folder / kStateFile;
  TEMPER_TRY(const std::string bytes, read_file(path));
  auto state = decode<CheckpointState>(bytes);
  if (!state)
    return std::move(state).error().within(path.string());
  if (state->sequence != found.mark->sequence || state->version != found.mark->version) {
    return corrupt(fmt::format("{} is of record {}, its manifest of record {}",
                               path.string(),
                               state->sequence,
                               found.mark->sequence));
  }
  return Checkpoint{found.folder, *std::move(state)};
}

Result<fs::path> Checkpoints::set_aside(const fs::path& checkpoint, Defect defect) const {
  const fs::path aside = free_name(
      folder_ / (checkpoint.stem().string() + (defect == Defect::Void ? ".void" : ".damaged")));
  TEMPER_TRY_STATUS(rename_durably(checkpoint, aside));
  return aside;
}

}  // namespace temper::orchestrator
