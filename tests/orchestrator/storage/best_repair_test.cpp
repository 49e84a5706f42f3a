// Of what a best/ that is damaged or missing is made anew, and what a repair that is killed leaves.
#include "tests/orchestrator/storage/best_run.hpp"

#include <sys/wait.h>

#include <iostream>

namespace temper::orchestrator {
namespace {

/// What is beside best/: the best version, the one before it, or nothing.
enum class Beside { Nothing, Older, Newest, NewestDamaged };
enum class Kept { All, None, Older, Neither };
enum class Version { Older, Newest };

struct Left {
  const char* name;
  Kept checkpoints = Kept::None;
  Beside candidate = Beside::Nothing, replaced = Beside::Nothing, repaired = Beside::Nothing;
  std::optional<Version> becomes = {};
};

class ABestThatIsMadeAnew : public BestFiles, public ::testing::WithParamInterface<Left> {
 protected:
  void put(Beside what, std::string_view name) {
    if (what == Beside::Nothing)
      return;
    const StoredRun& from = what == Beside::Older ? older_ : newest_;
    copy_run(from.root() / kBestFolder, run() / name);
    if (what == Beside::NewestDamaged) {
      EXPECT_TRUE(write_file_atomically(run() / name / "model.safetensors", "nothing"));
    }
  }
  void leave(const Left& left) {
    begin(newest_);
    const auto& bests = newest_.bests();
    for (const FoundCheckpoint& found : RunDir(run()).checkpoints().find()) {
      const bool called =
          std::ranges::find(bests, found.mark->version, &command::Evaluated::version) !=
          bests.end();
      const bool older = found.mark->version == bests.front().version;
      if (left.checkpoints == Kept::None || (left.checkpoints == Kept::Older && !older) ||
          (left.checkpoints == Kept::Neither && called))
        fs::remove_all(found.folder);
    }
    put(left.candidate, kBestCandidate);
    put(left.replaced, kBestReplaced);
    put(left.repaired, kBestRepaired);
  }

  const StoredRun newest_ = evaluated_run();
  const StoredRun older_ = evaluated_run({.killed_at_best = 2});
};

TEST_P(ABestThatIsMadeAnew, IsOfTheVersionThatWasCalledTheBestLastOfAllThatAreLeft) {
  ASSERT_EQ(older_.bests().front().version, newest_.bests().front().version);
  for (const bool missing : {false, true}) {
    leave(GetParam());
    if (missing) {
      fs::remove_all(best());
    } else {
      ASSERT_TRUE(write_file_atomically(best() / "model.safetensors", "nothing"));
    }
    ASSERT_TRUE(check_run(run(), Repair::Yes));
    const BestVerdict after = verify_best(run()).value();
    if (!GetParam().becomes) {
      EXPECT_EQ(after.state, missing ? BestState::Missing : BestState::None) << after.what;
      if (!missing) {
        EXPECT_EQ(after.absence, BestAbsence::SetAside);
      }
      continue;
    }
    ASSERT_EQ(after.state, BestState::Whole) << after.what;
    const auto& bests = newest_.bests();
    const bool older = GetParam().becomes == Version::Older;
    EXPECT_EQ(after.mark->version, (older ? bests.front() : bests.back()).version);
    const StoredRun& as = older ? older_ : newest_;
    EXPECT_TRUE(content_of(best()) == content_of(as.root() / kBestFolder));
    EXPECT_EQ(fs::exists(run() / "best.damaged-1"),
              !missing || GetParam().repaired == Beside::NewestDamaged);
    EXPECT_FALSE(fs::exists(run() / kBestRepaired));
  }
}

using B = Beside;
INSTANTIATE_TEST_SUITE_P(
    Left,
    ABestThatIsMadeAnew,
    ::testing::Values(
        Left{"Checkpoints", Kept::All, B::Nothing, B::Nothing, B::Nothing, Version::Newest},
        Left{"CheckpointOfTheOlder",
             Kept::Older,
             B::Nothing,
             B::Nothing,
             B::Nothing,
             Version::Older},
        Left{"CheckpointsOfNeither", Kept::Neither, B::Nothing, B::Nothing, B::Nothing, {}},
        Left{"Nothing", Kept::None, B::Nothing, B::Nothing, B::Nothing, {}},
        Left{"OlderCandidateAndCheckpoints",
             Kept::All,
             B::Older,
             B::Nothing,
             B::Nothing,
             Version::Newest},
        Left{"OlderCandidate", Kept::None, B::Older, B::Nothing, B::Nothing, Version::Older},
        Left{"Candidate", Kept::None, B::Newest, B::Nothing, B::Nothing, Version::Newest},
        Left{"CandidateAndCheckpoints",
             Kept::All,
             B::Newest,
             B::Nothing,
             B::Nothing,
             Version::Newest},
        Left{"DamagedCandidateAndCheckpoints",
             Kept::All,
             B::NewestDamaged,
             B::Nothing,
             B::Nothing,
             Version::Newest},
        Left{"DamagedCandidateAndOlder",
             Kept::None,
             B::NewestDamaged,
             B::Older,
             B::Nothing,
             Version::Older},
        Left{"OlderReplacedAndCheckpoints",
             Kept::All,
             B::Nothing,
             B::Older,
             B::Nothing,
             Version::Newest},
        Left{"OlderReplaced", Kept::None, B::Nothing, B::Older, B::Nothing, Version::Older},
        Left{"CandidateAndOlderReplaced",
             Kept::None,
             B::Newest,
             B::Older,
             B::Nothing,
             Version::Newest},
        Left{"OlderCandidateAndReplaced",
             Kept::None,
             B::Older,
             B::Newest,
             B::Nothing,
             Version::Newest},
        Left{"RepairedAndOlderCandidate",
             Kept::None,
             B::Older,
             B::Nothing,
             B::Newest,
             Version::Newest},
        Left{"DamagedRepairedAndCheckpoints",
             Kept::All,
             B::Nothing,
             B::Nothing,
             B::NewestDamaged,
             Version::Newest}),
    [](const auto& p) { return p.param.name; });

struct Repairing {
  const char* name;
  bool from_checkpoint;  ///< Else from best.replaced.
  int exchanges;         ///< Whether the file system can exchange two names.
};

class ARepairThatIsKilled : public BestFiles, public ::testing::WithParamInterface<Repairing> {
 protected:
  /// Where the damaged weights are.
  std::vector<std::string> kept() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(run())) {
      const auto weights = read_file(entry.path() / "model.safetensors");
      if (weights && *weights == kDamaged)
        names.push_back(entry.path().filename().string());
    }
    return names;
  }
  static constexpr std::string_view kDamaged = "damaged";
};

