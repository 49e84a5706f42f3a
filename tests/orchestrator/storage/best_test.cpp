// best/ is proved, verified and repaired as a checkpoint is. Its files are damaged in random ways,
// and the process that makes it is killed before each of its system calls: each time `fsck`,
// `audit`, `export`, `eval` and `run --from` come to the same verdict, and none of them calls
// damage whole. TEMPER_BEST_DAMAGES sets how many random cases there are (docs/run_folder.md has
// 10,000).
#include "actors/model_folder/model_folder.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "core/files.hpp"
#include "core/json.hpp"
#include "core/random.hpp"
#include "orchestrator/fsck/fsck.hpp"
#include "orchestrator/model_export/model_export.hpp"
#include "orchestrator/record/audit_run.hpp"
#include "orchestrator/run/best_checkpoint.hpp"
#include "orchestrator/run/resume.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/stored_run.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <iostream>
#include <map>

extern "C" {  // killed_at_call.cpp
void temper_kill_below(const char* folder, long at, int exchanges);
void temper_sync_nothing();
}

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using testing::StoredRun;
using testing::StoredRunOptions;

actors::ConfigJson model_config() {
  actors::ConfigJson config;
  config.model.architecture = actors::Architecture::Qwen3;
  config.model.hidden = 8;
  config.model.layers = 1;
  config.model.heads = 1;
  config.model.kv_heads = 1;
  config.model.head_dim = 8;
  config.model.ffn = 8;
  config.model.vocabulary = 14;
  config.end_tokens = {1};
  return config;
}

/// Weights that are all `value`, as a trainer saves them.
void save_weights(const fs::path& folder, PolicyVersion version) {
  const auto layout = actors::Layout::make(model_config().model, 14).value();
  const std::vector<float> flat(static_cast<std::size_t>(layout.size()),
                                static_cast<float>(version.value()));
  EXPECT_TRUE(
      write_file_atomically(folder / "model.safetensors",
                            actors::write_safetensors(actors::tensors_to_write(layout, flat), {})));
}

/// A run whose log calls two versions after the base the best, or those before it was killed.
StoredRun evaluated_run(StoredRunOptions options = {}, std::uint64_t seed = 1) {
  options.steps = 5;
  options.keeps_best = true;
  options.keep = 9;
  options.save = save_weights;
  for (options.seed = seed;; ++options.seed) {
    StoredRun run(options);
    if (std::ssize(run.bests()) < options.killed_at_best.value_or(2))
      continue;
    actors::ModelFolderToWrite base;
    base.config_json = actors::write_config_json(model_config());
    base.files["tokenizer.json"] = "{}";
    const auto layout = actors::Layout::make(model_config().model, 14).value();
    const std::vector<float> flat(static_cast<std::size_t>(layout.size()));
    EXPECT_TRUE(make_folder(run.dir().base()));
    EXPECT_TRUE(
        actors::write_model_folder(run.dir().base(), base, actors::tensors_to_write(layout, flat)));
    EXPECT_TRUE(run.dir().seal_inputs());
    return run;
  }
}

/// What each command makes of best/: None, Whole, or wrong (the code of the error; of fsck and
/// audit Corrupt where they find something).
struct Verdicts {
  std::string fsck, audit, from, exported, eval;
  bool agree() const { return fsck == audit && fsck == exported && fsck == from && fsck == eval; }
  std::string text() const {
    return fmt::format(
        "fsck {}, audit {}, export {}, --from {}, eval {}", fsck, audit, exported, from, eval);
  }
};

std::string of_error(const Error& error) {
  return error.code == ErrorCode::Corrupt ? "wrong" : fmt::format("error: {}", error.context);
}

