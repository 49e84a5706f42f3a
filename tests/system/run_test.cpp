// A run that nobody disturbs: what it leaves behind, and that each way to run it does what it says.
#include "core/json_document.hpp"
#include "tests/system/harness.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>

namespace temper::test {
namespace {

namespace fs = std::filesystem;
namespace command = orchestrator::command;
namespace event = orchestrator::event;
using actors::SwitchAction;
using orchestrator::Record;

class Run : public SystemTest {
 protected:
  nlohmann::json summary() const {
    return parse_json(read_file(run_dir() / "summary.json").value_or(""));
  }
};

bool is_empty_of_sockets(const fs::path& folder) {
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (entry.path().filename().string().starts_with("temper-"))
      return false;
  }
  return true;
}

TEST_F(Run, EndsWithACleanLogThatReplays) {
  run_as_built();
  const Ended ended = run().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
  EXPECT_TRUE(is_empty_of_sockets(folder()));
}

TEST_F(Run, ItsSummarySaysWhatItsLogSays) {
  ASSERT_EQ(run().wait().status, 0);
  const nlohmann::json s = summary();
  ASSERT_TRUE(s.is_object());
  EXPECT_EQ(s["ok"], true);
  EXPECT_EQ(s["steps"], 24);
  EXPECT_EQ(s["groups"]["trained"], 24 * 4);
  EXPECT_EQ(s["staleness"]["bound"], 2);
  EXPECT_LE(s["staleness"]["max"], 2);
  EXPECT_EQ(s["tokens"]["trained"].is_number(), true);
  EXPECT_EQ(s["utilization"]["per_card"].size(), 2U);
  const auto replay = parse_json(temper({"replay", run_dir().string(), "--json"}).output);
  EXPECT_EQ(replay["log_hash"], s["log_hash"]);
  for (const char* file : {"config.yaml", "metrics.jsonl", "trace.json"})
    EXPECT_GT(fs::file_size(run_dir() / file), 0U) << file;
  EXPECT_FALSE(parse_json(read_file(run_dir() / "trace.json").value()).is_discarded());
}

TEST_F(Run, ThatHasFinishedIsNotChangedByAResume) {
  ASSERT_EQ(run().wait().status, 0);
  const auto left = [this] {
    return read_file(run_dir() / "events.log").value() +
           read_file(run_dir() / "summary.json").value();
  };
  const std::string before = left();
  const Ended again = resume().wait();
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_NE(again.output.find("nothing was changed"), std::string::npos) << again.output;
  EXPECT_EQ(left(), before);
}

TEST_F(Run, ACertificateThatWasTamperedWithIsNamedByTheAudit) {
  ASSERT_EQ(run().wait().status, 0);
  expect_whole_run(24);
  const fs::path file = run_dir() / "certificates.jsonl";
  std::string text = read_file(file).value();
  EXPECT_EQ(std::ranges::count(text, '\n'), 24);
  const auto first = parse_json(text.substr(0, text.find('\n')));
  const std::string group = first["groups"][0]["group"].dump();
  const std::size_t at = text.find("\"v0\":0");
  ASSERT_NE(at, std::string::npos);
  text[at + 5] = '3';
  ASSERT_TRUE(write_file_atomically(file, text));
  const Ended audit = temper({"audit", run_dir().string()});
  EXPECT_EQ(audit.status, 3);
  EXPECT_NE(audit.output.find("VIOLATION    certificates.jsonl: step 0, group " + group +
                              ": v0: found 3, expected 0 from events.log"),
            std::string::npos)
      << audit.output;
}

TEST_F(Run, IsAProcessPerActorWhileItLasts) {
  run_as_built();
  run({"synthetic.step_time=20ms"});
  const auto found = await_workers();
  EXPECT_EQ(found.size(), 5U);  // Two rollouts, reference, reward, trainer.
  EXPECT_EQ(processes().size(), 6U);
  EXPECT_EQ(current().wait().status, 0);
  EXPECT_EQ(processes().size(), 0U);
  EXPECT_TRUE(is_empty_of_sockets(folder()));
}

TEST_F(Run, OverTcpSendsItsWeightsAsChunksFromAFreePort) {
  run_as_built();
  run({"transport.kind=tcp", "synthetic.step_time=20ms"});
  const std::string endpoint = await_endpoint();
  EXPECT_TRUE(endpoint.starts_with("tcp://127.0.0.1:")) << endpoint;
  EXPECT_FALSE(endpoint.ends_with(":0")) << endpoint;
  EXPECT_EQ(current().wait().status, 0);
  expect_whole_run(24);
}

TEST_F(Run, WithBoundZeroIsSynchronous) {
  ASSERT_EQ(run({"staleness.bound=0"}).wait().status, 0);
  expect_whole_run(24);
  EXPECT_EQ(summary()["staleness"]["max"], 0);
  for (const Record& record : records()) {
    for (const auto& c : record.commands) {
      const auto* train = std::get_if<command::Train>(&c);
      if (train == nullptr)
        continue;
      for (const auto& entry : train->certificate.groups)
        EXPECT_EQ(entry.dispatched, train->certificate.step);
    }
  }
}

/// The actions as the cards saw them done, without the one rollout's place among the other's.
std::vector<SwitchAction> switches(const std::vector<Record>& records) {
  std::vector<SwitchAction> actions;
  for (const Record& record : records) {
    const auto* done = std::get_if<event::Switched>(&record.event);
    if (done != nullptr && (actions.empty() || actions.back() != done->action))
      actions.push_back(done->action);
  }
  return actions;
}

TEST_F(Run, ColocatedSwitchesInTheOrderThatKeepsThePeakLow) {
  ASSERT_EQ(run({"placement.mode=colocated"}).wait().status, 0);
  expect_whole_run(24);
  const std::vector<SwitchAction> cycle{SwitchAction::OffloadOptimizer,
                                        SwitchAction::AllocateKv,
                                        SwitchAction::Interrupt,
                                        SwitchAction::FreeKv,
                                        SwitchAction::FreeWeights,
                                        SwitchAction::OnloadOptimizer};
  const std::vector<SwitchAction> seen = switches(records());
  ASSERT_GE(seen.size(), 2 * cycle.size());
  for (std::size_t i = 0; i < seen.size(); ++i)
    EXPECT_EQ(seen[i], cycle[i % cycle.size()]) << "action " << i;
}

TEST_F(Run, ColocatedCommitsWeightsBeforeTheKvCache) {
  ASSERT_EQ(run({"placement.mode=colocated"}).wait().status, 0);
  std::map<ActorId, bool> bound;  // Holds weights.
  for (const Record& record : records()) {
    if (const auto* e = std::get_if<event::WeightsCommitted>(&record.event))
      bound[e->actor] = true;
    const auto* e = std::get_if<event::Switched>(&record.event);
    if (e != nullptr && e->action == SwitchAction::FreeWeights)
      bound[e->actor] = false;
    if (e != nullptr && e->action == SwitchAction::AllocateKv) {
      EXPECT_TRUE(bound[e->actor]) << "record " << record.sequence;
    }
  }
}

TEST_F(Run, IsNotOverwrittenByAnother) {
  ASSERT_EQ(run().wait().status, 0);
  const std::string log = read_file(run_dir() / "events.log").value();
  const std::string config = read_file(run_dir() / "config.yaml").value();
  const Ended again = run({"steps=3"}).wait();
  EXPECT_EQ(again.status, 2);
  EXPECT_NE(again.output.find("holds a run already"), std::string::npos) << again.output;
  EXPECT_TRUE(read_file(run_dir() / "events.log").value() == log);
  EXPECT_EQ(read_file(run_dir() / "config.yaml").value(), config);
}

TEST_F(Run, ThatIsOverIsNotChangedByAResume) {
  ASSERT_EQ(run().wait().status, 0);
  const auto files = [this] {
    std::map<std::string, std::string> content;
    for (const auto& entry : fs::recursive_directory_iterator(run_dir())) {
      if (entry.is_regular_file())
        content[entry.path().string()] = read_file(entry.path()).value();
    }
    return content;
  };
  const auto before = files();
  const Ended ended = resume().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  EXPECT_EQ(files(), before);
  expect_whole_run(24);
}

TEST_F(Run, GoesOnWithMoreStepsAndAWiderBoundOnceItHasEnded) {
  ASSERT_EQ(run().wait().status, 0);
  const Ended more = temper({"run",
                             "--plain",
                             "--resume",
                             run_dir().string(),
                             "--set",
                             "steps=30",
                             "--set",
                             "staleness.bound=3",
                             "--set",
                             "algorithm.learning_rate=0.1"});
  EXPECT_EQ(more.status, 0) << more.output;
  for (const char* said : {"  steps: 24 -> 30\n",
                           "  staleness.bound: 2 -> 3\n",
                           "  algorithm.learning_rate: 0.0002 -> 0.1\n"})
    EXPECT_NE(more.output.find(said), std::string::npos) << more.output;
  expect_whole_run(30);
  EXPECT_EQ(summary()["staleness"]["bound"], 3);
  EXPECT_EQ(resume().wait().status, 0) << "there is nothing left to do";
  const Ended refused = temper({"run", "--resume", run_dir().string(), "--set", "seed=9"});
  EXPECT_EQ(refused.status, 2);
  EXPECT_NE(refused.output.find("seed: "), std::string::npos) << refused.output;
  expect_whole_run(30);
}

TEST_F(Run, AMistypedWordIsRefusedWithTheNearest) {
  const auto refused = [&](const Arguments& words, std::string_view what) {
    const Ended ended = temper(words);
    EXPECT_EQ(ended.status, 2) << ended.output;
    EXPECT_NE(ended.output.find(what), std::string::npos) << ended.output;
  };
  refused({"rnu"}, "no command `rnu`; did you mean `run`?");
  refused({"compare", "x.yaml", "--eta", "1"}, "`temper compare` is `temper sweep` now");
  refused({"run", "--resum", "x"}, "`temper run` has no flag --resum; did you mean `--resume`?");
  refused({"samples", "x", "--step", "1.5"}, "--step");
  refused({"report"}, "see `temper report --help`");
  refused({}, "`temper --help`");
}

TEST_F(Run, ThatGoesOnIsNotResumedBesideItself) {
  run({"synthetic.step_time=20ms"});
  await_version(2);
  const Ended beside = temper({"run", "--resume", run_dir().string()});
  EXPECT_EQ(beside.status, 1);
  EXPECT_NE(beside.output.find("is in progress"), std::string::npos) << beside.output;
  EXPECT_EQ(current().wait().status, 0);
  expect_whole_run(24);
}

/// The first two cores that this process may use.
cpu_set_t two_cores() {
  cpu_set_t all, two;
  CPU_ZERO(&two);
  ::sched_getaffinity(0, sizeof all, &all);
  for (int core = 0; core < CPU_SETSIZE && CPU_COUNT(&two) < 2; ++core) {
    if (CPU_ISSET(core, &all))
      CPU_SET(core, &two);
  }
  return two;
}

/// Where there are more, another run takes others.
void have_two_cores() {
  const cpu_set_t two = two_cores();
  ::sched_setaffinity(0, sizeof two, &two);
}

struct flock lock_of(int core) {
  struct flock lock {};
  lock.l_type = F_WRLCK;
  lock.l_whence = SEEK_SET;
  lock.l_start = core;
  lock.l_len = 1;
  return lock;
}

/// Locks two cores as a run does, except those that other runs of this machine have.
class TwoHeldCores {
 public:
  TwoHeldCores() {
    const cpu_set_t two = two_cores();
    for (int core = 0; core < CPU_SETSIZE; ++core) {
      if (CPU_ISSET(core, &two))
        holders_[core] = hold(core);
    }
  }
  std::set<pid_t> holders() const {
    std::set<pid_t> out;
    for (const auto& [core, holder] : holders_)
      out.insert(holder);
    return out;
  }
  /// Whether the other runs still have them.
  bool unchanged() const {
    return std::ranges::all_of(holders_, [this](const auto& core_and_holder) {
      const auto& [core, holder] = core_and_holder;
      return holder == ::getpid() || other_holder(core) == holder;
    });
  }