TEST_P(ARepairThatIsKilled, KeepsWhatIsDamagedInItsPlaceUntilTheNewBestIsComplete) {
  const StoredRun stored = evaluated_run();
  const auto whole = content_of(stored.root() / kBestFolder);
  int killed = 0, missing = 0;
  for (long at = 1;; ++at) {
    begin(stored);
    if (!GetParam().from_checkpoint) {
      fs::remove_all(run() / "checkpoints");
      fs::create_directory(run() / "checkpoints");
      copy_run(best(), run() / kBestReplaced);
    }
    ASSERT_TRUE(write_file_atomically(best() / "model.safetensors", kDamaged));
    const pid_t child = ::fork();
    if (child == 0) {
      const fs::path root = run();
      temper_kill_below(root.c_str(), at, GetParam().exchanges);
      ::_exit(check_run(root, Repair::Yes) ? 0 : 1);
    }
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_TRUE(WIFSIGNALED(status) || WEXITSTATUS(status) == 0) << "call " << at;
    ASSERT_EQ(kept().size(), 1U) << "call " << at;
    const BestVerdict verdict = verify_best(run()).value();
    ASSERT_NE(verdict.state, BestState::None) << "call " << at;
    missing += verdict.state == BestState::Missing ? 1 : 0;
    if (verdict.state == BestState::Damaged) {
      ASSERT_EQ(kept().front(), kBestFolder) << "call " << at;
    }
    if (GetParam().from_checkpoint) {
      ASSERT_TRUE(verdicts().agree()) << "call " << at << ": " << verdicts().text();
    }
    ASSERT_TRUE(check_run(run(), Repair::Yes)) << "call " << at;
    ASSERT_EQ(verify_best(run())->state, BestState::Whole) << "call " << at;
    ASSERT_TRUE(content_of(best()) == whole) << "call " << at;
    ASSERT_EQ(kept(), std::vector<std::string>{"best.damaged-1"}) << "call " << at;
    ASSERT_FALSE(fs::exists(run() / kBestRepaired)) << "call " << at;
    if (WIFEXITED(status))
      break;
    ++killed;
  }
  EXPECT_GT(killed, 3);
  EXPECT_EQ(missing > 0, GetParam().exchanges == 0) << "only without exchange, for a moment";
  std::cout << fmt::format("{} kills, best/ missing after {}\n", killed, missing);
}

INSTANTIATE_TEST_SUITE_P(Repairs,
                         ARepairThatIsKilled,
                         ::testing::Values(Repairing{"FromACheckpoint", true, 1},
                                           Repairing{"FromACheckpointWithoutExchange", true, 0},
                                           Repairing{"FromTheOneBefore", false, 1},
                                           Repairing{"FromTheOneBeforeWithoutExchange", false, 0}),
                         [](const auto& p) { return p.param.name; });

}  // namespace
}  // namespace temper::orchestrator
