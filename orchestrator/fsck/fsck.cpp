#include "orchestrator/fsck/fsck.hpp"

#include "core/files.hpp"
#include "core/manifest.hpp"
#include "orchestrator/fsck/mend.hpp"
#include "orchestrator/metrics/report.hpp"
#include "orchestrator/metrics/trace_file.hpp"
#include "orchestrator/record/audit.hpp"
#include "orchestrator/record/best_audit.hpp"
#include "orchestrator/record/certificate_audit.hpp"
#include "orchestrator/record/outputs.hpp"
#include "orchestrator/run/best_checkpoint.hpp"
#include "orchestrator/run/resume.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <tuple>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// Reads a whole run folder and collects the state of its files.
class FolderScan {
 public:
  explicit FolderScan(const fs::path& root) : best(root), run_dir_(root) {}

  Status scan_all() {
    scan_inputs();
    TEMPER_TRY_STATUS(scan_log());
    scan_checkpoints();
    scan_best();
    scan_outputs();
    scan_rest();
    std::ranges::sort(files, {}, &CheckedFile::name);
    return {};
  }

  std::vector<CheckedFile> files;
  LogSummary log;
  History history;
  BestInLog best;
  PolicyVersion version;                  ///< Version after the last step in the log.
  std::optional<command::Finish> finish;  ///< How the run finished, if the log has it.
  bool inputs_whole = true, outputs_whole = true;

 private:
  void add(std::string name, FileState state, std::string what = {}) {
    files.push_back({std::move(name), state, std::move(what)});
  }
  /// Checks one file that a manifest in `folder` names.
  bool check_listed_file(const fs::path& folder, const FileSum& sum) {
    const Status whole = check_file(folder, sum);
    const fs::path path = folder / sum.name;
    add(path.lexically_relative(run_dir_.root()).string(),
        whole              ? FileState::Whole
        : fs::exists(path) ? FileState::Damaged
                           : FileState::Missing,
        whole ? "" : whole.error().context);
    return whole.has_value();
  }
  FileState state_of(const Error& error) const {
    return error.code == ErrorCode::NotFound ? FileState::Missing : FileState::Damaged;
  }

  void scan_inputs() {
    const auto manifest = read_manifest(run_dir_.file(kInputsManifest));
    inputs_whole = manifest.has_value();
    add(std::string(kInputsManifest),
        manifest ? FileState::Whole : state_of(manifest.error()),
        manifest ? "" : manifest.error().context);
    if (!manifest)
      return;
    for (const FileSum& sum : manifest->files) {
      if (sum.name == "config.yaml" &&
          check_file(run_dir_.root(), {std::string(kNextConfig), sum.bytes, sum.hash}))
        add(sum.name, FileState::Whole);  // The next resume or repair renames it.
      else
        inputs_whole = check_listed_file(run_dir_.root(), sum) && inputs_whole;
    }
  }

  void note(const Record& record) {
    if (const auto* resumed = std::get_if<event::Resumed>(&record.event)) {
      finish.reset();
      saved_.erase(saved_.upper_bound(resumed->sequence), saved_.end());
    }
    if (const auto* saved = std::get_if<event::CheckpointSaved>(&record.event);
        saved != nullptr && saved->error.empty())
      saved_[record.sequence] = saved->version;
    for (const Command& command : record.commands) {
      if (const auto* end = std::get_if<command::Finish>(&command))
        finish = *end;
    }
  }

  Status scan_log() {
    HistoryReader reader(run_dir_.checkpoints());
    TEMPER_TRY(log,
               scan_event_log(run_dir_.file("events.log"),
                              [&](const Record& record, const LogPosition& behind) {
                                reader.feed(record, behind);
                                best.feed(record, behind);
                                auditor_.feed(record);
                                note(record);
                                return Status();
                              }));
    history = reader.history();
    version = reader.version();
    const fs::path path = run_dir_.file("events.log");
    TEMPER_TRY(const std::size_t last, count_log_files(path));
    for (std::size_t n = 1; n <= last; ++n) {
      const std::string name = log_file(path, n).filename().string();
      if (!fs::exists(log_file(path, n)))
        add(name, FileState::Missing);
      else if (n < log.end.file)
        add(name, FileState::Whole);
      else if (n > log.end.file)
        add(name, FileState::Unchecked, "follows the damage and was not read");
      else
        add(name, state_of_log(), log.end.what);
    }
    return {};
  }
  FileState state_of_log() const {
    return log.damaged()     ? FileState::Damaged
           : log.torn_tail() ? FileState::Torn
                             : FileState::Whole;
  }

