#include "orchestrator/run/best_checkpoint.hpp"

#include "core/files.hpp"
#include "core/json.hpp"
#include "core/replace.hpp"
#include "orchestrator/run/checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

fs::path candidate_of(const fs::path& run_dir) {
  return run_dir / kBestCandidate;
}

Status remove_folder(const fs::path& folder) {
  std::error_code error;
  fs::remove_all(folder, error);
  return error ? Status(io_error("cannot remove " + folder.string(), error.value())) : Status();
}

/// The files that the checkpoint's manifest names, and then that, so that a copy that was cut off
/// has none.
Status copy_to_candidate(const fs::path& run_dir, const fs::path& checkpoint) {
  const fs::path to = candidate_of(run_dir);
  TEMPER_TRY_STATUS(remove_folder(to));
  TEMPER_TRY_STATUS(make_folder(to));
  TEMPER_TRY(const Manifest manifest, read_manifest(checkpoint / kFolderManifest));
  for (const FileSum& file : manifest.files) {
    TEMPER_TRY_STATUS(make_folder((to / file.name).parent_path()));
    TEMPER_TRY_STATUS(copy_tail(checkpoint / file.name, 0, to / file.name));
  }
  return write_manifest(to / kFolderManifest, manifest);
}

/// The candidate becomes best/, unless it is damaged.
Status promote(const fs::path& run_dir, const command::Evaluated& result) {
  const fs::path candidate = candidate_of(run_dir);
  TEMPER_TRY_STATUS(
      write_file_atomically(candidate / kBestFile, to_json(result, JsonStyle::Pretty) + "\n"));
  TEMPER_TRY(Manifest manifest, read_manifest(candidate / kFolderManifest));
  TEMPER_TRY(const auto added, sum_files(candidate, {std::string(kBestFile)}));
  std::erase_if(manifest.files, [](const FileSum& file) { return file.name == kBestFile; });
  manifest.files.push_back(added.front());
  std::ranges::sort(manifest.files, {}, &FileSum::name);
  TEMPER_TRY_STATUS(write_manifest(candidate / kFolderManifest, manifest));
  TEMPER_TRY_STATUS(check_files(candidate, manifest));
  return put_folder_in_place(candidate, run_dir / kBestFolder);
}

/// Makes best/ of what is left, the best of it. None: nothing is.
Result<std::optional<std::string>> make_anew(const fs::path& run_dir, const BestInLog& log) {
  const fs::path best = run_dir / kBestFolder, candidate = candidate_of(run_dir);
  if (log.candidate_is_complete()) {
    TEMPER_TRY_STATUS(put_folder_in_place(candidate, best));
    return std::optional<std::string>("best.candidate, which was complete, is best/ now");
  }
  const Checkpoints checkpoints(run_dir / "checkpoints");
  for (const FoundCheckpoint& found : checkpoints.find()) {
    if (!log.last() || !found.mark || found.mark->version != *log.last() ||
        !log.tells_of(*found.mark) || !check_folder(found.folder))
      continue;
    TEMPER_TRY_STATUS(copy_to_candidate(run_dir, found.folder));
    TEMPER_TRY_STATUS(promote(run_dir, *log.evaluation_of(*log.last())));
    return std::optional(
        fmt::format("best/ is made anew from checkpoint {}", found.folder.filename().string()));
  }
  const fs::path replaced = run_dir / kBestReplaced;
  if (log.verify(replaced).state == BestState::Whole) {
    TEMPER_TRY_STATUS(rename_durably(replaced, best));
    return std::optional<std::string>("best/ is the one before again: best.replaced");
  }
  return std::optional<std::string>();
}

}  // namespace

Status BestCheckpoint::saved(PolicyVersion version, const fs::path& checkpoint, bool evaluates) {
  const bool awaited = awaited_ && awaited_->version == version;
  if (!evaluates && !awaited)
    return {};
  TEMPER_TRY_STATUS(copy_to_candidate(run_dir_, checkpoint));
  return awaited ? promote(run_dir_, *std::exchange(awaited_, std::nullopt)) : Status();
}

Status BestCheckpoint::found(const command::Evaluated& result) {
  awaited_.reset();
  if (!result.best)
    return remove_folder(candidate_of(run_dir_));
  const fs::path checkpoint = Checkpoints(run_dir_ / "checkpoints").folder_of(result.version);
  const auto saved = mark_in(checkpoint);
  auto candidate = mark_in(candidate_of(run_dir_));
  if (saved && saved->version == result.version && candidate != saved) {
    TEMPER_TRY_STATUS(copy_to_candidate(run_dir_, checkpoint));
    candidate = saved;
  }
  if (candidate && candidate->version == result.version)
    return promote(run_dir_, result);
  awaited_ = result;
  return {};
}

void BestCheckpoint::went_back(std::uint64_t sequence) {
  awaited_.reset();
  const auto candidate = mark_in(candidate_of(run_dir_));
  std::error_code ignored;
  if (candidate && candidate->sequence > sequence)
    fs::remove_all(candidate_of(run_dir_), ignored);
}

Result<std::vector<std::string>> restore_best(const fs::path& run_dir, const BestInLog& log) {
  std::vector<std::string> done;
  const BestVerdict verdict = log.verify();
  const bool cut_off = verdict.state == BestState::None && log.candidate_is_complete();
  if (!verdict.is_wrong() && !cut_off)
    return done;
  if (verdict.state == BestState::Damaged || verdict.state == BestState::Void) {
    const fs::path aside =
        free_name(run_dir / (verdict.state == BestState::Void ? "best.void" : "best.damaged"));
    TEMPER_TRY_STATUS(rename_durably(run_dir / kBestFolder, aside));
    done.push_back(fmt::format("best/ is kept as {}: {}", aside.filename().string(), verdict.what));
  }
  TEMPER_TRY(auto made, make_anew(run_dir, log));
  done.push_back(made ? *std::move(made)
                      : "nothing is left to make best/ of; the next version that is evaluated "
                        "better than all before becomes best/");
  return done;
}

}  // namespace temper::orchestrator