/// Of a run whose other files are whole. `there`: it has a best/, or had one.
Verdicts verdicts_on(const fs::path& run, const fs::path& scratch) {
  Verdicts v;
  const auto checked = check_run(run, Repair::No);
  v.fsck = !checked ? of_error(checked.error()) : checked->whole() ? "right" : "wrong";
  const auto audited = audit_run(run);
  v.audit = !audited ? of_error(audited.error()) : audited->violations.empty() ? "right" : "wrong";
  // Where there is none, to have none is right; export says so.
  const auto right = [](const Error& error) {
    return error.code == ErrorCode::NotFound ? "right" : of_error(error);
  };
  ModelExport what = parse_export_source(run.string() + "@best").value();
  const auto source = find_export_source(what);
  v.from = source ? "right" : right(source.error());
  std::error_code ignored;
  fs::remove_all(scratch, ignored);
  what.to = scratch;
  const auto exported = export_model(what);
  v.exported = exported ? "right" : right(exported.error());
  const auto best = verify_best(run);  // as `temper eval RUN` asks
  v.eval = !best ? of_error(best.error()) : best->is_wrong() ? "wrong" : "right";
  return v;
}

void copy_run(const fs::path& from, const fs::path& to) {
  fs::remove_all(to);
  fs::copy(from, to, fs::copy_options::recursive);
}

/// All files below a folder, by name.
std::map<std::string, std::string> content_of(const fs::path& folder) {
  std::map<std::string, std::string> files;
  std::error_code error;
  for (const auto& entry : fs::recursive_directory_iterator(folder, error)) {
    if (entry.is_regular_file())
      files[entry.path().lexically_relative(folder).string()] = read_file(entry.path()).value();
  }
  return files;
}

class BestFiles : public ::testing::Test {
 protected:
  BestFiles() { temper_sync_nothing(); }
  fs::path run() const { return folder_ / "run"; }
  fs::path best() const { return run() / kBestFolder; }
  void begin(const StoredRun& stored) { copy_run(stored.root(), run()); }
  Verdicts verdicts() const { return verdicts_on(run(), folder_ / "exported"); }

  test::TemporaryFolder folder_;
};

TEST_F(BestFiles, AreTheirOwnAndNotLinksToThoseOfACheckpoint) {
  begin(evaluated_run());
  ASSERT_EQ(verdicts().text(), "fsck right, audit right, export right, --from right, eval right");
  const StoredRun stored = evaluated_run();
  for (const auto& entry : fs::recursive_directory_iterator(stored.root() / kBestFolder))
    EXPECT_EQ(fs::hard_link_count(entry.path()), 1U) << entry.path();
}

TEST_F(BestFiles, OfAnEarlierProgramAreProvedByTheLogWhereTheManifestDoesNotNameThem) {
  const StoredRun stored = evaluated_run();
  begin(stored);
  const auto name = fmt::format("checkpoints/step-{:06}/manifest", stored.bests().back().version);
  ASSERT_TRUE(write_file_atomically(best() / "manifest", read_file(run() / name).value()));
  EXPECT_EQ(verdicts().fsck, "right");
  command::Evaluated other = stored.bests().back();
  other.pass_1 += 0.25;
  ASSERT_TRUE(write_file_atomically(best() / kBestFile, to_json(other)));
  EXPECT_EQ(verdicts().text(), "fsck wrong, audit wrong, export wrong, --from wrong, eval wrong");
}

TEST_F(BestFiles, OfAnotherRunAreVoidAndSetAside) {
  const StoredRun stored = evaluated_run(), other = evaluated_run({}, 1000);
  begin(stored);
  copy_run(other.root() / kBestFolder, best());
  EXPECT_EQ(verify_best(run())->state, BestState::Void);
  EXPECT_EQ(verdicts().text(), "fsck wrong, audit wrong, export wrong, --from wrong, eval wrong");
  EXPECT_TRUE(check_run(run(), Repair::Yes)->whole());
  EXPECT_TRUE(fs::exists(run() / "best.void-1/model.safetensors"));
  EXPECT_TRUE(content_of(best()) == content_of(stored.root() / kBestFolder));
}