  void scan_checkpoints() {
    for (const FoundCheckpoint& found : run_dir_.checkpoints().find()) {
      const std::string name = "checkpoints/" + found.folder.filename().string();
      const auto manifest = read_manifest(found.folder / kFolderManifest);
      const std::string own = name + "/" + std::string(kFolderManifest);
      if (!manifest || !found.mark) {
        add(own, manifest ? FileState::Damaged : state_of(manifest.error()), found.damage);
        continue;
      }
      const auto told = history.find(found.mark->sequence);
      const bool of_history = told != history.end() && told->second == found.mark->log;
      add(own,
          of_history ? FileState::Whole : FileState::Void,
          of_history
              ? ""
              : fmt::format("events.log has no checkpoint at record {}", found.mark->sequence));
      for (const FileSum& sum : manifest->files)
        check_listed_file(found.folder, sum);
    }
    find_missing_checkpoint();
  }
  /// Reports a missing checkpoint if the log has some, but none exists or was moved aside. A
  /// checkpoint that was just being saved may be missing.
  void find_missing_checkpoint() {
    if (saved_.empty() || (saved_.size() == 1 && saved_.begin()->first + 1 >= log.records))
      return;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(run_dir_.checkpoints().folder(), error)) {
      const std::string name = entry.path().filename().string();
      if (name.find(".void-") != std::string::npos || name.find(".damaged-") != std::string::npos)
        return;
    }
    const bool any = std::ranges::any_of(run_dir_.checkpoints().find(), [&](const auto& found) {
      return !found.mark || saved_.contains(found.mark->sequence);
    });
    if (any)
      return;
    const auto [sequence, saved] = *saved_.rbegin();
    add("checkpoints/" + run_dir_.checkpoints().folder_of(saved).filename().string(),
        FileState::Missing,
        fmt::format("events.log has it (record {}) and {} checkpoints in total, but none exists",
                    sequence,
                    saved_.size()));
  }

  void scan_best() {
    const fs::path folder = run_dir_.file(kBestFolder);
    const std::string own = fmt::format("{}/{}", kBestFolder, kFolderManifest);
    const BestVerdict verdict = best.verify();
    if (verdict.state == BestState::None)
      return;
    if (verdict.state == BestState::Missing)
      return add(std::string(kBestFolder), FileState::Missing, verdict.what);
    const auto manifest = read_manifest(folder / kFolderManifest);
    if (!manifest || !verdict.mark)
      return add(own, manifest ? FileState::Damaged : state_of(manifest.error()), verdict.what);
    add(own,
        verdict.state == BestState::Void ? FileState::Void : FileState::Whole,
        verdict.state == BestState::Void ? verdict.what : "");
    bool whole = true;
    for (const FileSum& sum : manifest->files)
      whole = check_listed_file(folder, sum) && whole;
    if (verdict.state == BestState::Damaged && whole)  // A file that its manifest does not name.
      add(fmt::format("{}/{}", kBestFolder, kBestFile), FileState::Damaged, verdict.what);
  }

  /// Compares the certificates with the log, because no manifest covers them yet.
  void check_outputs_of_unfinished_run() {
    const auto wrong =
        audit_certificates(run_dir_.file(kCertificateFile), auditor_.batches(), auditor_.report());
    outputs_whole = wrong.empty() && !finish;
    if (!wrong.empty()) {
      add(std::string(kCertificateFile),
          fs::exists(run_dir_.file(kCertificateFile)) ? FileState::Damaged : FileState::Missing,
          wrong.front());
    }
    if (finish)
      add(std::string(kOutputsManifest), FileState::Missing, "a finished run must have it");
  }
  void scan_outputs() {
    const auto sealed = read_outputs_manifest(run_dir_.root(), log);
    if (sealed && !*sealed)
      return check_outputs_of_unfinished_run();
    const auto wrong = check_outputs(run_dir_.root(), log);
    outputs_whole = wrong.empty();
    add(std::string(kOutputsManifest),
        sealed ? FileState::Whole : FileState::Damaged,
        sealed ? "" : sealed.error().context);
    if (!sealed)
      return;
    for (const FileSum& sum : (*sealed)->files)
      check_listed_file(run_dir_.root(), sum);
    // The log of a finished run must end where the run did.
    const std::string last =
        log_file(run_dir_.file("events.log"), log.end.file).filename().string();
    const auto event_log = std::ranges::find(files, last, &CheckedFile::name);
    if (event_log->state == FileState::Whole && !wrong.empty() &&
        wrong.front().starts_with("events.log"))
      *event_log = {last, FileState::Damaged, wrong.front()};
  }

  /// Lists the files that nothing certifies.
  void scan_rest() {
    std::error_code error;
    for (fs::recursive_directory_iterator it(run_dir_.root(), error), end; !error && it != end;
         it.increment(error)) {
      const std::string name = it->path().lexically_relative(run_dir_.root()).string();
      if (!it->is_regular_file(error) ||
          std::ranges::find(files, name, &CheckedFile::name) != files.end())
        continue;
      const bool aside = name.find(".cut-") != std::string::npos ||
                         name.find(".void-") != std::string::npos ||
                         name.find(".damaged-") != std::string::npos;
      add(name, aside ? FileState::Aside : FileState::Unchecked);
    }
  }

  RunDir run_dir_;
  std::map<std::uint64_t, PolicyVersion> saved_;  ///< Checkpoints in the log, by record.
  Auditor auditor_;
};

