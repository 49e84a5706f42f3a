#include "actors/runtime/worker.hpp"

#include "actors/protocol/catalog.hpp"
#include "actors/runtime/loading.hpp"
#include "tests/actors/transport/defaults.hpp"
#include "tests/support/transport.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <new>
#include <stdexcept>
#include <thread>
#include <utility>

namespace temper::actors {
namespace {

using namespace std::chrono_literals;

constexpr Duration kLong = test::kPatience;

/// A role whose behavior is given by functions.
struct ScriptedRole : Role {
  std::function<Status(const IncomingMessage&, Outbox&)> handle =
      [](const IncomingMessage&, Outbox&) -> Status { return {}; };
  std::function<Result<Work>(Outbox&)> piece = [](Outbox&) { return Work::None; };
  std::function<void(Outbox&)> last_words = [](Outbox&) {};

  Status on_message(const IncomingMessage& message, Outbox& out) override {
    return handle(message, out);
  }
  Result<Work> work(Outbox& out) override { return piece(out); }
  Status stop(Outbox& out) override {
    last_words(out);
    return {};
  }
};

/// Runs a worker on its own thread; the test thread acts as its orchestrator.
class WorkerTest : public testing::Test {
 protected:
  WorkerTest() : router_(RouterSocket::bind("ipc", TransportConfig{}, kNoLog).value()) {
    options_.endpoint = router_.endpoint();
    options_.name = "rollout-0";
    options_.credentials.secret = "s3cret";
    welcome_.heartbeat = 10ms;
    welcome_.heartbeat_timeout = kLong;
  }
  ~WorkerTest() override {
    if (thread_.joinable())
      thread_.join();
  }

  void start() {
    start([this](const Welcome&) -> Result<std::unique_ptr<Role>> {
      return std::unique_ptr<Role>(std::make_unique<ScriptedRole>(role_));
    });
  }
  void start(RoleFactory factory) {
    thread_ = std::thread([this, factory = std::move(factory)] {
      result_ = run_worker(options_, factory, clock_, kNoLog);
    });
  }
  /// Waits until the worker ends.
  Status end() {
    thread_.join();
    return result_;
  }

  template <class M>
  void send(const M& message) {
    OutgoingMessage out = outgoing(message);
    const std::string head = encode_head(out, ++sequence_);
    EXPECT_TRUE(router_.send(peer_, head, std::move(out.body)));
  }
  /// The next message that is not a heartbeat.
  std::optional<IncomingMessage> next() {
    while (auto received = test::receive(router_)) {
      peer_ = received->peer;
      auto message = IncomingMessage::parse(*std::move(received));
      EXPECT_TRUE(message) << message.error().context;
      if (message && message->is<Heartbeat>())
        ++heartbeats_;
      else if (message)
        return *std::move(message);
    }
    return std::nullopt;
  }
  template <class M>
  M expect() {
    const auto message = next();
    if (!message) {
      ADD_FAILURE() << "timed out waiting for " << M::kName;
      return {};
    }
    auto decoded = message->decode<M>();
    EXPECT_TRUE(decoded) << decoded.error().context;
    return decoded ? *std::move(decoded) : M{};
  }
  void start_and_register() {
    start();
    EXPECT_EQ(expect<Hello>().name, "rollout-0");
    send(welcome_);
    expect<Ready>();
  }

