// best/ is proved, verified and repaired as a checkpoint is. Its files are damaged in random ways:
// each time `fsck`, `audit`, `export`, `eval` and `run --from` come to the same verdict, and none
// of them calls damage whole. TEMPER_BEST_DAMAGES sets how many random cases there are
// (docs/reference/run-folder.md has 10,000).
#include "core/random.hpp"
#include "tests/orchestrator/storage/best_run.hpp"
#include "tests/support/seed.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <iostream>

namespace temper::orchestrator {
namespace {

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

}  // namespace
}  // namespace temper::orchestrator
