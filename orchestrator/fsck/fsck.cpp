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

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// What is known of a run folder once all of it was read.
class FolderScan {
 public:
  explicit FolderScan(const fs::path& root) : best(root), run_dir_(root) {}

  Status all() {
    look_at_inputs();
    TEMPER_TRY_STATUS(look_at_log());
    look_at_checkpoints();
    look_at_best();
    look_at_outputs();
    look_at_rest();
    std::ranges::sort(files, {}, &CheckedFile::name);
    return {};
  }

  std::vector<CheckedFile> files;
  LogSummary log;
  History history;
  BestInLog best;
  PolicyVersion version;                  ///< After the last update in the log.
  std::optional<command::Finish> finish;  ///< Of the run, if the log tells of it.
  bool inputs_whole = true, outputs_whole = true;

 private:
  void add(std::string name, FileState state, std::string what = {}) {
    files.push_back({std::move(name), state, std::move(what)});
  }
  /// Of one file that a manifest in `folder` names.
  bool look_at(const fs::path& folder, const FileSum& sum) {
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

  void look_at_inputs() {
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
        add(sum.name, FileState::Whole);  // the next resume, or a repair, gives it its name
      else
        inputs_whole = look_at(run_dir_.root(), sum) && inputs_whole;
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

  Status look_at_log() {
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
        add(name, FileState::Unchecked, "behind the damage; nothing was read of it");
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

  void look_at_checkpoints() {
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
          of_history ? "" : fmt::format("events.log has no such record {}", found.mark->sequence));
      for (const FileSum& sum : manifest->files)
        look_at(found.folder, sum);
    }
    look_for_checkpoint();
  }
  /// The log tells of some, and none of them is there, nor set aside. One that was just being saved
  /// may not be.
  void look_for_checkpoint() {
    if (saved_.empty() || (saved_.size() == 1 && saved_.begin()->first + 1 >= log.records))
      return;
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(run_dir_.checkpoints().folder(), error)) {
      if (entry.path().filename().string().find(".void-") != std::string::npos)
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
        fmt::format("events.log tells of it (record {}), and of {} in all; none is there",
                    sequence,
                    saved_.size()));
  }

  void look_at_best() {
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
      whole = look_at(folder, sum) && whole;
    if (verdict.state == BestState::Damaged && whole)  // what its manifest does not name
      add(fmt::format("{}/{}", kBestFolder, kBestFile), FileState::Damaged, verdict.what);
  }

  /// What the certificates say is compared with the log, as nothing else proves them yet.
  void look_at_outputs_of_a_run_that_goes_on() {
    const auto wrong =
        audit_certificates(run_dir_.file(kCertificateFile), auditor_.batches(), auditor_.report());
    outputs_whole = wrong.empty() && !finish;
    if (!wrong.empty()) {
      add(std::string(kCertificateFile),
          fs::exists(run_dir_.file(kCertificateFile)) ? FileState::Damaged : FileState::Missing,
          wrong.front());
    }
    if (finish)
      add(std::string(kOutputsManifest), FileState::Missing, "the run has ended");
  }
  void look_at_outputs() {
    const auto sealed = read_outputs_manifest(run_dir_.root(), log);
    if (sealed && !*sealed)
      return look_at_outputs_of_a_run_that_goes_on();
    const auto wrong = check_outputs(run_dir_.root(), log);
    outputs_whole = wrong.empty();
    add(std::string(kOutputsManifest),
        sealed ? FileState::Whole : FileState::Damaged,
        sealed ? "" : sealed.error().context);
    if (!sealed)
      return;
    for (const FileSum& sum : (*sealed)->files)
      look_at(run_dir_.root(), sum);
    // The log of a run that has ended must end where the run did.
    const std::string last =
        log_file(run_dir_.file("events.log"), log.end.file).filename().string();
    const auto event_log = std::ranges::find(files, last, &CheckedFile::name);
    if (event_log->state == FileState::Whole && !wrong.empty() &&
        wrong.front().starts_with("events.log"))
      *event_log = {last, FileState::Damaged, wrong.front()};
  }

