// The process that makes best/ is killed before each of its system calls: what is left is whole, or
// fsck misses it.
#include "tests/orchestrator/storage/best_run.hpp"

#include <sys/wait.h>

#include <iostream>

namespace temper::orchestrator {
namespace {

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
