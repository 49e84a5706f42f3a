// RunCore under a driver that only notes what it is asked for. Events are those of a stored run.
#include "orchestrator/run/core/run_core.hpp"

#include "core/clock.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "tests/support/stored_run.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using testing::StoredRun;

bool is_for_driver(const Command& command) {
  return std::visit([]<class C>(const C&) { return !ExecutedByCore<C>; }, command);
}

class NotingDriver final : public RunCore::Driver {
 public:
  Time now() const override { return clock; }
  void execute(const Command& command) override {
    ++executed;
    if (const auto* save = std::get_if<command::SaveCheckpoint>(&command)) {
      EXPECT_TRUE(core->begin_checkpoint(save->version));
    }
    if (on_command)
      on_command(command);
  }
  void end_actors() override { ++ends; }
  std::vector<ResponseId> restore(Checkpoint checkpoint) override {
    restored.push_back(std::move(checkpoint));
    return {};
  }
  void on_finish() override { ++finishes; }

  RunCore* core = nullptr;
  Time clock{};
  std::uint64_t executed = 0;
  int ends = 0, finishes = 0;
  std::vector<Checkpoint> restored;
  std::function<void(const Command&)> on_command;
};

class RunCoreTest : public ::testing::Test {
 protected:
  RunCoreTest() {
    fs::create_directory(folder_.path() / "checkpoints");
    const auto read = read_event_log(stored_.log(), [&](const Record& record) {
      records_.push_back(record);
      return Status();
    });
    EXPECT_TRUE(read);
    stored_hash_ = read->hash;
  }

  fs::path log() const { return folder_.path() / "events.log"; }
  Checkpoints checkpoints() const { return Checkpoints(folder_.path() / "checkpoints"); }

  RunCore& open(RunCoreOptions options) {
    core_.emplace(std::move(options), driver_, observer_, Log::to_stderr(real_));
    driver_.core = &*core_;
    EXPECT_TRUE(core_->open());
    return *core_;
  }
  RunCoreOptions options() const {
    return {.config = stored_.config(),
            .checkpoints = CheckpointKeeper::in_folder(checkpoints(), 2),
            .log = log()};
  }
  /// Posts the stored events until `done`, each at its time.
  void play(const std::function<bool()>& done) {
    core_->begin();
    for (std::size_t i = 1; i < records_.size() && !done(); ++i) {
      driver_.clock = records_[i].time;
      core_->post(records_[i].event);
    }
  }
  void play() {
    play([&] { return core_->finished(); });
  }
  bool log_ends_with(const Record& record) const {
    std::uint64_t last = 0;
    EXPECT_TRUE(read_event_log(log(), [&](const Record& r) {
      last = r.sequence;
      return Status();
    }));
    return last == record.sequence;
  }

  const RealClock real_;
  const StoredRun stored_;
  std::vector<Record> records_;
  std::uint64_t stored_hash_ = 0;
  NotingDriver driver_;
  RunObserver observer_;

 private:
  const test::TemporaryFolder folder_;
  std::optional<RunCore> core_;
};

TEST_F(RunCoreTest, RecordsEqualEventsInAnEqualLog) {
  RunCore& core = open(options());
  play();
  ASSERT_TRUE(core.finished());
  EXPECT_EQ(driver_.finishes, 1);
  const RunOutcome outcome = core.close();
  EXPECT_TRUE(outcome.finish.ok) << outcome.finish.reason;
  EXPECT_EQ(outcome.log_hash, stored_hash_);
}

TEST_F(RunCoreTest, WritesTheRecordThenTheCheckpointThenTellsObserversThenExecutes) {
  int saved = 0;
  std::uint64_t commands = 0;  // Of earlier records, for the driver.
  observer_.on_record = [&](const Record& record) {
    EXPECT_EQ(driver_.executed, commands);
    commands += static_cast<std::uint64_t>(std::ranges::count_if(record.commands, is_for_driver));
    if (!std::holds_alternative<event::CheckpointSaved>(record.event))
      return;
    ++saved;
    EXPECT_TRUE(log_ends_with(record));
    const auto found = checkpoints().find();
    ASSERT_FALSE(found.empty());
    ASSERT_TRUE(found.front().mark);
    EXPECT_EQ(found.front().mark->sequence, record.sequence);
  };
  open(options());
  play();
  EXPECT_EQ(saved, 3);
  EXPECT_EQ(driver_.executed, commands);
}