TEST_F(BestFiles, ThatAreDamagedAreMadeAnewFromTheCheckpointOfTheSameVersion) {
  const StoredRun stored = evaluated_run();
  for (const std::string name :
       {"model.safetensors", "trainer.json", "manifest", "evaluation.json"}) {
    begin(stored);
    std::string bytes = read_file(best() / name).value();
    bytes[bytes.size() / 2] ^= 0x40;
    bytes[bytes.size() / 3] ^= 0x08;  // two bits: no flip is turned back
    ASSERT_TRUE(write_file_atomically(best() / name, bytes));
    const auto repaired = check_run(run(), Repair::Yes);
    ASSERT_TRUE(repaired);
    EXPECT_TRUE(repaired->whole()) << name;
    EXPECT_TRUE(content_of(best()) == content_of(stored.root() / kBestFolder)) << name;
    EXPECT_EQ(read_file(run() / "best.damaged-1" / name).value(), bytes);
  }
}

TEST_F(BestFiles, ThatAreDamagedGiveWayToTheOneBeforeWhereNoCheckpointIsLeft) {
  const StoredRun stored = evaluated_run();
  const StoredRun before = evaluated_run({.killed_at_best = 2}, 1);
  ASSERT_EQ(before.bests().front().version, stored.bests().front().version);
  begin(stored);
  fs::remove_all(run() / "checkpoints");
  copy_run(before.root() / kBestFolder, run() / kBestReplaced);
  ASSERT_TRUE(write_file_atomically(best() / "model.safetensors", "nothing"));
  ASSERT_TRUE(check_run(run(), Repair::Yes));
  EXPECT_TRUE(content_of(best()) == content_of(before.root() / kBestFolder));
  EXPECT_EQ(verify_best(run())->mark->version, before.bests().front().version);
}

TEST_F(BestFiles, AreMissedWhereTheLogSaysThatTheyWereKept) {
  begin(evaluated_run());
  fs::remove_all(best());
  EXPECT_EQ(verdicts().text(), "fsck wrong, audit wrong, export wrong, --from wrong, eval wrong");
  EXPECT_TRUE(check_run(run(), Repair::Yes)->whole());
  EXPECT_EQ(verdicts().text(), "fsck right, audit right, export right, --from right, eval right");
  EXPECT_EQ(verify_best(run())->state, BestState::Whole);
}

/// One random change of best/.
class RandomDamage {
 public:
  RandomDamage(fs::path run, const fs::path& other, Random& random)
      : run_(std::move(run)), best_(run_ / kBestFolder), other_(other), random_(random) {}

  std::string apply() {
    std::vector<fs::path> files;
    std::error_code ignored;
    for (const auto& entry : fs::recursive_directory_iterator(best_, ignored)) {
      if (entry.is_regular_file())
        files.push_back(entry.path());
    }
    std::ranges::sort(files);
    if (files.empty())
      return folder();
    const fs::path& file = files[random_.below(files.size())];
    const fs::path& second = files[random_.below(files.size())];
    std::string bytes = read_file(file).value();
    const auto at = [&] { return bytes.empty() ? 0 : random_.below(bytes.size()); };
    const std::string name = file.filename().string();
    switch (random_.below(12)) {
      case 0:
        if (!bytes.empty())
          bytes[at()] ^= static_cast<char>(1 << random_.below(8));
        return put(file, bytes, "flip a bit of " + name);
      case 1:
        return put(file, bytes.substr(0, at()), "cut " + name);
      case 2:
        fs::remove(file);
        return "remove " + name;
      case 3:
        fs::rename(file, best_ / "renamed");
        return "rename " + name;
      case 4:
        return put(file, bytes + "x", "append to " + name);
      case 5:
        fs::rename(file, best_ / "swapped");
        if (second != file)
          fs::rename(second, file);
        fs::rename(best_ / "swapped", second);
        return fmt::format("exchange {} with {}", name, second.filename().string());
      case 6:
        return take(other_ / kBestFolder / name, file);
      case 7:
        return take(checkpoint() / name, file);
      case 8:
        return put(file, "", "empty " + name);
      case 9:
        fs::remove(file);
        fs::create_directory(file);
        return name + " is a folder";
      case 10:
        return put(best_ / "notes.txt", "mine", "a file besides");
      default:
        return folder();
    }
  }

