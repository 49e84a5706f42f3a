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

/// The candidate has all that best/ is to have, unless it is damaged.
Status complete_candidate(const fs::path& run_dir, const command::Evaluated& result) {
  const fs::path candidate = candidate_of(run_dir);
  TEMPER_TRY_STATUS(
      write_file_atomically(candidate / kBestFile, to_json(result, JsonStyle::Pretty) + "\n"));
  TEMPER_TRY(Manifest manifest, read_manifest(candidate / kFolderManifest));
  TEMPER_TRY(const auto added, sum_files(candidate, {std::string(kBestFile)}));
  std::erase_if(manifest.files, [](const FileSum& file) { return file.name == kBestFile; });
  manifest.files.push_back(added.front());
  std::ranges::sort(manifest.files, {}, &FileSum::name);
  TEMPER_TRY_STATUS(write_manifest(candidate / kFolderManifest, manifest));
  return check_files(candidate, manifest);
}

Status promote(const fs::path& run_dir, const command::Evaluated& result) {
  TEMPER_TRY_STATUS(complete_candidate(run_dir, result));
  return put_folder_in_place(candidate_of(run_dir), run_dir / kBestFolder);
}

/// What best/ can be made of.
struct Source {
  std::string name;  ///< Relative to the run's folder.
  CheckpointMark mark;
  std::uint64_t rank = 0;  ///< The record that called its version the best.
  bool complete = false;   ///< It has evaluation.json; else it is a checkpoint.
};

/// All that is left, the version that was called the best last first; of one version that which is
/// complete. Their files are not read here.
std::vector<Source> find_sources(const fs::path& run_dir, const BestInLog& log) {
  std::vector<Source> sources;
  const auto add = [&](std::string name, const std::optional<CheckpointMark>& mark, bool complete) {
    const auto rank = mark ? log.called_best_at(mark->version) : std::nullopt;
    if (rank)
      sources.push_back({std::move(name), *mark, *rank, complete});
  };
  for (const std::string_view name : {kBestRepaired, kBestCandidate, kBestReplaced}) {
    std::error_code ignored;
    if (fs::exists(run_dir / name / kBestFile, ignored))
      add(std::string(name), mark_in(run_dir / name), true);
  }
  for (const FoundCheckpoint& found : Checkpoints(run_dir / "checkpoints").find())
    add(found.folder.lexically_relative(run_dir).string(), found.mark, false);
  std::ranges::stable_sort(sources, std::ranges::greater(), &Source::rank);
  return sources;
}

bool is_whole(const fs::path& run_dir, const BestInLog& log, const Source& source) {
  if (!source.complete)
    return log.tells_of(source.mark) && check_folder(run_dir / source.name);
  return source.name == kBestCandidate ? log.candidate_is_complete()
                                       : log.could_be_best(source.name);
}

std::optional<Source> find_source(const fs::path& run_dir, const BestInLog& log) {
  for (Source& source : find_sources(run_dir, log)) {
    if (is_whole(run_dir, log, source))
      return std::move(source);
  }
  return std::nullopt;
}

/// The source takes the name `to`, which nothing has; a checkpoint is copied, so that it stays.
Status move_source(const fs::path& run_dir,
                   const BestInLog& log,
                   const Source& source,
                   const fs::path& to) {
  if (source.complete)
    return rename_durably(run_dir / source.name, to);
  TEMPER_TRY_STATUS(copy_to_candidate(run_dir, run_dir / source.name));
  TEMPER_TRY_STATUS(complete_candidate(run_dir, *log.evaluation_of(source.mark.version)));
  return rename_durably(candidate_of(run_dir), to);
}

