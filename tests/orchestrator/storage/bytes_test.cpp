// Every byte of every file of a small run is flipped in turn, and every file is cut at every
// length. Each time that is found by the code that proves the file. What fsck, audit and a resume
// make of it, which read every file of the folder, is looked at for every 16th byte (of files that
// are made from the log: for every 256th); with TEMPER_EVERY_BYTE=1 in the environment for every
// byte (docs/reference/run-folder.md has its table). The outcomes are counted and printed.
#include "core/files.hpp"
#include "core/manifest.hpp"
#include "orchestrator/fsck/fsck.hpp"
#include "orchestrator/record/audit_run.hpp"
#include "orchestrator/record/certificate_audit.hpp"
#include "orchestrator/record/outputs.hpp"
#include "orchestrator/run/resume.hpp"
#include "tests/support/stored_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using testing::Damaged;
using testing::StoredRun;

enum class How { Flipped, Cut };

/// Two checkpoints, one after each update: a few kilobytes.
StoredRun small_run(std::optional<std::uint64_t> killed_after = std::nullopt) {
  return StoredRun({.steps = killed_after ? 3U : 2U, .killed_after = killed_after});
}

/// Damages a file in every way and counts what is made of it.
class EveryByte {
 public:
  EveryByte(const StoredRun& run, fs::path file) : run_(run), file_(std::move(file)) {}
  ~EveryByte() {
    for (const auto& [outcome, times] : outcomes_)
      std::cout << fmt::format(
          "{:>40}  {:6}  {}\n", file_.lexically_relative(run_.root()).string(), times, outcome);
  }
  EveryByte(const EveryByte&) = delete;
  EveryByte& operator=(const EveryByte&) = delete;

  /// `judge` says the outcome; empty: the damage was missed.
  void damage(How how, const std::function<std::string(std::size_t)>& judge) {
    const auto size = static_cast<std::size_t>(fs::file_size(file_));
    for (std::size_t at = 0; at < size; ++at) {
      const auto damaged =
          how == How::Flipped ? Damaged::flipped(file_, at) : Damaged::truncated(file_, at);
      const std::string outcome = judge(at);
      ASSERT_NE(outcome, "") << file_ << (how == How::Flipped ? " flipped" : " cut") << " at "
                             << at;
      ++outcomes_[(how == How::Flipped ? "flipped: " : "cut: ") + outcome];
    }
  }

 private:
  const StoredRun& run_;
  const fs::path file_;
  std::map<std::string, int> outcomes_;
};

/// Whether this byte is shown to the whole programs, which read every file.
bool is_sampled(std::size_t at, std::size_t one_in = 16) {
  static const bool all = std::getenv("TEMPER_EVERY_BYTE") != nullptr;
  return all || at % one_in == 0;
}

bool fsck_finds_it(const StoredRun& run) {
  const auto report = check_run(run.root(), Repair::No);
  return !report || !report->whole();
}

class EveryByteOf : public ::testing::TestWithParam<How> {};
INSTANTIATE_TEST_SUITE_P(Flips, EveryByteOf, ::testing::Values(How::Flipped));
INSTANTIATE_TEST_SUITE_P(Cuts, EveryByteOf, ::testing::Values(How::Cut));

/// What a resume makes of the log as it is; checks that it is nothing that was damaged.
std::string resume_outcome(const StoredRun& run, const std::string& whole_log) {
  const auto point = find_resume_point(run.dir(), run.config());
  if (!point)
    return "resume refuses";
  const std::string now = read_file(run.log()).value();
  const auto kept = static_cast<std::size_t>(point->log.end.whole_bytes);
  EXPECT_TRUE(whole_log.starts_with(std::string_view(now).substr(0, kept)));
  EXPECT_TRUE(point->rollback.checkpoint);
  if (point->log.end.kind == LogEnd::Kind::Whole)
    return point->rollback.skipped.empty() ? "" : "resume takes the older checkpoint";
  return point->rollback.skipped.empty() ? "resume cuts off the last record"
                                         : "resume cuts, and takes the older checkpoint";
}

LogSummary scanned_run(const StoredRun& run) {
  return scan_event_log(run.log(), [](const Record&, const LogPosition&) { return Status(); })
      .value();
}

TEST_P(EveryByteOf, TheLogOfARunThatEnded) {
  const StoredRun run = small_run();
  const std::string whole = read_file(run.log()).value();
  EveryByte bytes(run, run.log());
  bytes.damage(GetParam(), [&](std::size_t at) -> std::string {
    const LogSummary log = scanned_run(run);
    if (log.end.kind == LogEnd::Kind::Whole && log.position == run.positions().back())
      return "";
    if (!is_sampled(at))
      return "found by the reader";
    const auto audit = audit_run(run.root());
    if ((audit && audit->violations.empty()) || !fsck_finds_it(run))
      return "";
    const std::string resumed = resume_outcome(run, whole);
    return resumed.empty() ? "audit finds it; a resume has all of it that counts" : resumed;
  });
}