 private:
  std::string put(const fs::path& file, const std::string& bytes, std::string what) const {
    EXPECT_TRUE(write_file_atomically(file, bytes));
    return what;
  }
  std::string take(const fs::path& from, const fs::path& to) const {
    std::error_code failed;
    fs::copy_file(from, to, fs::copy_options::overwrite_existing, failed);
    return fmt::format("{} in the place of {}", from.string(), to.filename().string());
  }
  fs::path checkpoint() {
    std::vector<fs::path> all;
    for (const auto& entry : fs::directory_iterator(run_ / "checkpoints"))
      all.push_back(entry.path());
    std::ranges::sort(all);
    return all[random_.below(all.size())];
  }
  /// Of the folder as a whole.
  std::string folder() {
    switch (random_.below(6)) {
      case 0:
        fs::remove_all(best_);
        return "remove best/";
      case 1:
        fs::remove_all(best_);
        fs::create_directory(best_);
        return "empty best/";
      case 2:
        fs::remove_all(best_);
        return put(best_, "?", "best is a file");
      case 3:
        copy_run(checkpoint(), best_);
        return "a checkpoint as best/";
      case 4:
        copy_run(other_ / kBestFolder, best_);
        return "best/ of another run";
      default:
        if (fs::exists(best_)) {
          fs::remove_all(run_ / kBestReplaced);
          fs::rename(best_, run_ / kBestReplaced);
        }
        return "best.replaced only";
    }
  }

  const fs::path run_, best_, other_;
  Random& random_;
};

std::uint64_t damages() {
  const char* text = std::getenv("TEMPER_BEST_DAMAGES");
  return text == nullptr ? 250 : std::strtoull(text, nullptr, 10);
}

TEST_F(BestFiles, ThatAreDamagedAtRandomAreFoundByAllCommandsAndRepaired) {
  const StoredRun stored = evaluated_run(), other = evaluated_run({}, 1000);
  const auto whole = content_of(stored.root() / kBestFolder);
  const std::string older_manifest =
      read_file(stored.root() /
                fmt::format("checkpoints/step-{:06}/manifest", stored.bests().back().version))
          .value();
  const test::Seed seed;
  Random random(seed.value(), seed.stream());
  std::uint64_t found = 0;
  for (std::uint64_t n = 0; n < damages(); ++n) {
    begin(stored);
    RandomDamage damage(run(), other.root(), random);
    std::string what;
    for (auto times = 1 + random.below(2); times > 0; --times)
      what += damage.apply() + "; ";
    // A file besides is nobody's; the manifest may be that of an earlier program.
    auto as_before = whole;
    as_before["manifest"] = older_manifest;
    const auto is_right = [&] {
      auto now = content_of(best());
      std::erase_if(now, [&](const auto& file) { return !whole.contains(file.first); });
      return fs::is_directory(best()) && (now == whole || now == as_before);
    };
    const bool right = is_right();
    const Verdicts v = verdicts();
    ASSERT_TRUE(v.agree()) << "case " << n << ": " << what << v.text();
    ASSERT_EQ(v.fsck, right ? "right" : "wrong") << "case " << n << ": " << what << v.text();
    if (right)
      continue;
    ++found;
    const auto repaired = check_run(run(), Repair::Yes);
    ASSERT_TRUE(repaired) << what << repaired.error().context;
    ASSERT_TRUE(repaired->whole()) << "case " << n << ": " << what;
    const Verdicts after = verdicts();
    ASSERT_TRUE(after.agree() && after.fsck == "right") << what << after.text();
    // One flipped bit is turned back where it is, and files besides stay.
    ASSERT_TRUE(is_right()) << "case " << n << ": " << what;
  }
  std::cout << fmt::format("{} cases, {} damaged\n", damages(), found);
  EXPECT_GT(found, damages() / 2);
}