  const RealClock clock_;
  RouterSocket router_;
  WorkerOptions options_;
  Welcome welcome_;
  ScriptedRole role_;
  PeerId peer_;
  std::uint64_t sequence_ = 0;
  int heartbeats_ = 0;
  Status result_;
  std::thread thread_;
};

/// Answers weights.commit with weights.committed.
Status echo(const IncomingMessage& message, Outbox& out) {
  TEMPER_TRY(const auto commit, message.decode<CommitWeights>());
  out.send(WeightsCommitted{.version = commit.version, .error = {}});
  return {};
}

TEST_F(WorkerTest, RegistersWithItsCredentials) {
  start();
  const Hello hello = expect<Hello>();
  EXPECT_EQ(hello.protocol, kProtocolVersion);
  EXPECT_EQ(hello.name, "rollout-0");
  EXPECT_EQ(hello.secret, "s3cret");
  EXPECT_EQ(hello.pid, ::getpid());
  EXPECT_FALSE(hello.host.empty());
  send(welcome_);
  expect<Ready>();
  send(Stop{});
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, HandlesMessagesInOrderBeforeItStops) {
  role_.handle = echo;
  start_and_register();
  constexpr std::uint64_t kMany = 2000;
  for (std::uint64_t i = 0; i < kMany; ++i)
    send(CommitWeights{.version = PolicyVersion(i)});
  send(Stop{});
  std::uint64_t last_sequence = 0;
  for (std::uint64_t i = 0; i < kMany; ++i) {
    const auto message = next();
    ASSERT_TRUE(message);
    ASSERT_EQ(message->decode<WeightsCommitted>().value().version, PolicyVersion(i));
    EXPECT_GT(message->envelope().sequence, last_sequence);
    last_sequence = message->envelope().sequence;
  }
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, SendsHeartbeatsWhileTheRoleComputes) {
  std::atomic<bool> release = false;
  role_.handle = [&](const IncomingMessage&, Outbox&) -> Status {
    while (!release) {
    }
    return {};
  };
  start_and_register();
  send(CommitWeights{});
  const int before = heartbeats_;
  EXPECT_TRUE(test::eventually(router_, [&] {
    while (auto received = router_.try_receive()) {
      const auto message = IncomingMessage::parse(*std::move(received)).value();
      heartbeats_ += message.is<Heartbeat>() ? 1 : 0;
    }
    return heartbeats_ >= before + 5;
  }));
  release = true;
  send(Stop{});
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, HandlesMessagesBetweenPiecesOfWork) {
  std::atomic<int> pieces = 0;
  bool handled = false;
  role_.piece = [&](Outbox&) -> Result<Role::Work> {
    ++pieces;
    return Role::Work::Pending;
  };
  role_.handle = [&](const IncomingMessage& message, Outbox& out) {
    handled = true;
    return echo(message, out);
  };
  start_and_register();
  send(CommitWeights{.version = PolicyVersion(4)});
  EXPECT_EQ(expect<WeightsCommitted>().version, PolicyVersion(4));
  send(Stop{});
  EXPECT_TRUE(end());
  EXPECT_TRUE(handled);
  EXPECT_GT(pieces, 0);
}

TEST_F(WorkerTest, CallsWorkFromTimeToTimeWhileIdle) {
  options_.idle_interval = 1ms;
  int calls = 0;
  role_.piece = [&](Outbox& out) -> Result<Role::Work> {
    if (++calls == 5)
      out.send(Activity{});
    return Role::Work::None;
  };
  start_and_register();
  expect<Activity>();
  send(Stop{});
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, FlushesMessagesBeforeItEnds) {
  constexpr int kWords = 300;
  role_.last_words = [](Outbox& out) {
    for (int i = 0; i < kWords; ++i)
      out.send(WeightsChunk{
          .version = {}, .offset = 0, .checksum = 0, .data = std::vector<std::byte>(10'000)});
  };
  start_and_register();
  send(Stop{});
  for (int i = 0; i < kWords; ++i)
    ASSERT_EQ(expect<WeightsChunk>().data.size(), 10'000U);
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, RepeatsHelloAndGivesUpAtTheDeadline) {
  options_.registration_deadline = 100ms;
  options_.hello_interval = 10ms;
  start();
  expect<Hello>();
  expect<Hello>();
  const Status status = end();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::Timeout);
  EXPECT_EQ(status.error().context,
            "no actor.welcome from " + options_.endpoint +
                " within 100ms; check that the orchestrator is running");
}

TEST_F(WorkerTest, EndsWithTheReasonOfARejection) {
  start();
  expect<Hello>();
  send(Reject{.reason = "protocol 1, this orchestrator speaks 2"});
  const Status status = end();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().context,
            "rejected by the orchestrator: protocol 1, this orchestrator speaks 2");
}

TEST_F(WorkerTest, EndsIfTheOrchestratorIsSilent) {
  welcome_.heartbeat_timeout = 50ms;
  start_and_register();
  const Status status = end();
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, ErrorCode::Unavailable);
  EXPECT_EQ(status.error().context, "the orchestrator was silent for 50ms");
}

TEST_F(WorkerTest, AbandonsABusyRoleIfTheOrchestratorIsGone) {
  welcome_.heartbeat_timeout = 50ms;
  options_.abandon_after = 10ms;
  std::atomic<bool> abandoned = false;
  options_.abandon = [&](const Error&) { abandoned = true; };
  role_.piece = [&](Outbox&) -> Result<Role::Work> {
    while (!abandoned) {
    }
    return Role::Work::None;
  };
  start_and_register();
  EXPECT_EQ(end().error().code, ErrorCode::Unavailable);
}

TEST_F(WorkerTest, StaysWhileTheOrchestratorSendsHeartbeats) {
  welcome_.heartbeat_timeout = 200ms;
  role_.handle = echo;
  start_and_register();
  const Time begin = clock_.now();
  while (clock_.now() < begin + 2 * welcome_.heartbeat_timeout) {
    send(Heartbeat{});
    test::eventually(router_, [&, soon = clock_.now() + 10ms] { return clock_.now() >= soon; });
    while (router_.try_receive()) {
    }
  }
  send(CommitWeights{.version = PolicyVersion(1)});
  EXPECT_EQ(expect<WeightsCommitted>().version, PolicyVersion(1));
  send(Stop{});
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, ReportsAnExceptionOfTheRole) {
  role_.handle = [](const IncomingMessage&, Outbox&) -> Status {
    throw std::runtime_error("tensor of the wrong shape");
  };
  start_and_register();
  send(CommitWeights{});
  const auto failed = expect<Failed>();
  EXPECT_NE(failed.reason.find("tensor of the wrong shape"), std::string::npos) << failed.reason;
  EXPECT_FALSE(failed.permanent);
  const Status ended = end();
  EXPECT_EQ(ended.error().code, ErrorCode::Internal);
  EXPECT_EQ(ended.error().context, failed.reason);
}

TEST_F(WorkerTest, ReportsAnErrorOfWork) {
  role_.piece = [](Outbox&) -> Result<Role::Work> { return corrupt("weights.bin"); };
  start_and_register();
  const auto failed = expect<Failed>();
  EXPECT_EQ(failed.reason, "weights.bin");
  EXPECT_FALSE(failed.permanent) << "the role had been built";
  EXPECT_EQ(end().error().code, ErrorCode::Corrupt);
}

TEST_F(WorkerTest, ReportsAValueThatIsNotFiniteByItsCodeOnly) {
  for (const ErrorCode code : {ErrorCode::NotFinite, ErrorCode::Internal}) {
    role_.piece = [code](Outbox&) -> Result<Role::Work> { return Error{code, "loss is nan"}; };
    start_and_register();
    EXPECT_EQ(expect<Failed>().not_finite, code == ErrorCode::NotFinite);
    EXPECT_EQ(end().error().code, code);
  }
}

TEST_F(WorkerTest, ReportsABuildError) {
  start([](const Welcome&) -> Result<std::unique_ptr<Role>> {
    return Error{ErrorCode::NotFound, "base.safetensors does not exist"};
  });
  expect<Hello>();
  send(welcome_);
  EXPECT_EQ(expect<Failed>().reason, "base.safetensors does not exist");
  EXPECT_EQ(end().error().code, ErrorCode::NotFound);
}

/// Which errors of building a role are permanent.
class BuildErrorTest : public WorkerTest,
                       public testing::WithParamInterface<std::pair<ErrorCode, bool>> {};
INSTANTIATE_TEST_SUITE_P(EachCode,
                         BuildErrorTest,
                         testing::Values(std::pair{ErrorCode::InvalidInput, true},
                                         std::pair{ErrorCode::NotFound, true},
                                         std::pair{ErrorCode::Corrupt, true},
                                         std::pair{ErrorCode::Unsupported, true},
                                         std::pair{ErrorCode::Io, false},
                                         std::pair{ErrorCode::Timeout, false},
                                         std::pair{ErrorCode::Unavailable, false},
                                         std::pair{ErrorCode::OutOfMemory, false},
                                         std::pair{ErrorCode::NotFinite, false},
                                         std::pair{ErrorCode::Internal, false}));

TEST_P(BuildErrorTest, ReportsWhetherTheErrorIsPermanent) {
  const auto [code, permanent] = GetParam();
  start([code = code](const Welcome&) -> Result<std::unique_ptr<Role>> {
    return Error{code, "why"};
  });
  expect<Hello>();
  send(welcome_);
  EXPECT_EQ(expect<Failed>().permanent, permanent);
  EXPECT_EQ(end().error().code, code);
}

TEST_F(WorkerTest, TreatsAnExceptionWhileBuildingAsTemporary) {
  start([](const Welcome&) -> Result<std::unique_ptr<Role>> { throw std::bad_alloc(); });
  expect<Hello>();
  send(welcome_);
  EXPECT_FALSE(expect<Failed>().permanent);
  EXPECT_EQ(end().error().code, ErrorCode::OutOfMemory);
}

TEST_F(WorkerTest, HeartbeatsReportThatTheRoleIsLoading) {
  std::atomic<bool> release = false;
  start([&](const Welcome&) -> Result<std::unique_ptr<Role>> {
    while (!release)
      note_progress();
    return std::unique_ptr<Role>(std::make_unique<ScriptedRole>(role_));
  });
  expect<Hello>();
  send(welcome_);
  int loading = 0;
  const auto count = [&] {
    while (auto received = router_.try_receive()) {
      const auto message = IncomingMessage::parse(*std::move(received)).value();
      if (message.is<Heartbeat>())
        loading += message.decode<Heartbeat>()->loading ? 1 : 0;
    }
  };
  EXPECT_TRUE(test::eventually(router_, [&] {
    count();
    return loading >= 3;
  }));
  release = true;
  while (true) {
    const auto message = IncomingMessage::parse(*test::receive(router_)).value();
    if (message.is<Ready>())
      break;
  }
  // One heartbeat may have been in flight when the role was ready.
  int at_work = 0, said = 0;
  EXPECT_TRUE(test::eventually(router_, [&] {
    while (auto received = router_.try_receive()) {
      const auto message = IncomingMessage::parse(*std::move(received)).value();
      ++at_work;
      said += message.decode<Heartbeat>()->loading ? 1 : 0;
    }
    return at_work >= 5;
  }));
  EXPECT_LE(said, 1);
  send(Stop{});
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, SkipsForgedMessages) {
  role_.handle = echo;
  start();
  expect<Hello>();
  EXPECT_TRUE(router_.send(peer_, "garbage", std::string("body")));
  EXPECT_TRUE(router_.send(peer_, "\x80", std::string("no tag")));
  send(welcome_);
  expect<Ready>();
  EXPECT_TRUE(router_.send(peer_, "garbage", std::string("body")));
  send(CommitWeights{.version = PolicyVersion(2)});
  EXPECT_EQ(expect<WeightsCommitted>().version, PolicyVersion(2));
  send(Stop{});
  EXPECT_TRUE(end());
}

TEST_F(WorkerTest, RejectsAWelcomeWithoutAHeartbeat) {
  start();
  expect<Hello>();
  send(Welcome{});
  EXPECT_EQ(end().error().code, ErrorCode::InvalidInput);
}

}  // namespace
}  // namespace temper::actors