/// A best/ that is damaged or void keeps its name until the new one is complete, and then gets the
/// name `aside`.
Status replace_wrong(const fs::path& run_dir,
                     const BestInLog& log,
                     const Source& source,
                     const fs::path& aside) {
  const fs::path best = run_dir / kBestFolder, repaired = run_dir / kBestRepaired;
  if (source.name != kBestRepaired) {
    TEMPER_TRY_STATUS(remove_folder(repaired));
    TEMPER_TRY_STATUS(move_source(run_dir, log, source, repaired));
  }
  TEMPER_TRY(const bool exchanged, exchange_durably(repaired, best));
  if (exchanged)
    return rename_durably(repaired, aside);
  TEMPER_TRY_STATUS(rename_durably(best, aside));
  return rename_durably(repaired, best);
}

/// Ends a promotion. A best/ that is there is that of a version before.
Status finish_promotion(const fs::path& run_dir, const BestInLog& log, const Source& source) {
  if (source.complete)
    return put_folder_in_place(run_dir / source.name, run_dir / kBestFolder);
  TEMPER_TRY_STATUS(copy_to_candidate(run_dir, run_dir / source.name));
  return promote(run_dir, *log.evaluation_of(source.mark.version));
}

std::string made_of(const Source& source) {
  return source.complete ? fmt::format("best/ was restored from {}, which is complete", source.name)
                         : fmt::format("best/ was rebuilt from {}", source.name);
}

/// Where the wrong best/ is kept.
fs::path name_aside(const fs::path& run_dir, BestState state) {
  return free_name(run_dir / (state == BestState::Void ? "best.void" : "best.damaged"));
}

/// Of a repair that was cut off: what it exchanged is set aside; what it made is of no use where
/// best/ is whole.
Status settle_repaired(const fs::path& run_dir, const BestInLog& log, const BestVerdict& best) {
  const fs::path repaired = run_dir / kBestRepaired;
  if (std::error_code ignored; !fs::exists(repaired, ignored))
    return {};
  const BestVerdict verdict = log.verify(repaired);
  if (verdict.is_wrong())
    return rename_durably(repaired, name_aside(run_dir, verdict.state));
  return best.state == BestState::Whole ? remove_folder(repaired) : Status();
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

void BestCheckpoint::roll_back(std::uint64_t sequence) {
  awaited_.reset();
  const auto candidate = mark_in(candidate_of(run_dir_));
  std::error_code ignored;
  if (candidate && candidate->sequence > sequence)
    fs::remove_all(candidate_of(run_dir_), ignored);
}

Result<std::vector<std::string>> restore_best(const fs::path& run_dir, const BestInLog& log) {
  std::vector<std::string> done;
  const BestVerdict verdict = log.verify();
  TEMPER_TRY_STATUS(settle_repaired(run_dir, log, verdict));
  const bool owed =
      log.owed() && !verdict.is_wrong() && (!verdict.mark || *verdict.mark != *log.owed());
  const bool cut_off = verdict.state == BestState::None && log.candidate_is_complete();
  if (!verdict.is_wrong() && !owed && !cut_off)
    return done;
  const auto source = find_source(run_dir, log);
  if (owed && !cut_off && (!source || source->mark != *log.owed()))
    return done;  // its checkpoint is lost, the best/ before it is not
  const bool is_there = verdict.state == BestState::Damaged || verdict.state == BestState::Void;
  const fs::path aside = name_aside(run_dir, verdict.state);
  if (is_there && source)
    TEMPER_TRY_STATUS(replace_wrong(run_dir, log, *source, aside));
  else if (is_there)
    TEMPER_TRY_STATUS(rename_durably(run_dir / kBestFolder, aside));
  else if (source)
    TEMPER_TRY_STATUS(finish_promotion(run_dir, log, *source));
  if (is_there)
    done.push_back(fmt::format("best/ is kept as {}: {}", aside.filename().string(), verdict.what));
  done.push_back(source ? made_of(*source)
                        : "best/ cannot be rebuilt: no copy of the best version is left; the next "
                          "version with a better evaluation becomes best/");
  return done;
}

}  // namespace temper::orchestrator