TEST_F(RunCoreTest, DeliversEventsOfCommandsAfterTheRecordThatHasTheCommands) {
  std::vector<std::string> order;
  bool posted = false;
  observer_.on_record = [&](const Record& record) {
    order.push_back(std::visit([](const auto& e) { return std::string(e.kName); }, record.event));
  };
  driver_.on_command = [&](const Command&) {
    if (!std::exchange(posted, true))
      driver_.core->post(event::StopRequested{});
    order.emplace_back("command");
  };
  open(options());
  play([&] { return order.size() > 2; });
  ASSERT_GE(order.size(), 3U);
  EXPECT_EQ(order[0], "started");
  EXPECT_EQ(order[1], "command");
  EXPECT_NE(std::ranges::find(order, "stop_requested"), order.end());
}

TEST_F(RunCoreTest, RollsBackToTheLastCheckpoint) {
  RunCore& core = open(options());
  play([&] { return core.state().saved.progress.version == PolicyVersion(2); });
  const auto found = checkpoints().find();
  ASSERT_FALSE(found.empty());
  core.post(event::ActorDown{core.state().fleet.trainer(), "killed"});
  EXPECT_EQ(driver_.ends, 1);
  ASSERT_EQ(driver_.restored.size(), 1U);
  EXPECT_EQ(driver_.restored[0].folder, found.front().folder);
  EXPECT_EQ(driver_.restored[0].state.sequence, found.front().mark->sequence);
  EXPECT_FALSE(core.finished());
  EXPECT_EQ(core.state().saved.progress.version, found.front().mark->version);
}

TEST_F(RunCoreTest, ARunThatCannotRollBackEnds) {
  RunCore& core = open(options());
  play([&] { return core.state().saved.progress.version == PolicyVersion(2); });
  for (const FoundCheckpoint& found : checkpoints().find())
    fs::remove(found.folder / "manifest");
  core.post(event::ActorDown{core.state().fleet.trainer(), "killed"});
  ASSERT_TRUE(core.finished());
  EXPECT_EQ(driver_.finishes, 1);
  EXPECT_FALSE(core.outcome().finish.ok);
  EXPECT_NE(core.outcome().finish.reason.find("killed"), std::string::npos)
      << core.outcome().finish.reason;
}

TEST_F(RunCoreTest, ACheckpointThatCannotBeCompletedFailsTheRun) {
  RunCore& core = open(options());
  driver_.on_command = [&](const Command& command) {
    if (std::holds_alternative<command::SaveCheckpoint>(command))
      fs::remove_all(checkpoints().folder());
  };
  play();
  ASSERT_TRUE(core.finished());
  EXPECT_FALSE(core.outcome().finish.ok);
  EXPECT_NE(core.outcome().finish.reason.find("checkpoints"), std::string::npos)
      << core.outcome().finish.reason;
}

TEST_F(RunCoreTest, StopsInOrderThenAtOnce) {
  RunCore& core = open(options());
  play([&] { return core.state().saved.progress.version == PolicyVersion(1); });
  core.request_stop();
  EXPECT_FALSE(core.finished());
  core.request_stop();
  ASSERT_TRUE(core.finished());
  EXPECT_TRUE(core.outcome().finish.stopped);
  EXPECT_FALSE(core.outcome().finish.ok);
}

TEST_F(RunCoreTest, ResumesFromTheLastCheckpoint) {
  const StoredRun killed({.killed_after = 5});
  std::uint64_t seen = 0;
  observer_.on_record = [&](const Record&) { ++seen; };
  RunCore& core = open({.config = killed.config(),
                        .checkpoints = CheckpointKeeper::in_folder(killed.dir().checkpoints(), 2),
                        .log = killed.log(),
                        .resume = true});
  const FoundCheckpoint newest = killed.checkpoints().front();
  EXPECT_EQ(seen, newest.mark->sequence + 6);
  ASSERT_EQ(driver_.restored.size(), 1U);
  EXPECT_EQ(driver_.restored[0].folder, newest.folder);
  EXPECT_EQ(driver_.restored[0].state.payloads.count(GroupId(9)), 1U);
  std::optional<event::Resumed> resumed;
  driver_.clock = core.last_time();
  core.begin();
  EXPECT_TRUE(read_event_log(killed.log(), [&](const Record& record) {
    if (const auto* e = std::get_if<event::Resumed>(&record.event))
      resumed = *e;
    return Status();
  }));
  ASSERT_TRUE(resumed);
  EXPECT_EQ(resumed->sequence, newest.mark->sequence);
}

}  // namespace
}  // namespace temper::orchestrator
