// Strangers at the socket, a disk that is full, files that are damaged, actors that cannot start.
#include "actors/protocol/catalog.hpp"
#include "actors/transport/message.hpp"
#include "core/clock.hpp"
#include "tests/system/harness.hpp"

#include <fcntl.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cstring>
#include <fstream>
#include <random>

namespace temper::test {
namespace {

namespace fs = std::filesystem;
namespace event = orchestrator::event;
using namespace std::chrono_literals;

// --- Strangers

int connect_to(const std::string& endpoint) {
  if (endpoint.starts_with("ipc://")) {
    const int fd = ::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    std::strncpy(address.sun_path, endpoint.c_str() + 6, sizeof(address.sun_path) - 1);
    EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
    return fd;
  }
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  const auto port = std::stoi(endpoint.substr(endpoint.rfind(':') + 1));
  address.sin_port = htons(static_cast<std::uint16_t>(port));
  EXPECT_EQ(::connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  return fd;
}

std::string random_bytes(std::mt19937_64& random, std::size_t size) {
  std::string bytes(size, '\0');
  for (char& byte : bytes)
    byte = static_cast<char>(random());
  return bytes;
}

/// Connections that speak no ZeroMQ: silent ones, and ones that write until they are cut off.
class RawStrangers {
 public:
  explicit RawStrangers(const std::string& endpoint) {
    std::mt19937_64 random(7);
    for (int i = 0; i < 8; ++i) {
      fds_.push_back(connect_to(endpoint));
      const std::string garbage = random_bytes(random, 4096);
      if (i % 2 == 0)
        std::ignore = ::send(fds_.back(), garbage.data(), garbage.size(), MSG_NOSIGNAL);
    }
  }
  ~RawStrangers() {
    for (const int fd : fds_)
      ::close(fd);
  }

 private:
  std::vector<int> fds_;
};

/// Sends `bodies` under well-formed and broken heads, and expects no answer to any.
void disturb(actors::DealerSocket& socket,
             const std::vector<std::pair<std::string, std::string>>& frames) {
  for (const auto& [head, body] : frames)
    EXPECT_TRUE(socket.try_send(head, body).value_or(false));
  int never[2];
  EXPECT_EQ(::pipe2(never, O_CLOEXEC), 0);
  std::ignore = socket.wait(actors::DealerSocket::Wait::Readable, never[0], 300ms);
  EXPECT_FALSE(socket.try_receive()) << "a guess is not answered";
  ::close(never[0]);
  ::close(never[1]);
}

template <class M>
std::pair<std::string, std::string> framed(const M& message, std::uint64_t sequence) {
  actors::OutgoingMessage out = actors::outgoing(message);
  return {encode_head(out, sequence), std::move(out.body)};
}

class Strangers : public SystemTest, public testing::WithParamInterface<const char*> {};
INSTANTIATE_TEST_SUITE_P(EachTransport,
                         Strangers,
                         testing::Values("ipc", "tcp", "plain"),
                         [](const auto& p) { return std::string(p.param); });

TEST_P(Strangers, DoNotDisturbARun) {
  run_as_built();
  const bool plain = std::string(GetParam()) == "plain";
  run({kSlow,
       std::string("transport.kind=") + (plain ? "tcp" : GetParam()),
       std::string("transport.security=") + (plain ? "plain" : "curve")});
  const std::string endpoint = await_endpoint();
  ASSERT_FALSE(endpoint.empty());
  const RawStrangers raw(endpoint);

  const RealClock clock;
  const Log log = Log::to_stderr(clock);
  auto socket = actors::DealerSocket::connect(endpoint, {}, log);
  ASSERT_TRUE(socket);
  std::mt19937_64 random(11);
  std::vector<std::pair<std::string, std::string>> frames;
  for (int i = 0; i < 200; ++i)
    frames.emplace_back(random_bytes(random, 1 + random() % 100),
                        random_bytes(random, 1 + random() % 1000));
  // As if it were an actor: results that nobody asked it for.
  frames.push_back(framed(actors::Judged{LeaseId(1), {{1.0, ""}}}, 1));
  frames.push_back(framed(actors::Failed{"I am the trainer"}, 2));
  frames.push_back(framed(actors::TrainerReady{}, 3));
  actors::Hello hello;
  hello.name = "trainer";
  hello.secret = "00000000000000000000000000000000";
  frames.push_back(framed(hello, 4));
  disturb(*socket, frames);

  const Ended ended = current().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
  EXPECT_EQ(count_events<event::ActorDown>(records()), 0U);
}

// --- A poor environment

using Handicap = std::function<void()>;

/// No file of the run grows beyond `largest`: what a full disk does, at a known moment.
Handicap full_disk(Bytes largest) {
  return [largest] {
    const auto bytes = static_cast<rlim_t>(largest.count());
    const rlimit limit{bytes, bytes};
    ::setrlimit(RLIMIT_FSIZE, &limit);
  };
}

Handicap few_descriptors(const rlimit& limit) {
  return [limit] { ::setrlimit(RLIMIT_NOFILE, &limit); };
}

void only_the_last_core() {
  cpu_set_t cores;
  ::sched_getaffinity(0, sizeof cores, &cores);
  int last = CPU_SETSIZE - 1;
  while (last > 0 && !CPU_ISSET(last, &cores))
    --last;
  CPU_ZERO(&cores);
  CPU_SET(last, &cores);
  ::sched_setaffinity(0, sizeof cores, &cores);
}

void close_output() {
  for (const int fd : {0, 1, 2})
    ::close(fd);
}

TEST_F(SystemTest, AFullDiskEndsTheRunByTheFilesNameAndItIsResumedOnceThereIsRoom) {
  // More than the state in a checkpoint takes and less than the log of half the updates, so that
  // the log is the first to be too large.
  const Ended ended = run({"steps=48"}, full_disk(Bytes(18 * 1024))).wait();
  EXPECT_EQ(ended.status, 1) << ended.output;
  const std::string log = (run_dir() / "events.log").string();
  EXPECT_NE(ended.output.find("cannot append to " + log + ": File too large"), std::string::npos)
      << ended.output;
  EXPECT_EQ(processes(), std::vector<pid_t>{});
  EXPECT_GT(last_version(records()), 5U);
  EXPECT_FALSE(fs::is_empty(run_dir() / "checkpoints"));
  expect_clean_log();
  const Ended resumed = resume().wait();
  EXPECT_EQ(resumed.status, 0) << resumed.output;
  expect_whole_run(48);
}

TEST_F(SystemTest, ADiskFullFromTheStartIsNamed) {
  const Ended ended =
      run({}, full_disk(Bytes(512))).wait();  // Room for the complaint, not for config.yaml.
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_NE(ended.output.find((run_dir() / "config.yaml").string()), std::string::npos)
      << ended.output;
  EXPECT_EQ(processes(), std::vector<pid_t>{});
}

TEST_F(SystemTest, ADiskFullBehindItsOutputTooIsAnErrorLikeAnyOther) {
  EXPECT_EQ(run({}, full_disk(Bytes(0))).wait().status, 1);
  EXPECT_EQ(processes(), std::vector<pid_t>{});
}

TEST_F(SystemTest, TooFewDescriptorsAreAnErrorBeforeAnythingStarts) {
  const Ended ended = run({}, few_descriptors({32, 103})).wait();
  EXPECT_EQ(ended.status, 1) << ended.output;
  EXPECT_EQ(
      ended.output,
      "temper: this run needs 104 file descriptors, but the limit is 103; raise it (ulimit -Hn)\n");
  EXPECT_FALSE(fs::exists(run_dir()));
}

TEST_F(SystemTest, ALowSoftLimitOfDescriptorsIsRaised) {
  EXPECT_EQ(run({}, few_descriptors({32, 104})).wait().status, 0);
  expect_whole_run(24);
}

TEST_F(SystemTest, CardsAreTheCoresThatTheProcessWasGivenWhicheverTheyAre) {
  const Ended ended =
      run({"placement.mode=colocated", "placement.cards=1"}, only_the_last_core).wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

TEST_F(SystemTest, ClosedOutputsDoNotEndUpInTheFilesOfTheRun) {
  EXPECT_EQ(run({}, close_output).wait().status, 0);
  expect_whole_run(24);
  EXPECT_EQ(read_file(run_dir() / "logs/orchestrator.log").value(), "");
}

TEST_F(SystemTest, AnAddressThatCannotBeBoundIsNamedAndTheFolderIsStillFree) {
  const Ended ended = run({"transport.kind=tcp", "transport.bind=192.0.2.1"}).wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.output.find("192.0.2.1"), std::string::npos) << ended.output;
  EXPECT_EQ(run().wait().status, 0);
  expect_whole_run(24);
}

// --- Damaged files

class ADamagedRun : public SystemTest {
 protected:
  /// A run that was stopped after a checkpoint.
  void make() {
    run({kSlow});
    await_version(8);
    current().signal(SIGKILL);
    current().wait();
    await_no_processes();
  }
  fs::path newest() const {
    std::set<fs::path> all;
    for (const auto& entry : fs::directory_iterator(run_dir() / "checkpoints")) {
      if (entry.path().extension() != ".partial")
        all.insert(entry.path());
    }
    return *all.rbegin();
  }
  void expect_refused(const std::string& name, int status = 3) {
    const Ended ended = resume().wait();
    EXPECT_EQ(ended.status, status) << ended.output;
    EXPECT_NE(ended.output.find(name), std::string::npos) << ended.output;
    EXPECT_EQ(processes(), std::vector<pid_t>{});
  }
};

TEST_F(ADamagedRun, IsRefusedByTheNameOfItsCutOffState) {
  make();
  const fs::path state = newest() / "orchestrator.msgpack";
  fs::resize_file(state, fs::file_size(state) / 2);
  expect_refused(state.string());
}

TEST_F(ADamagedRun, IsRefusedByTheNameOfItsMissingState) {
  make();
  const fs::path state = newest() / "orchestrator.msgpack";
  fs::remove(state);
  expect_refused(state.string());
}

TEST_F(ADamagedRun, IsRefusedByTheNameOfTheTrainersMissingFile) {
  make();
  const fs::path file = newest() / "synthetic.json";
  fs::remove(file);
  expect_refused(file.string());
}

TEST_F(ADamagedRun, IsRefusedIfAnotherConfigurationIsAsked) {
  make();
  const std::string yaml = read_file(run_dir() / "config.yaml").value();
  const auto at = yaml.find("steps: 24");
  ASSERT_NE(at, std::string::npos);
  ASSERT_TRUE(write_file_atomically(run_dir() / "config.yaml",
                                    yaml.substr(0, at) + "steps: 30" + yaml.substr(at + 9)));
  expect_refused((run_dir() / "config.yaml").string() + " is damaged");
  ASSERT_TRUE(write_file_atomically(run_dir() / "config.yaml", yaml));
  const Ended asked = temper({"run", "--plain", "--resume", run_dir().string(), "--set", "seed=3"});
  EXPECT_EQ(asked.status, 2);
  EXPECT_NE(asked.output.find("seed: 1 -> 3: "), std::string::npos) << asked.output;
  EXPECT_EQ(read_file(run_dir() / "config.yaml").value(), yaml);
}

TEST_F(ADamagedRun, IsRefusedIfItsLogIsEmpty) {
  make();
  fs::resize_file(run_dir() / "events.log", 0);
  expect_refused("events.log holds no record of a start", 2);
}

TEST_F(ADamagedRun, IsGoneOnWithIfOnlyAnUnfinishedCheckpointLiesAbout) {
  make();
  fs::create_directories(run_dir() / "checkpoints/step-000099.partial");
  const Ended ended = resume().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

// --- Actors that cannot start

TEST_F(SystemTest, AProgramThatIsNotThereIsNamedBeforeAnythingBegins) {
  const Ended ended =
      run({"verifier.kind=command", "verifier.command=[/nonexistent/verify]"}).wait();
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.output.find("verifier.command: cannot execute /nonexistent/verify"),
            std::string::npos)
      << ended.output;
  EXPECT_FALSE(fs::exists(run_dir()));
}

TEST_F(SystemTest, AnActorThatNeverStartsIsNamedWithItsDeadlineAndTheNextTryHasTheFolder) {
  const Ended ended = run({"rollout.engine.kind=command",
                           "rollout.engine.command=[sleep, 60]",
                           "deadlines.start=100ms",
                           "transport.max_restarts=0"})
                          .wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.output.find("did not start within 100ms (deadlines.start)"), std::string::npos)
      << ended.output;
  expect_clean_log();
  const Ended again = run().wait();
  EXPECT_EQ(again.status, 0) << again.output;
  EXPECT_NE(again.output.find("ended before its first step"), std::string::npos) << again.output;
  EXPECT_TRUE(fs::exists(run_dir().string() + ".failed-1/events.log"));
  expect_whole_run(24);
}

/// What a process does before it connects: the loading of libraries and packages.
TEST_F(SystemTest, AnActorThatUsesTheProcessorIsLoadingAlsoBeforeItConnects) {
  const Ended ended = run({"rollout.engine.kind=command",
                           "rollout.engine.command=[sh, -c, 'n=0; while [ $n -lt 3000000 ]; do "
                           "n=$((n+1)); done; exec sleep 60']",
                           "deadlines.start=4s",
                           "transport.max_restarts=0"})
                          .wait();
  EXPECT_EQ(ended.status, 1);
  EXPECT_NE(ended.output.find("(deadlines.start)"), std::string::npos) << ended.output;
  std::size_t reports = 0;
  for (const auto& record : records()) {
    const auto* loading = std::get_if<event::ActorLoading>(&record.event);
    reports += loading != nullptr && loading->actor == ActorId(0) ? 1 : 0;
  }
  EXPECT_GT(reports, 0U);
  expect_clean_log();
}

TEST_F(SystemTest, AFileOfPromptsThatIsNotThereIsNamed) {
  const std::string path = (folder() / "none.jsonl").string();
  const Ended ended = run({"task.kind=jsonl", "task.path=" + path}).wait();
  EXPECT_EQ(ended.status, 2);
  EXPECT_NE(ended.output.find(path), std::string::npos) << ended.output;
  EXPECT_FALSE(fs::exists(run_dir()));
}

TEST_F(SystemTest, VerifierProcessesEndWithTheRunHoweverItEnds) {
  const fs::path script = folder() / "verify.sh";
  std::ofstream(script) << "#!/bin/sh\nwhile read -r line; do echo '{\"reward\": 1}'; done\n";
  fs::permissions(script, fs::perms::owner_all);
  run({kSlow, "verifier.kind=command", "verifier.command=[" + script.string() + "]"});
  await_version(3);
  EXPECT_GT(processes().size(), 6U);
  current().signal(SIGKILL);
  current().wait();
  await_no_processes();
  const Ended ended = resume().wait();
  EXPECT_EQ(ended.status, 0) << ended.output;
  expect_whole_run(24);
}

}  // namespace
}  // namespace temper::test
