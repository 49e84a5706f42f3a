// A live run on a machine that has other work, with bodies that go in pieces, workers that die and
// stand still. Where the programs are built with the thread sanitizer, whatever it says of one of
// their threads fails the test.
#include "core/files.hpp"
#include "tests/system/harness.hpp"

#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>

namespace temper::test {
namespace {

namespace fs = std::filesystem;
namespace event = orchestrator::event;

/// Processes that never rest, as many as make every core be asked for twice.
class OtherWork {
 public:
  OtherWork() {
    const long cores = ::sysconf(_SC_NPROCESSORS_ONLN);
    for (long i = 0; i < cores; ++i) {
      const pid_t pid = ::fork();
      if (pid == 0)
        never_rest();
      pids_.push_back(pid);
    }
  }
  OtherWork(const OtherWork&) = delete;
  OtherWork& operator=(const OtherWork&) = delete;
  ~OtherWork() {
    for (const pid_t pid : pids_) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, nullptr, 0);
    }
  }

 private:
  [[noreturn]] static void never_rest() {
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (std::atomic<unsigned> n = 0;;)
      ++n;
  }
  std::vector<pid_t> pids_;
};

class ARunUnderLoad : public SystemTest, public testing::WithParamInterface<const char*> {
 protected:
  /// Batches of 1.5 MB, which go in pieces; deadlines for processes that a sanitizer slows down.
  void run_large() {
    run({std::string("transport.kind=") + GetParam(),
         "steps=40",
         "synthetic.step_time=30ms",
         "algorithm.responses_per_group=8",
         "synthetic.tokens=4096",
         "sampling.max_new_tokens=4096",
         "model.context=8192",
         "transport.heartbeat_timeout=10s",
         "transport.max_restarts=20"});
  }
  /// What a sanitizer said in the log of any process of the run.
  std::string races() const {
    std::string all;
    for (const auto& entry : fs::recursive_directory_iterator(folder())) {
      const bool text = entry.path().extension() == ".txt" || entry.path().extension() == ".log";
      const std::string said = text ? read_file(entry.path()).value_or("") : "";
      const std::size_t at = said.find("ThreadSanitizer");
      if (at != std::string::npos && entry.path().filename() != "events.log")
        all += entry.path().string() + ": " + said.substr(at, 4000) + "\n";
    }
    return all;
  }
};
INSTANTIATE_TEST_SUITE_P(EachTransport,
                         ARunUnderLoad,
                         testing::Values("ipc", "tcp"),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(ARunUnderLoad, LosesAndRepeatsNothingAndNoThreadsRace) {
  const OtherWork other;
  run_large();
  for (const char* name : {"rollout-1", "reward-0", "trainer", "reference-0"}) {
    const std::size_t lost = count_events<event::ActorDown>(records());
    const std::uint64_t version = last_version(records());
    await_version(version + 2);
    const pid_t pid = await_worker(name);
    ASSERT_GT(pid, 0);
    ASSERT_EQ(::kill(pid, SIGKILL), 0);
    if (std::string(name) != "trainer")
      await([&](const Records& r) { return count_events<event::ActorDown>(r) > lost; });
  }
  const pid_t still = await_worker("rollout-0");
  ASSERT_GT(still, 0);
  ASSERT_EQ(::kill(still, SIGSTOP), 0);
  ASSERT_EQ(temper({"audit", run_dir().string()}).status, 0) << "of a run that goes on";
  ASSERT_EQ(::kill(still, SIGCONT), 0);
  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(40);
  EXPECT_EQ(races(), "");
}

}  // namespace
}  // namespace temper::test