bool is_wrong(const CheckedFile& file) {
  return file.state != FileState::Whole && file.state != FileState::Aside &&
         file.state != FileState::Unchecked;
}

/// Repairs single-bit errors in the manifest of `folder` and in the files that it names. With a
/// manifest that is damaged further, nothing can be repaired.
Status mend_files(const fs::path& folder,
                  const fs::path& manifest,
                  std::vector<std::string>& said) {
  TEMPER_TRY(std::ignore, mend_manifest(folder / manifest, said));
  const auto named = read_manifest(folder / manifest);
  if (!named)
    return {};
  for (const FileSum& sum : named->files) {
    if (auto mended = mend_file(folder, sum, said); !mended)
      return std::move(mended).error();
  }
  return {};
}

/// Reverts every single-bit error that can be found.
Status mend_run(const RunDir& run_dir, std::vector<std::string>& said) {
  TEMPER_TRY(std::ignore, mend_manifest(run_dir.file(kInputsManifest), said));
  if (read_manifest(run_dir.file(kInputsManifest)))
    TEMPER_TRY_STATUS(run_dir.settle_inputs());
  if (auto log = mend_log(run_dir.file("events.log"), said); !log)
    return std::move(log).error();
  TEMPER_TRY_STATUS(mend_files(run_dir.root(), kInputsManifest, said));
  TEMPER_TRY_STATUS(mend_files(run_dir.root(), kOutputsManifest, said));
  for (const FoundCheckpoint& found : run_dir.checkpoints().find())
    TEMPER_TRY_STATUS(mend_files(found.folder, kFolderManifest, said));
  return mend_files(run_dir.file(kBestFolder), kFolderManifest, said);
}

/// Determines from where the run could be resumed now.
void report_resume_point(const RunDir& run_dir, const FolderScan& scan, FsckReport& report) {
  if (!scan.inputs_whole) {
    report.next =
        "the run cannot be resumed, because its inputs are damaged; restore them from a copy";
    return;
  }
  if (scan.log.end.goes_on_at) {
    report.next = fmt::format(
        "the run cannot be resumed; run `temper fsck {} --repair` to repair {} at byte {}, or "
        "truncate it "
        "there",
        run_dir.root().string(),
        log_file(run_dir.file("events.log"), scan.log.end.file).filename().string(),
        scan.log.end.whole_bytes);
    return;
  }
  const auto point = find_rollback_point(run_dir.checkpoints(), scan.history);
  report.resumable = point.has_value() && scan.log.records > 0;
  if (!point)
    report.next = point.error().context;
  else if (scan.finish && scan.finish->ok)
    report.next = "the run has finished";
  else if (scan.log.records == 0)
    report.next = "events.log holds no record; start the run again in another run_dir";
  else
    report.next = rollback_text(point->checkpoint, scan.version);
}