  /// What nothing proves.
  void look_at_rest() {
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
  std::map<std::uint64_t, PolicyVersion> saved_;  ///< Checkpoints by record, as the log has them.
  Auditor auditor_;
};

bool is_wrong(const CheckedFile& file) {
  return file.state != FileState::Whole && file.state != FileState::Aside &&
         file.state != FileState::Unchecked;
}

/// Of what a manifest in `folder` names. A damaged manifest mends nothing.
Status mend_files(const fs::path& folder,
                  const fs::path& manifest,
                  std::vector<std::string>& said) {
  const auto named = read_manifest(folder / manifest);
  if (!named)
    return {};
  for (const FileSum& sum : named->files) {
    if (auto mended = mend_file(folder, sum, said); !mended)
      return std::move(mended).error();
  }
  return {};
}

/// Turns back every single bit that can be.
Status mend_run(const RunDir& run_dir, std::vector<std::string>& said) {
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

/// From where the run could go on as it is now.
void say_what_is_next(const RunDir& run_dir, const FolderScan& scan, FsckReport& report) {
  if (!scan.inputs_whole) {
    report.next =
        "the run cannot go on: what it is made from is damaged; bring it back from a copy";
    return;
  }
  if (scan.log.end.goes_on_at) {
    report.next = fmt::format(
        "the run cannot go on before `temper fsck {} --repair` has mended {} at byte {}, or cut it "
        "off there",
        run_dir.root().string(),
        log_file(run_dir.file("events.log"), scan.log.end.file).filename().string(),
        scan.log.end.whole_bytes);
    return;
  }
  const auto way = find_way_back(run_dir.checkpoints(), scan.history);
  report.resumable = way.has_value() && scan.log.records > 0;
  if (!way)
    report.next = way.error().context;
  else if (scan.finish && scan.finish->ok)
    report.next = "the run has ended";
  else if (scan.log.records == 0)
    report.next = "events.log holds no record: begin the run anew in another run_dir";
  else
    report.next = way_text(way->checkpoint, scan.version);
}

/// Everything that a resume would pass over, and all of it.
Result<std::vector<std::string>> set_checkpoints_aside(const RunDir& run_dir,
                                                       const FolderScan& scan) {
  const Checkpoints checkpoints = run_dir.checkpoints();
  WayBack way;
  for (const FoundCheckpoint& found : checkpoints.find()) {
    const bool of_history = found.mark && scan.history.contains(found.mark->sequence) &&
                            scan.history.at(found.mark->sequence) == found.mark->log;
    if (found.mark && !of_history) {
      way.passed_over.push_back(
          {found.folder, Checkpoints::Why::Void, "events.log does not tell of it"});
    } else if (const auto whole = Checkpoints::load(found); !whole) {
      way.passed_over.push_back({found.folder, Checkpoints::Why::Damaged, whole.error().context});
    }
  }
  return clear_way(checkpoints, way);
}

/// Keeps the damaged ones, and makes them all anew from the log.
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
    said.push_back(fmt::format("{} is kept as {}", name, kept.filename().string()));
  }
  TEMPER_TRY_STATUS(rebuild_outputs(run_dir.root()));
  said.emplace_back(
      "metrics.jsonl, certificates.jsonl, the trace and summary.json are made anew from "
      "events.log");
  return {};
}

Status repair_run(const RunDir& run_dir, const FolderScan& scan, std::vector<std::string>& said) {
  TEMPER_TRY(const auto kept, cut_event_log(run_dir.file("events.log"), scan.log));
  for (const fs::path& file : kept) {
    said.push_back(
        fmt::format("{} is cut off at byte {}; what was behind it is kept as {}",
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
    return Error{ErrorCode::NotFound, fmt::format("{} holds no run", run.string())};
  FsckReport report;
  // Its files are being written: what is half there would look like damage.
  if (std::error_code ignored; repair == Repair::No && fs::exists(run_dir.file(".lock"), ignored)) {
    const auto lock = run_dir.lock();
    if (!lock && lock.error().code == ErrorCode::Unavailable) {
      return Error{ErrorCode::Unavailable,
                   fmt::format("the run in {} is going on; its files can be checked once it has "
                               "ended",
                               run.string())};
    }
  }
  if (repair == Repair::Yes) {
    TEMPER_TRY(const RunLock lock, run_dir.lock());
    TEMPER_TRY_STATUS(mend_run(run_dir, report.repaired));
    FolderScan broken(run);
    TEMPER_TRY_STATUS(broken.all());
    TEMPER_TRY_STATUS(repair_run(run_dir, broken, report.repaired));
  }
  FolderScan scan(run);
  TEMPER_TRY_STATUS(scan.all());
  say_what_is_next(run_dir, scan, report);
  report.files = std::move(scan.files);
  return report;
}

}  // namespace temper::orchestrator
