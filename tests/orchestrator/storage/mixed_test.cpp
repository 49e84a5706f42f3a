// Folders whose files contradict each other: each file is whole, but is that of another run, of
// another checkpoint or of another time. `fsck` names it; `audit` finds what it judges.
#include "core/files.hpp"
#include "orchestrator/fsck/fsck.hpp"
#include "orchestrator/record/audit_run.hpp"
#include "orchestrator/run/resume.hpp"
#include "tests/support/stored_run.hpp"

#include <gtest/gtest.h>

#include <functional>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using testing::StoredRun;

constexpr auto kOver = fs::copy_options::recursive | fs::copy_options::overwrite_existing;

enum class Audit { Finds, IsNotItsMatter };
enum class Resume { GoesOn, Refuses };

struct Mixed {
  const char* what;
  bool killed;  ///< The run was killed; else it has ended.
  /// Puts files of the run `from` into the folder `to`; `older` and `newer`: checkpoints of it.
  std::function<void(
      const fs::path& from, const fs::path& to, const fs::path& older, const fs::path& newer)>
      mix;
  const char* named;  ///< The file that fsck finds wrong.
  Audit audit;
  Resume resume;
};

void take(const fs::path& from, const fs::path& to, const std::vector<std::string>& names) {
  for (const std::string& name : names)
    fs::copy(from / name, to / name, kOver);
}

const std::vector<Mixed>& mixed() {
  using P = const fs::path&;
  static const std::vector<Mixed> all{
      {"config.yaml of another run",
       false,
       [](P from, P to, P, P) { take(from, to, {"config.yaml"}); },
       "config.yaml",
       Audit::IsNotItsMatter,
       Resume::Refuses},
      {"inputs.manifest of another run",
       false,
       [](P from, P to, P, P) { take(from, to, {"inputs.manifest"}); },
       "config.yaml",
       Audit::IsNotItsMatter,
       Resume::Refuses},
      {"summary.json of another run",
       false,
       [](P from, P to, P, P) { take(from, to, {"summary.json"}); },
       "summary.json",
       Audit::Finds,
       Resume::GoesOn},
      {"metrics.jsonl of another run",
       false,
       [](P from, P to, P, P) { take(from, to, {"metrics.jsonl"}); },
       "metrics.jsonl",
       Audit::Finds,
       Resume::GoesOn},
      {"summary.json and its manifest of another run",
       false,
       [](P from, P to, P, P) {
         take(from, to, {"summary.json", "outputs.manifest"});
       },
       "events.log",
       Audit::Finds,
       Resume::GoesOn},
      {"all that is made from the log of another run",
       false,
       [](P from, P to, P, P) {
         take(from,
              to,
              {"summary.json",
               "metrics.jsonl",
               "certificates.jsonl",
               "trace.json",
               "outputs.manifest"});
       },
       "events.log",
       Audit::Finds,
       Resume::GoesOn},
      {"events.log of another run",
       false,
       [](P from, P to, P, P) { take(from, to, {"events.log"}); },
       "events.log",
       Audit::Finds,
       Resume::Refuses},
      {"events.log of another run, killed",
       true,
       [](P from, P to, P, P) { take(from, to, {"events.log"}); },
       "certificates.jsonl",
       Audit::Finds,
       Resume::Refuses},
      {"certificates.jsonl with two lines exchanged, killed",
       true,
       [](P, P to, P, P) {
         const std::string text = read_file(to / "certificates.jsonl").value();
         const std::size_t first = text.find('\n') + 1, second = text.find('\n', first) + 1;
         ASSERT_TRUE(write_file_atomically(
             to / "certificates.jsonl",
             text.substr(first, second - first) + text.substr(0, first) + text.substr(second)));
       },
       "certificates.jsonl",
       Audit::Finds,
       Resume::GoesOn},
      {"certificates.jsonl without its first line, killed",
       true,
       [](P, P to, P, P) {
         const std::string text = read_file(to / "certificates.jsonl").value();
         ASSERT_TRUE(
             write_file_atomically(to / "certificates.jsonl", text.substr(text.find('\n') + 1)));
       },
       "certificates.jsonl",
       Audit::Finds,
       Resume::GoesOn},
      {"certificates.jsonl of an earlier time, killed",
       true,
       [](P, P to, P, P) {
         const std::string text = read_file(to / "certificates.jsonl").value();
         ASSERT_TRUE(
             write_file_atomically(to / "certificates.jsonl", text.substr(0, text.find('\n') + 1)));
       },
       "certificates.jsonl",
       Audit::Finds,
       Resume::GoesOn},
      {"outputs.manifest without an end of the run, killed",
       true,
       [](P from, P to, P, P) {
         take(from, to, {"summary.json", "trace.json", "metrics.jsonl", "outputs.manifest"});
       },
       "certificates.jsonl",
       Audit::Finds,
       Resume::GoesOn},
      {"the manifest of the older checkpoint",
       true,
       [](P, P, P older, P newer) { fs::copy(older / "manifest", newer / "manifest", kOver); },
       "trainer.json",
       Audit::IsNotItsMatter,
       Resume::GoesOn},
      {"the trainer's file of the older checkpoint",
       true,
       [](P, P, P older, P newer) {
         fs::copy(older / "trainer.json", newer / "trainer.json", kOver);
       },
       "trainer.json",
       Audit::IsNotItsMatter,
       Resume::GoesOn},
      {"the scheduler's state of the older checkpoint",
       true,
       [](P, P, P older, P newer) {
         fs::copy(older / "orchestrator.msgpack", newer / "orchestrator.msgpack", kOver);
       },
       "orchestrator.msgpack",
       Audit::IsNotItsMatter,
       Resume::GoesOn},
      {"a checkpoint of another run",
       true,
       [](P from, P to, P, P newer) {
         fs::remove_all(newer);
         fs::copy(from / newer.lexically_relative(to), newer, kOver);
       },
       "manifest",
       Audit::IsNotItsMatter,
       Resume::GoesOn},
  };
  return all;
}

TEST(AFolderOfFilesThatContradictEachOther, IsNotWholeAndTheFileIsNamed) {
  for (const Mixed& m : mixed()) {
    SCOPED_TRACE(m.what);
    const auto killed = m.killed ? std::optional<std::uint64_t>(2) : std::nullopt;
    const StoredRun run({.steps = 4, .killed_after = killed});
    const StoredRun other({.steps = 4, .seed = 2});
    ASSERT_TRUE(write_file_atomically(other.root() / "config.yaml", "name: other\nseed: 4\n"));
    ASSERT_TRUE(other.dir().seal_inputs());
    ASSERT_TRUE(check_run(run.root(), Repair::No)->whole());
    m.mix(other.root(), run.root(), run.checkpoint(1), run.checkpoint(0));
    const auto report = check_run(run.root(), Repair::No);
    ASSERT_TRUE(report);
    EXPECT_FALSE(report->whole());
    std::string wrong;
    for (const CheckedFile& file : report->files) {
      if (file.state != FileState::Whole && file.state != FileState::Unchecked)
        wrong += file.name + " ";
    }
    EXPECT_NE(wrong.find(m.named), std::string::npos) << wrong;
    if (m.audit == Audit::Finds) {
      const auto audit = audit_run(run.root());
      EXPECT_TRUE(!audit || !audit->violations.empty());
    }
    const auto point = find_resume_point(run.dir(), run.config());
    EXPECT_EQ(point.has_value(), m.resume == Resume::GoesOn)
        << (point ? "" : point.error().context);
  }
}

}  // namespace
}  // namespace temper::orchestrator
