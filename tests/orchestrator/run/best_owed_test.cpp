// A version may be called the best before its checkpoint is saved, and the process may be killed in
// between: nobody evaluates it again, so a resume makes best/ of it. And why there is no best/.
#include "core/files.hpp"
#include "orchestrator/run/best_checkpoint.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr LogPosition kBehind{100, 7};

/// A log in which version 1 became best/, version 3 was called the best at record 12, and its
/// checkpoint was saved at record 13.
class ABestThatIsOwed : public ::testing::Test {
 protected:
  ABestThatIsOwed() {
    EXPECT_TRUE(dir().create());
    EXPECT_TRUE(write_file_atomically(dir().file("config.yaml"), "name: run\n"));
    config_.evaluation = {1, 4, 1, 0.5, true};
  }
  RunDir dir() const { return RunDir(folder_.path()); }
  fs::path checkpoint(std::uint64_t version) const {
    return dir().checkpoints().folder_of(PolicyVersion(version));
  }
  static std::uint64_t saved_at(std::uint64_t version) { return version + 10; }
  void save(std::uint64_t version) {
    const auto partial = dir().checkpoints().begin(PolicyVersion(version)).value();
    EXPECT_TRUE(write_file_atomically(partial / "weights", std::to_string(version)));
    EXPECT_TRUE(dir().checkpoints().complete(
        {saved_at(version), PolicyVersion(version), "", {}}, kBehind, 9));
  }
  static command::Evaluated evaluated(std::uint64_t version, bool best = true) {
    command::Evaluated e;
    e.version = PolicyVersion(version);
    e.best = best;
    return e;
  }
  void has_best(std::uint64_t version) {
    save(version);
    BestCheckpoint best(folder_.path());
    EXPECT_TRUE(best.found(evaluated(version)));
  }
  void feed(BestInLog& log,
            std::uint64_t sequence,
            Event event,
            std::vector<Command> commands = {}) {
    log.feed({sequence, Time(), std::move(event), std::move(commands)}, kBehind);
  }
  /// The log up to the kill. `first`: whether version 1 became best/ before.
  BestInLog log_until_the_kill(bool best = true, const std::string& error = {}, bool first = true) {
    BestInLog log(folder_.path());
    feed(log, 0, event::Started{config_});
    if (first)
      feed(log, 11, event::CheckpointSaved{PolicyVersion(1), {}}, {evaluated(1)});
    feed(log, 12, event::DeadlineReached{}, {evaluated(3, best)});
    feed(log, 13, event::CheckpointSaved{PolicyVersion(3), error});
    return log;
  }
  std::string kept() const { return read_file(folder_ / "best/weights").value_or("none"); }

  test::TemporaryFolder folder_;
  SchedulerConfig config_;
};

TEST_F(ABestThatIsOwed, BecomesBestOnResumeWhereThereWasNone) {
  save(3);
  const BestInLog log = log_until_the_kill(true, {}, false);
  ASSERT_TRUE(log.owed());
  EXPECT_EQ(log.verify().absence, BestAbsence::NotInPlace);
  EXPECT_EQ(restore_best(folder_.path(), log)->size(), 1U);
  EXPECT_EQ(kept(), "3");
  EXPECT_EQ(log.verify().state, BestState::Whole);
  EXPECT_TRUE(restore_best(folder_.path(), log)->empty()) << "it is done";
}

TEST_F(ABestThatIsOwed, TakesThePlaceOfTheOneBefore) {
  has_best(1);
  save(3);
  const BestInLog log = log_until_the_kill();
  EXPECT_EQ(restore_best(folder_.path(), log)->size(), 1U);
  EXPECT_EQ(kept(), "3");
  EXPECT_FALSE(fs::exists(folder_ / "best.damaged-1")) << "the one before was whole";
}

TEST_F(ABestThatIsOwed, IsMadeOfACandidateThatIsComplete) {
  has_best(3);
  fs::remove_all(checkpoint(3));
  fs::rename(folder_ / "best", folder_ / "other");
  has_best(1);
  fs::rename(folder_ / "other", folder_ / "best.candidate");
  EXPECT_TRUE(restore_best(folder_.path(), log_until_the_kill()));
  EXPECT_EQ(kept(), "3") << "the promotion was cut off";
}

TEST_F(ABestThatIsOwed, IsOwedStillAfterAResumeFromItsCheckpoint) {
  has_best(1);
  save(3);
  BestInLog log = log_until_the_kill();
  feed(log, 14, event::Resumed{13, 0});
  feed(log, 15, event::DeadlineReached{});
  EXPECT_TRUE(restore_best(folder_.path(), log));
  EXPECT_EQ(kept(), "3") << "an earlier program did not put it in place";
}

TEST_F(ABestThatIsOwed, IsVoidWhereTheRunWentBackBehindIt) {
  has_best(1);
  save(3);
  BestInLog log = log_until_the_kill();
  feed(log, 14, event::Resumed{11, 0});
  EXPECT_FALSE(log.owed());
  EXPECT_TRUE(restore_best(folder_.path(), log)->empty());
  EXPECT_EQ(kept(), "1") << "version 3 is trained and evaluated again";
}

TEST_F(ABestThatIsOwed, IsNotOwedOnceTheProcessWentOn) {
  has_best(1);
  save(3);
  BestInLog log = log_until_the_kill();
  feed(log, 14, event::DeadlineReached{});
  EXPECT_FALSE(log.owed());
}

