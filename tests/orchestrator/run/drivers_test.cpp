// Both drivers tell their observers of a checkpoint in the same order: the record is in the log and
// the checkpoint is complete before an observer sees the record.
#include "orchestrator/run/live/live_driver.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "tests/support/virtual_run.hpp"

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

/// What an observer finds in the run folder when it sees the record of a saved checkpoint.
struct Seen {
  bool in_log = false;    ///< The log ends with this record.
  bool complete = false;  ///< The newest checkpoint is complete, and is that of this record.
  bool operator==(const Seen&) const = default;
};
void PrintTo(const Seen& seen, std::ostream* out) {
  *out << "{in_log: " << seen.in_log << ", complete: " << seen.complete << "}";
}

class CheckpointObserver {
 public:
  explicit CheckpointObserver(fs::path root) : dir_(std::move(root)) {}

  RunObserver observer() {
    RunObserver observer;
    observer.on_record = [this](const Record& record) {
      if (std::holds_alternative<event::CheckpointSaved>(record.event))
        seen_.push_back(look(record));
    };
    return observer;
  }
  const std::vector<Seen>& seen() const { return seen_; }

 private:
  Seen look(const Record& record) const {
    Seen seen;
    std::optional<LogPosition> end;
    const auto read =
        scan_event_log(dir_.file("events.log"), [&](const Record& r, const LogPosition& behind) {
          seen.in_log = r.sequence == record.sequence;
          end = behind;
          return Status();
        });
    const auto found = dir_.checkpoints().find();
    seen.complete = read && !found.empty() && found.front().mark &&
                    found.front().mark->sequence == record.sequence &&
                    found.front().mark->log == end;
    return seen;
  }

  const RunDir dir_;
  std::vector<Seen> seen_;
};

class Drivers : public ::testing::Test {
 protected:
  static PipelineConfig config(HardwareKind hardware) {
    PipelineConfig c = testing::small();
    if (hardware == HardwareKind::Local) {
      c = {};
      c.policy = actors::PolicyKind::Synthetic;
      c.algorithm.groups_per_update = 4;
      c.algorithm.responses_per_group = 4;
      c.rollout.replicas = 2;
      c.rollout.concurrency = 8;
    }
    c.steps = 3;
    c.checkpoint.every = 1;
    return c;
  }

  std::vector<Seen> run_live() {
    const PipelineConfig c = config(HardwareKind::Local);
    const fs::path root = folder_.path() / "live";
    EXPECT_TRUE(RunDir(root).create());
    CheckpointObserver observer(root);
    const RealClock clock;
    auto driver = LiveDriver::create(
        {.pipeline = resolve_cards(c), .run_dir = root, .worker = TEMPER_WORKER, .base = {}},
        observer.observer(),
        Log::to_stderr(clock));
    EXPECT_TRUE(driver) << driver.error().context;
    const RunOutcome outcome = (*driver)->run();
    EXPECT_TRUE(outcome.finish.ok) << outcome.finish.reason;
    return observer.seen();
  }

  std::vector<Seen> run_virtual() {
    const fs::path root = folder_.path() / "virtual";
    EXPECT_TRUE(RunDir(root).create());
    VirtualOptions options;
    options.pipeline = resolve_cards(config(HardwareKind::Simulated));
    options.log = root / "events.log";
    options.checkpoints = root / "checkpoints";
    std::vector<std::string> names;
    for (const ActorSpec& spec : options.pipeline.slots)
      names.push_back(spec.name);
    auto host = std::make_unique<InProcessHost>(
        names,
        [](const actors::RoleConfig& role) -> Result<std::unique_ptr<actors::SimulatedActor>> {
          return std::unique_ptr<actors::SimulatedActor>(
              std::make_unique<testing::FakeActor>(role.kind));
        });
    CheckpointObserver observer(root);
    const RealClock clock;
    auto driver = VirtualDriver::create(
        std::move(options), std::move(host), observer.observer(), Log::to_stderr(clock));
    EXPECT_TRUE(driver) << driver.error().context;
    const RunOutcome outcome = (*driver)->run();
    EXPECT_TRUE(outcome.finish.ok) << outcome.finish.reason;
    return observer.seen();
  }

 private:
  const test::TemporaryFolder folder_;
};

TEST_F(Drivers, LogThenCompleteACheckpointThenTellTheirObservers) {
  const std::vector<Seen> live = run_live();
  EXPECT_EQ(live, std::vector<Seen>(3, Seen{true, true}));
  EXPECT_EQ(live, run_virtual());
}

}  // namespace
}  // namespace temper::orchestrator