TEST_P(EveryByteOf, TheLogOfARunThatWasKilled) {
  const StoredRun run = small_run(2);
  const std::string whole = read_file(run.log()).value();
  const LogPosition saved = run.checkpoints().at(0).mark->log;
  EveryByte bytes(run, run.log());
  bytes.damage(GetParam(), [&](std::size_t at) -> std::string {
    const LogSummary log = scanned_run(run);
    if (log.end.kind == LogEnd::Kind::Whole) {
      // Cut between two records: nothing tells it from a run that was killed earlier.
      if (GetParam() == How::Cut && std::cmp_greater_equal(at, saved.bytes))
        return "as if killed earlier, after the checkpoint";
      if (GetParam() == How::Flipped)
        return "";
    } else if (!is_sampled(at)) {
      return "found by the reader";
    }
    if (!fsck_finds_it(run))
      return "";
    return resume_outcome(run, whole);
  });
}

TEST_P(EveryByteOf, AFileOfACheckpoint) {
  const StoredRun run = small_run(2);
  History history;
  for (const FoundCheckpoint& found : run.checkpoints())
    history[found.mark->sequence] = found.mark->log;
  for (std::size_t n = 0; n < 2; ++n) {
    const fs::path folder = run.checkpoint(n), other = run.checkpoint(1 - n);
    for (const char* name : {"manifest", "orchestrator.msgpack", "trainer.json"}) {
      EveryByte bytes(run, folder / name);
      bytes.damage(GetParam(), [&](std::size_t at) -> std::string {
        const auto found = run.checkpoints();
        const auto is_whole = [&](const FoundCheckpoint& c) {
          return c.folder == folder && Checkpoints::load(c);
        };
        if (std::ranges::any_of(found, is_whole))
          return "";
        if (is_sampled(at) && !fsck_finds_it(run))
          return "";
        const auto way = find_rollback_point(run.dir().checkpoints(), history);
        if (!way || !way->checkpoint || way->checkpoint->folder != other)
          return "";
        return n == 0 ? "the older checkpoint is used" : "the newer checkpoint is used";
      });
    }
  }
}

TEST_P(EveryByteOf, AnInput) {
  const StoredRun run = small_run(2);
  for (const char* name : {"config.yaml", "inputs.manifest"}) {
    EveryByte bytes(run, run.root() / name);
    bytes.damage(GetParam(), [&](std::size_t at) -> std::string {
      if (is_sampled(at) && (!fsck_finds_it(run) || find_resume_point(run.dir(), run.config())))
        return "";
      return run.dir().check_inputs() ? "" : "resume refuses";
    });
  }
}

TEST_P(EveryByteOf, AFileMadeFromTheLog) {
  const StoredRun run = small_run();
  const fs::path proof = run.root() / kOutputsManifest;
  const Manifest manifest = read_manifest(proof).value();
  for (const std::string name :
       {"outputs.manifest", "certificates.jsonl", "metrics.jsonl", "summary.json", "trace.json"}) {
    const FileSum* sum = manifest.find(name);
    EveryByte bytes(run, run.root() / name);
    bytes.damage(GetParam(), [&](std::size_t at) -> std::string {
      if (is_sampled(at, 256) && (!fsck_finds_it(run) || audit_run(run.root())->violations.empty()))
        return "";
      const bool whole = sum == nullptr ? read_manifest(proof).has_value()
                                        : check_file(run.root(), *sum).has_value();
      return whole ? "" : "audit finds it; a repair makes it anew";
    });
  }
}

TEST_P(EveryByteOf, TheCertificatesOfARunThatWasKilled) {
  const StoredRun run = small_run(2);
  const fs::path file = run.root() / "certificates.jsonl";
  const std::string whole = read_file(file).value();
  EveryByte bytes(run, file);
  bytes.damage(GetParam(), [&](std::size_t at) -> std::string {
    if (!check_certificate_chain(file).empty())
      return "fsck and audit find it; a resume makes it anew";
    if (!audit_run(run.root())->violations.empty())
      return "audit finds it; a resume makes it anew";
    // The last line may be missing where the process ended before the run did.
    const bool last_line = at >= whole.rfind('\n', whole.size() - 2);
    return last_line ? "as if killed while the last line was written" : "";
  });
}

}  // namespace
}  // namespace temper::orchestrator
