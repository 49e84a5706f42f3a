#include "orchestrator/record/best_audit.hpp"

#include "core/files.hpp"
#include "core/json.hpp"
#include "core/json_read.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// Runs on simulated hardware have no weights to keep. Relies on the form in which Temper writes
/// the file.
bool is_simulated(const fs::path& run_dir) {
  const auto config = read_file(run_dir / "config.yaml");
  return config && ("\n" + *config).find("\nhardware: simulated") != std::string::npos;
}

/// Whether a repair has moved a best/ aside.
bool is_set_aside(const fs::path& run_dir) {
  std::error_code ignored;
  return fs::exists(run_dir / "best.damaged-1", ignored) ||
         fs::exists(run_dir / "best.void-1", ignored);
}

}  // namespace

BestInLog::BestInLog(fs::path run_dir) : run_dir_(std::move(run_dir)) {
  const auto seek = [&](const fs::path& folder) {
    if (const auto mark = mark_in(folder))
      checkpoint_records_.insert(mark->sequence);
  };
  for (const std::string_view folder : {kBestFolder, kBestCandidate, kBestReplaced})
    seek(run_dir_ / folder);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_dir_ / "checkpoints", error))
    seek(entry.path());
}

void BestInLog::feed(const Record& record, const LogPosition& behind) {
  if (checkpoint_records_.contains(record.sequence))
    positions_[record.sequence] = behind;
  // The request of the previous record was carried out, unless the process was killed or gave up.
  if (due_ && saved_.contains(*due_) && !std::holds_alternative<event::Aborted>(record.event) &&
      !std::holds_alternative<event::Resumed>(record.event))
    made_ = std::exchange(due_, std::nullopt);
  if (const SchedulerConfig* config = config_in(record.event))
    keeps_ = config->evaluation.checkpoint && !is_simulated(run_dir_);
  if (std::holds_alternative<event::Resumed>(record.event)) {
    saved_.clear();
    due_.reset();
  } else if (const auto* saved = std::get_if<event::CheckpointSaved>(&record.event);
             saved != nullptr && saved->error.empty()) {
    saved_ = {saved->version};
  }
  for (const Command& command : record.commands) {
    const auto* result = std::get_if<command::Evaluated>(&command);
    if (result == nullptr || !result->best)
      continue;
    evaluations_.emplace(result->version, *result);
    if (result->version == PolicyVersion(0))
      continue;  // The base has no checkpoint.
    last_ = result->version;
    due_ = keeps_ ? last_ : std::nullopt;
  }
}

bool BestInLog::tells_of(const CheckpointMark& mark) const {
  const auto told = positions_.find(mark.sequence);
  return told != positions_.end() && told->second == mark.log;
}

const command::Evaluated* BestInLog::evaluation_of(PolicyVersion version) const {
  const auto [first, end] = evaluations_.equal_range(version);
  return first == end ? nullptr : &std::prev(end)->second;
}

/// From the manifest; if an earlier program wrote the run, the manifest lacks it and the log has
/// it.
bool BestInLog::evaluation_is_proved(const fs::path& folder,
                                     const Manifest& manifest,
                                     PolicyVersion version) const {
  if (manifest.find(kBestFile) != nullptr)
    return true;
  const auto text = read_file(folder / kBestFile);
  const auto found = text ? from_json<command::Evaluated>(*text) : std::nullopt;
  const auto [first, end] = evaluations_.equal_range(version);
  return found && std::any_of(first, end, [&](const auto& e) {
           return to_json(e.second) == to_json(*found);
         });
}

BestVerdict BestInLog::verify(const fs::path& folder) const {
  const fs::path path = folder / kFolderManifest;
  const auto damaged = [](std::optional<CheckpointMark> mark, std::string what) {
    return BestVerdict{BestState::Damaged, mark, std::move(what)};
  };
  const auto manifest = read_manifest(path);
  if (!manifest)
    return damaged({}, manifest.error().context);
  const auto mark = mark_of(*manifest, path);
  if (!mark)
    return damaged({}, mark.error().context);
  if (const Status whole = check_files(folder, *manifest); !whole)
    return damaged(*mark, whole.error().context);
  if (!evaluation_is_proved(folder, *manifest, mark->version)) {
    return damaged(*mark,
                   fmt::format("{} differs from the evaluation of version {} in events.log",
                               (folder / kBestFile).string(),
                               mark->version));
  }
  // A checkpoint that did not exist when reading the log began belongs to a run in progress.
  if (checkpoint_records_.contains(mark->sequence) && !tells_of(*mark)) {
    return {
        BestState::Void,
        *mark,
        fmt::format(
            "{}: not in events.log; it was saved at record {}", folder.string(), mark->sequence)};
  }
  return {BestState::Whole, *mark, {}};
}

bool BestInLog::candidate_is_complete() const {
  const fs::path folder = run_dir_ / kBestCandidate;
  const auto manifest = read_manifest(folder / kFolderManifest);
  return manifest && manifest->find(kBestFile) != nullptr &&
         verify(folder).state == BestState::Whole;
}

BestVerdict BestInLog::verify() const {
  const fs::path best = run_dir_ / kBestFolder;
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(best, ignored))) {
    // A run in progress may have replaced it meanwhile.
    for (int tries = 0;; ++tries) {
      const auto before = mark_in(best);
      BestVerdict verdict = verify(best);
      if (!verdict.is_wrong() || tries == 3 || mark_in(best) == before)
        return verdict;
    }
  }
  const auto cut_off = [&](std::string_view name) {
    return missing(fmt::format(
        "{} is missing; the process ended before {} was renamed to it", best.string(), name));
  };
  // If there was none before, nothing is lost: a resume or a repair finishes the rename.
  if (made_ && candidate_is_complete())
    return cut_off(kBestCandidate);
  if (const fs::path replaced = run_dir_ / kBestReplaced;
      fs::exists(replaced / kBestFile, ignored) && !verify(replaced).is_wrong())
    return cut_off(kBestReplaced);
  if (made_ && !is_set_aside(run_dir_)) {
    return missing(
        fmt::format("{} is missing; by events.log it has version {}", best.string(), *made_));
  }
  return {};
}

Result<BestVerdict> verify_best(const fs::path& run_dir) {
  BestInLog best(run_dir);
  if (std::error_code ignored; !fs::exists(run_dir / "events.log", ignored))
    return best.verify();
  TEMPER_TRY_STATUS(
      scan_event_log(run_dir / "events.log", [&](const Record& record, const LogPosition& behind) {
        best.feed(record, behind);
        return Status();
      }));
  return best.verify();
}

Error best_error(const fs::path& run_dir, const BestVerdict& verdict) {
  if (!verdict.is_wrong()) {
    return Error{
        ErrorCode::NotFound,
        fmt::format("{} does not exist, because no evaluated version is better than the base "
                    "(see docs/evaluation.md)",
                    (run_dir / kBestFolder).string())};
  }
  return corrupt(fmt::format(
      "{}; run `temper fsck {} --repair` to restore it from a checkpoint if possible and "
      "quarantine damaged files",
      verdict.what,
      run_dir.string()));
}

}  // namespace temper::orchestrator