 private:
  pid_t hold(int core) const {
    for (;;) {
      struct flock lock = lock_of(core);
      if (::fcntl(file_.get(), F_SETLK, &lock) == 0)
        return ::getpid();
      if (const auto other = other_holder(core))
        return *other;
    }
  }
  std::optional<pid_t> other_holder(int core) const {
    struct flock found = lock_of(core);
    if (::fcntl(file_.get(), F_GETLK, &found) != 0 || found.l_type == F_UNLCK)
      return std::nullopt;
    return found.l_pid;
  }

  FileDescriptor file_{::open("/dev/shm/temper-cores", O_RDWR | O_CREAT | O_CLOEXEC, 0666)};
  std::map<int, pid_t> holders_;
};

TEST_F(Run, OnCoresThatAnotherProcessHoldsIsToldSo) {
  for (;;) {
    const TwoHeldCores held;
    const Ended said = run({"steps=2"}, have_two_cores).wait();
    EXPECT_EQ(said.status, 0) << said.output;
    if (!held.unchanged()) {  // Another run ended meanwhile.
      fs::remove_all(run_dir());
      continue;
    }
    for (const pid_t holder : held.holders()) {
      const std::string expected = holder > 0 ? fmt::format("also used by process {}", holder)
                                              : "also used by a run of another container";
      EXPECT_NE(said.output.find(expected), std::string::npos) << said.output;
    }
    return;
  }
}

TEST_F(Run, WithAnUnknownKeyIsRefusedByItsLine) {
  ASSERT_TRUE(write_file_atomically(config(), "policy: synthetic\nstaleness:\n  bond: 2\n"));
  const Ended ended = run().wait();
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.output.find("config.yaml:3"), std::string::npos) << ended.output;
  EXPECT_NE(ended.output.find("bound"), std::string::npos) << ended.output;
  EXPECT_FALSE(fs::exists(run_dir()));
}

TEST_F(Run, WithoutItsConfigurationSaysSo) {
  const Ended ended = temper({"run", (folder() / "none.yaml").string()});
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.output.find("none.yaml"), std::string::npos) << ended.output;
}

TEST_F(Run, ThatWasNeverBegunCannotBeResumed) {
  const Ended ended = resume().wait();
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.output.find(run_dir().string()), std::string::npos) << ended.output;
}

}  // namespace
}  // namespace temper::test
