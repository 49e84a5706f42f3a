#include "orchestrator/record/best_audit.hpp"

#include "core/files.hpp"
#include "core/json.hpp"
#include "core/json_read.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// Runs on simulated hardware have no weights to keep. The file is as the program writes it.
bool is_simulated(const fs::path& run_dir) {
  const auto config = read_file(run_dir / "config.yaml");
  return config && ("\n" + *config).find("\nhardware: simulated") != std::string::npos;
}

/// A repair has kept a best/ under another name.
bool is_set_aside(const fs::path& run_dir) {
  std::error_code ignored;
  return fs::exists(run_dir / "best.damaged-1", ignored) ||
         fs::exists(run_dir / "best.void-1", ignored);
}

}  // namespace

BestInLog::BestInLog(fs::path run_dir) : run_dir_(std::move(run_dir)) {
  const auto seek = [&](const fs::path& folder) {
    if (const auto mark = mark_in(folder))
      sought_.insert(mark->sequence);
  };
  for (const std::string_view folder : {kBestFolder, kBestCandidate, kBestReplaced, kBestRepaired})
    seek(run_dir_ / folder);
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(run_dir_ / "checkpoints", error))
    seek(entry.path());
}

void BestInLog::feed(const Record& record, const LogPosition& behind) {
  if (sought_.contains(record.sequence))
    told_[record.sequence] = behind;
  // What the record before this one asked for was done, unless the process was killed or gave up.
  if (due_ && saved_.contains(*due_) && !std::holds_alternative<event::Aborted>(record.event) &&
      !std::holds_alternative<event::Resumed>(record.event)) {
    made_ = std::exchange(due_, std::nullopt);
    owed_.reset();
  }
  if (const SchedulerConfig* config = config_in(record.event)) {
    evaluates_ = config->evaluation.every > 0;
    keeps_ = config->evaluation.checkpoint && !is_simulated(run_dir_);
  }
  if (const auto* resumed = std::get_if<event::Resumed>(&record.event)) {
    saved_.clear();
    due_.reset();
    if (owed_ && owed_->sequence > resumed->sequence)
      owed_.reset();  // void; the version is trained and evaluated again
  } else if (const auto* saved = std::get_if<event::CheckpointSaved>(&record.event);
             saved != nullptr && saved->error.empty()) {
    saved_ = {saved->version};
    if (due_ == saved->version)
      owed_ = CheckpointMark{saved->version, record.sequence, behind};
  }
  take_commands(record);
}

void BestInLog::take_commands(const Record& record) {
  for (const Command& command : record.commands) {
    const auto* result = std::get_if<command::Evaluated>(&command);
    if (result == nullptr || !result->best)
      continue;
    evaluations_.emplace(result->version, *result);
    if (result->version == PolicyVersion(0))
      continue;  // the base has no checkpoint
    called_[result->version] = record.sequence;
    last_ = result->version;
    due_ = keeps_ ? last_ : std::nullopt;
    owed_.reset();
  }
}

std::optional<std::uint64_t> BestInLog::called_best_at(PolicyVersion version) const {
  const auto it = called_.find(version);
  return it == called_.end() ? std::nullopt : std::optional(it->second);
}

bool BestInLog::tells_of(const CheckpointMark& mark) const {
  const auto told = told_.find(mark.sequence);
  return told != told_.end() && told->second == mark.log;
}

const command::Evaluated* BestInLog::evaluation_of(PolicyVersion version) const {
  const auto [first, end] = evaluations_.equal_range(version);
  return first == end ? nullptr : &std::prev(end)->second;
}

/// By the manifest; of a run of an earlier program, whose manifest does not have it, by the log.
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
                   fmt::format("{} is not what events.log has of the evaluation of version {}",
                               (folder / kBestFile).string(),
                               mark->version));
  }
  // One that was not there when the log began to be read is of a run that goes on.
  if (sought_.contains(mark->sequence) && !tells_of(*mark)) {
    return {BestState::Void,
            *mark,
            fmt::format("{}: events.log does not tell of it: it was saved at record {}",
                        folder.string(),
                        mark->sequence)};
  }
  return {BestState::Whole, *mark, {}};
}