struct Promotion {
  const char* name;
  int bests;      ///< Which of the versions that were called the best is promoted.
  int exchanges;  ///< Whether the file system can exchange two names.
};

class APromotionThatIsKilled : public BestFiles, public ::testing::WithParamInterface<Promotion> {};

TEST_P(APromotionThatIsKilled, BeforeAnySystemCallLeavesABestThatIsWholeOrThatFsckMisses) {
  const StoredRun stored = evaluated_run({.killed_at_best = GetParam().bests});
  const command::Evaluated& result = stored.bests().back();
  const bool had = GetParam().bests > 1;
  int killed = 0, missed = 0;
  for (long at = 1;; ++at) {
    begin(stored);
    fs::remove_all(run() / kBestCandidate);  // the promotion begins with the copy
    const pid_t child = ::fork();
    if (child == 0) {
      BestCheckpoint best(run());
      const fs::path root = run();
      const fs::path checkpoint = RunDir(root).checkpoints().folder_of(result.version);
      temper_kill_below(root.c_str(), at, GetParam().exchanges);
      const bool done = best.saved(result.version, checkpoint, true) && best.found(result);
      ::_exit(done ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "call " << at;
    const Verdicts v = verdicts();
    ASSERT_TRUE(v.agree()) << "call " << at << ": " << v.text();
    const BestVerdict verdict = verify_best(run()).value();
    const auto candidate = read_manifest(run() / kBestCandidate / kFolderManifest);
    const bool promoted = had || (candidate && candidate->find(kBestFile) != nullptr);
    if (v.fsck == "right" && had) {
      ASSERT_EQ(verdict.state, BestState::Whole) << "call " << at;
    }
    if (v.fsck == "wrong") {
      ASSERT_EQ(verdict.state, BestState::Missing) << "call " << at << ": " << verdict.what;
      ++missed;
    }
    // A resume and a repair both set it right.
    copy_run(run(), folder_ / "resumed");
    const RunDir resumed(folder_ / "resumed");
    const auto point = find_resume_point(resumed, stored.config());
    ASSERT_TRUE(point) << point.error().context;
    ASSERT_TRUE(prepare_resume(resumed, *point));
    ASSERT_TRUE(check_run(run(), Repair::Yes)->whole()) << "call " << at;
    for (const fs::path& root : {run(), resumed.root()}) {
      const BestVerdict after = verify_best(root).value();
      ASSERT_FALSE(after.is_wrong()) << "call " << at << ": " << after.what;
      ASSERT_TRUE(after.state == BestState::Whole || !promoted) << "call " << at;
    }
    // The resumed process evaluates that version again.
    ASSERT_TRUE(BestCheckpoint(resumed.root()).found(result)) << "call " << at;
    const BestVerdict again = verify_best(resumed.root()).value();
    ASSERT_EQ(again.state, BestState::Whole) << "call " << at << ": " << again.what;
    ASSERT_EQ(again.mark->version, result.version) << "call " << at;
    if (WIFEXITED(status)) {
      EXPECT_EQ(verify_best(run())->mark->version, result.version);
      break;
    }
    ++killed;
  }
  EXPECT_GT(killed, 20);
  if (had && GetParam().exchanges == 0) {
    EXPECT_GT(missed, 0) << "best/ has another name for a moment";
  } else {
    EXPECT_EQ(missed, 0) << "there was none, or the file system exchanges the names at once";
  }
  std::cout << fmt::format("{} kills, best/ missed after {}\n", killed, missed);
}

INSTANTIATE_TEST_SUITE_P(Promotions,
                         APromotionThatIsKilled,
                         ::testing::Values(Promotion{"TheFirst", 1, 1},
                                           Promotion{"TheFirstWithoutExchange", 1, 0},
                                           Promotion{"TheSecond", 2, 1},
                                           Promotion{"TheSecondWithoutExchange", 2, 0}),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace temper::orchestrator