/// Moves aside every checkpoint that a resume would pass over.
Result<std::vector<std::string>> set_checkpoints_aside(const RunDir& run_dir,
                                                       const FolderScan& scan) {
  const Checkpoints checkpoints = run_dir.checkpoints();
  RollbackPoint point;
  for (const FoundCheckpoint& found : checkpoints.find()) {
    const bool of_history = found.mark && scan.history.contains(found.mark->sequence) &&
                            scan.history.at(found.mark->sequence) == found.mark->log;
    if (found.mark && !of_history) {
      point.skipped.push_back(
          {found.folder, Checkpoints::Defect::Void, "events.log does not have it"});
    } else if (const auto whole = Checkpoints::load(found); !whole) {
      point.skipped.push_back({found.folder, Checkpoints::Defect::Damaged, whole.error().context});
    }
  }
  return set_aside_skipped(checkpoints, point);
}

/// Moves damaged outputs aside, and rebuilds all outputs from the log.
Status repair_outputs(const RunDir& run_dir,
                      const FolderScan& scan,
                      std::vector<std::string>& said) {
  for (const std::string_view file : {kCertificateFile,
                                      kMetricsFile,
                                      kSummaryFile,
                                      trace_name(TraceForm::Json),
                                      trace_name(TraceForm::Gzip)}) {
    const std::string name(file);
    const auto found = std::ranges::find(scan.files, name, &CheckedFile::name);
    if (found == scan.files.end() || found->state != FileState::Damaged)
      continue;
    const fs::path kept = free_name(run_dir.file(name + ".damaged"));
    TEMPER_TRY_STATUS(rename_durably(run_dir.file(name), kept));
    said.push_back(fmt::format("{}: damaged; moved to {}", name, kept.filename().string()));
  }
  TEMPER_TRY_STATUS(rebuild_outputs(run_dir.root()));
  said.emplace_back(
      "metrics.jsonl, certificates.jsonl, the trace and summary.json: rebuilt from "
      "events.log");
  return {};
}

Status repair_run(const RunDir& run_dir, const FolderScan& scan, std::vector<std::string>& said) {
  TEMPER_TRY(const auto kept, cut_event_log(run_dir.file("events.log"), scan.log));
  for (const fs::path& file : kept) {
    said.push_back(
        fmt::format("{}: truncated at byte {}; the rest is kept as {}",
                    log_file(run_dir.file("events.log"), scan.log.end.file).filename().string(),
                    scan.log.end.whole_bytes,
                    file.filename().string()));
  }
  TEMPER_TRY(auto aside, set_checkpoints_aside(run_dir, scan));
  std::ranges::move(aside, std::back_inserter(said));
  TEMPER_TRY(auto best, restore_best(run_dir.root(), scan.best));
  std::ranges::move(best, std::back_inserter(said));
  if (scan.log.records > 0 && (!kept.empty() || !scan.outputs_whole))
    TEMPER_TRY_STATUS(repair_outputs(run_dir, scan, said));
  return {};
}

}  // namespace

bool FsckReport::whole() const {
  return std::ranges::none_of(files, is_wrong);
}

Result<FsckReport> check_run(const fs::path& run, Repair repair) {
  const RunDir run_dir(run);
  if (!fs::exists(run_dir.file("events.log")))
    return Error{ErrorCode::NotFound,
                 fmt::format("{} is not a run folder: it has no events.log", run.string())};
  FsckReport report;
  // Its files are being written, and half-written files would look damaged.
  if (std::error_code ignored; repair == Repair::No && fs::exists(run_dir.file(".lock"), ignored)) {
    const auto lock = run_dir.lock();
    if (!lock && lock.error().code == ErrorCode::Unavailable) {
      return Error{ErrorCode::Unavailable,
                   fmt::format("the run in {} is in progress; check its files once it has "
                               "ended",
                               run.string())};
    }
  }
  if (repair == Repair::Yes) {
    TEMPER_TRY(const RunLock lock, run_dir.lock());
    TEMPER_TRY_STATUS(mend_run(run_dir, report.repaired));
    FolderScan broken(run);
    TEMPER_TRY_STATUS(broken.scan_all());
    TEMPER_TRY_STATUS(repair_run(run_dir, broken, report.repaired));
  }
  FolderScan scan(run);
  TEMPER_TRY_STATUS(scan.scan_all());
  report_resume_point(run_dir, scan, report);
  report.files = std::move(scan.files);
  return report;
}

}  // namespace temper::orchestrator