bool BestInLog::candidate_is_complete() const {
  const fs::path folder = run_dir_ / kBestCandidate;
  const auto manifest = read_manifest(folder / kFolderManifest);
  return manifest && manifest->find(kBestFile) != nullptr &&
         verify(folder).state == BestState::Whole;
}

bool BestInLog::could_be_best(std::string_view name) const {
  std::error_code ignored;
  return fs::exists(run_dir_ / name / kBestFile, ignored) &&
         verify(run_dir_ / name).state == BestState::Whole;
}

BestAbsence BestInLog::absence() const {
  if (!keeps_)
    return BestAbsence::NotKept;
  if (is_set_aside(run_dir_))
    return BestAbsence::SetAside;
  if (last_)
    return BestAbsence::NotInPlace;
  return evaluates_ ? BestAbsence::NoneBetter : BestAbsence::NotEvaluated;
}

BestVerdict BestInLog::verify() const {
  const fs::path best = run_dir_ / kBestFolder;
  std::error_code ignored;
  if (fs::exists(fs::symlink_status(best, ignored))) {
    // A run that goes on may have put the next one in its place meanwhile.
    for (int tries = 0;; ++tries) {
      const auto before = mark_in(best);
      BestVerdict verdict = verify(best);
      if (!verdict.is_wrong() || tries == 3 || mark_in(best) == before)
        return verdict;
    }
  }
  const auto cut_off = [&](std::string_view name) {
    return missing(fmt::format(
        "{} is missing; the process ended while {} was to take its name", best.string(), name));
  };
  // Where there was none before, nothing is lost: a resume or a repair ends the promotion.
  if (made_ && candidate_is_complete())
    return cut_off(kBestCandidate);
  for (const std::string_view name : {kBestRepaired, kBestReplaced}) {
    if (could_be_best(name))
      return cut_off(name);
  }
  if (made_ && !is_set_aside(run_dir_)) {
    return missing(fmt::format(
        "{} is missing; events.log says that version {} was kept there", best.string(), *made_));
  }
  return {BestState::None, {}, {}, absence()};
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

namespace {

std::string sentence(BestAbsence absence) {
  switch (absence) {
    case BestAbsence::NotKept:
      return "the run does not keep its best version (evaluation.keep_best; a simulated run has no "
             "weights to keep)";
    case BestAbsence::NotEvaluated:
      return "the run evaluates no version (evaluation.every; see docs/how-to/evaluate.md)";
    case BestAbsence::NoneBetter:
      return "no version was evaluated that is better than the base (see docs/how-to/evaluate.md)";
    case BestAbsence::NotInPlace:
      return "a version is better than the base, but its checkpoint is not saved yet, or the "
             "process ended before it became best/; `temper run --resume` puts it there or "
             "evaluates it again";
    case BestAbsence::SetAside:
      return "a repair kept it as best.damaged-1 or best.void-1 and found nothing to make it of; "
             "the next version that is evaluated better than all before becomes best/";
  }
  return {};
}

}  // namespace

Error best_error(const fs::path& run_dir, const BestVerdict& verdict) {
  if (!verdict.is_wrong()) {
    return Error{ErrorCode::NotFound,
                 fmt::format("{} is not there: {}",
                             (run_dir / kBestFolder).string(),
                             sentence(verdict.absence.value_or(BestAbsence::NoneBetter)))};
  }
  return corrupt(
      fmt::format("{}; `temper fsck {} --repair` restores it from a checkpoint where it can, and "
                  "keeps what is damaged",
                  verdict.what,
                  run_dir.string()));
}

}  // namespace temper::orchestrator