TEST_F(ABestThatIsOwed, GivesWayToABetterOne) {
  save(3);
  has_best(5);
  BestInLog log = log_until_the_kill();
  feed(log, 14, event::Resumed{13, 0});
  feed(log, 15, event::CheckpointSaved{PolicyVersion(5), {}}, {evaluated(5)});
  EXPECT_FALSE(log.owed());
  EXPECT_TRUE(restore_best(folder_.path(), log)->empty());
  EXPECT_EQ(kept(), "5");
}

TEST_F(ABestThatIsOwed, LeavesTheOneBeforeWhereItsCheckpointIsLostOrDamaged) {
  for (const bool lost : {true, false}) {
    has_best(1);
    save(3);
    if (lost) {
      fs::remove_all(checkpoint(3));
    } else {
      EXPECT_TRUE(write_file_atomically(checkpoint(3) / "weights", "?"));
    }
    EXPECT_TRUE(restore_best(folder_.path(), log_until_the_kill())->empty());
    EXPECT_EQ(kept(), "1");
  }
}

TEST_F(ABestThatIsOwed, IsNoneThatWasNotCalledTheBestOrNotSaved) {
  has_best(1);
  save(3);
  EXPECT_FALSE(log_until_the_kill(false).owed());
  EXPECT_FALSE(log_until_the_kill(true, "disk full").owed());
  config_.evaluation.checkpoint = false;
  EXPECT_FALSE(log_until_the_kill().owed()) << "the run keeps none";
}

TEST_F(ABestThatIsOwed, IsNotThatOfAHistoryThatIsVoid) {
  save(3);
  BestInLog log = log_until_the_kill();
  feed(log, 14, event::Resumed{11, 0});
  feed(log, 23, event::CheckpointSaved{PolicyVersion(3), {}});
  EXPECT_FALSE(log.owed()) << "the new version 3 was not evaluated";
}

// --- Why there is none

class NoBest : public ABestThatIsOwed {
 protected:
  /// After these records, and with one set aside, or not.
  std::optional<BestAbsence> why(
      const std::vector<std::pair<Event, std::vector<Command>>>& records) {
    BestInLog log(folder_.path());
    std::uint64_t sequence = 0;
    for (const auto& [event, commands] : records)
      feed(log, sequence++, event, commands);
    const BestVerdict verdict = log.verify();
    EXPECT_EQ(verdict.state, BestState::None);
    EXPECT_EQ(best_error(folder_.path(), verdict).code, ErrorCode::NotFound);
    return verdict.absence;
  }
  std::pair<Event, std::vector<Command>> started() const { return {event::Started{config_}, {}}; }
};

TEST_F(NoBest, IsThereBecauseTheRunKeepsNone) {
  config_.evaluation.checkpoint = false;
  EXPECT_EQ(why({started(), {event::DeadlineReached{}, {evaluated(3)}}}), BestAbsence::NotKept);
}
TEST_F(NoBest, IsThereBecauseTheRunIsSimulated) {
  EXPECT_TRUE(write_file_atomically(dir().file("config.yaml"), "hardware: simulated\n"));
  EXPECT_EQ(why({started(), {event::DeadlineReached{}, {evaluated(3)}}}), BestAbsence::NotKept);
}
TEST_F(NoBest, IsThereBecauseNothingIsEvaluated) {
  config_.evaluation.every = 0;
  EXPECT_EQ(why({started(), {event::CheckpointSaved{PolicyVersion(3), {}}, {}}}),
            BestAbsence::NotEvaluated);
}
TEST_F(NoBest, IsThereBecauseNoneIsBetterThanTheBase) {
  EXPECT_EQ(why({started()}), BestAbsence::NoneBetter) << "none yet";
  EXPECT_EQ(why({started(), {event::DeadlineReached{}, {evaluated(0)}}}), BestAbsence::NoneBetter);
  EXPECT_EQ(why({started(), {event::DeadlineReached{}, {evaluated(3, false)}}}),
            BestAbsence::NoneBetter);
}
TEST_F(NoBest, IsThereBecauseItIsNotInPlaceYet) {
  EXPECT_EQ(why({started(), {event::DeadlineReached{}, {evaluated(3)}}}), BestAbsence::NotInPlace)
      << "its checkpoint is awaited";
  EXPECT_EQ(why({started(),
                 {event::CheckpointSaved{PolicyVersion(3), {}}, {}},
                 {event::DeadlineReached{}, {evaluated(3)}}}),
            BestAbsence::NotInPlace)
      << "killed before the promotion";
}
TEST_F(NoBest, IsThereBecauseARepairSetItAside) {
  for (const char* aside : {"best.damaged-1", "best.void-1"}) {
    fs::create_directory(folder_ / aside);
    EXPECT_EQ(why({started(),
                   {event::CheckpointSaved{PolicyVersion(3), {}}, {evaluated(3)}},
                   {event::DeadlineReached{}, {}}}),
              BestAbsence::SetAside)
        << aside;
    fs::remove_all(folder_ / aside);
  }
}
TEST_F(NoBest, IsAnErrorOfAnotherKindWhereItMustBeThere) {
  BestInLog log(folder_.path());
  feed(log, 0, event::Started{config_});
  feed(log, 1, event::CheckpointSaved{PolicyVersion(3), {}}, {evaluated(3)});
  feed(log, 2, event::DeadlineReached{});
  const BestVerdict verdict = log.verify();
  EXPECT_EQ(verdict.state, BestState::Missing);
  EXPECT_EQ(best_error(folder_.path(), verdict).code, ErrorCode::Corrupt);
}

}  // namespace
}  // namespace temper::orchestrator
