#include "actors/asio/asio.hpp"
#include "actors/asio/router.hpp"
#include "actors/protocol/catalog.hpp"
#include "core/clock.hpp"
#include "tests/actors/transport/defaults.hpp"
#include "tests/support/transport.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace temper::actors {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

RouterSocket bind_router(const char* where) {
  return RouterSocket::bind(where, kDefaults, kNoLog).value();
}

/// A worker's end of a connection, on a test thread.
class Peer {
 public:
  explicit Peer(const std::string& endpoint)
      : socket_(DealerSocket::connect(endpoint, kDefaults, kNoLog).value()) {}

  template <class M>
  void send(const M& message) {
    outgoing_.push(outgoing(message));
    flush();
  }
  /// The next message, including heartbeats; empty after a timeout.
  std::optional<IncomingMessage> next() {
    const RealClock clock;
    while (clock.now() < Time(test::kPatience)) {
      while (auto received = socket_.try_receive()) {
        auto part = IncomingMessage::parse(*std::move(received)).value();
        auto message = reassembler_.add(part);
        EXPECT_TRUE(message) << message.error().context;
        if (part.is<Taken>()) {
          EXPECT_TRUE(outgoing_.acknowledge(part.decode<Taken>().value()));
          flush();
          continue;
        }
        if (const auto told = reassembler_.due_ack())
          send(*told);
        if (message && *message)
          return *std::move(message);
      }
      EXPECT_TRUE(socket_.wait(DealerSocket::Wait::Readable, -1, 20ms));
      flush();
    }
    return std::nullopt;
  }
  template <class M>
  std::optional<M> next_of() {
    while (auto message = next()) {
      if (message->is<M>())
        return message->decode<M>().value();
    }
    return std::nullopt;
  }
  bool empty() const { return outgoing_.empty(); }

 private:
  void flush() {
    while (const OutgoingStream::Frames* wire = outgoing_.front()) {
      if (!socket_.try_send(wire->head, wire->body).value())
        return;
      outgoing_.pop();
    }
  }

  DealerSocket socket_;
  OutgoingStream outgoing_;
  Reassembler reassembler_{Bytes(Bytes::rep{1} << 40)};
};

/// An orchestrator that admits every peer that sends actor.hello.
class AsioRouterTest : public testing::TestWithParam<const char*> {
 protected:
  using OnMessage = std::function<void(const PeerId&, const IncomingMessage&)>;

  void open(const char* where, OnMessage on_message, Exchange::Options options = {}) {
    AsioRouter::Events events;
    events.on_message = [this, on_message](const PeerId& peer, const IncomingMessage& message) {
      if (!message.is<Hello>())
        return on_message(peer, message);
      router_->admit(peer);
      router_->send(peer, outgoing(Welcome{}));
    };
    events.on_broken = [this](const PeerId&, const std::string& why) {
      broken_.push_back(why);
      io_.stop();
    };
    events.on_heartbeat = on_heartbeat_;
    router_ =
        AsioRouter::create(io_, bind_router(where), options, std::move(events), kNoLog).value();
  }
  /// Runs `client` on another thread while the loop runs, until it returns.
  void run(const std::function<void(Peer&)>& client) {
    std::thread thread([&, endpoint = router_->endpoint()] {
      Peer peer(endpoint);
      peer.send(Hello{});
      EXPECT_TRUE(peer.next_of<Welcome>());
      client(peer);
      asio::post(io_, [this] { io_.stop(); });
    });
    io_.run();
    thread.join();
  }

  asio::io_context io_;
  std::unique_ptr<AsioRouter> router_;
  std::vector<std::string> broken_;
  OnMessage on_heartbeat_;
};
INSTANTIATE_TEST_SUITE_P(Transports,
                         AsioRouterTest,
                         testing::Values("ipc", "tcp://127.0.0.1:0"),
                         [](const auto& p) { return std::string(p.param).substr(0, 3); });

CommitWeights question(std::uint64_t number) {
  return {PolicyVersion(number)};
}

TEST_P(AsioRouterTest, AnswersManyMessagesInOrder) {
  open(GetParam(), [&](const PeerId& peer, const IncomingMessage& message) {
    router_->send(peer, outgoing(message.decode<CommitWeights>().value()));
  });
  run([](Peer& peer) {
    std::uint64_t sent = 0;
    for (std::uint64_t answered = 0; answered < 5'000; ++answered) {
      while (sent < answered + 64)
        peer.send(question(sent++));
      const auto answer = peer.next_of<CommitWeights>();
      ASSERT_TRUE(answer);
      ASSERT_EQ(answer->version, PolicyVersion(answered));
    }
  });
}

WeightsChunk large(std::size_t bytes) {
  WeightsChunk message;
  message.data.resize(bytes);
  for (std::size_t i = 0; i < bytes; i += 997)
    message.data[i] = static_cast<std::byte>(i / 997);
  return message;
}

TEST_P(AsioRouterTest, CarriesLargeMessagesInSmallFrames) {
  open(GetParam(), [&](const PeerId& peer, const IncomingMessage& message) {
    router_->send(peer, outgoing(message.decode<WeightsChunk>().value()));
  });
  run([](Peer& peer) {
    for (const std::size_t size : {std::size_t{1} << 20, std::size_t{50} << 20}) {
      const WeightsChunk sent = large(size);
      peer.send(sent);
      const auto back = peer.next_of<WeightsChunk>();
      ASSERT_TRUE(back);
      EXPECT_TRUE(back->data == sent.data) << size;
    }
  });
}

TEST_P(AsioRouterTest, SendsHeartbeatsWhileTheLoopIsBusyAndALargeMessageIsInFlight) {
  std::atomic<bool> release = false;
  open(GetParam(),
       [&](const PeerId& peer, const IncomingMessage&) {
         router_->send(peer, outgoing(large(std::size_t{64} << 20)));
         while (!release)
           std::this_thread::yield();
       },
       {.heartbeat = 1ms});
  run([&](Peer& peer) {
    peer.send(question(1));
    int heartbeats = 0;
    bool whole = false;
    while (heartbeats < 20 || !whole) {
      const auto message = peer.next();
      ASSERT_TRUE(message);
      heartbeats += message->is<Heartbeat>() ? 1 : 0;
      whole = whole || message->is<WeightsChunk>();
    }
    release = true;
  });
}

TEST_P(AsioRouterTest, RecordsHeartbeatsWhileTheLoopIsBusy) {
  Duration silence{};
  std::atomic<bool> told = false;
  open(GetParam(), [&](const PeerId& peer, const IncomingMessage&) {
    const RealClock clock;
    while (!told)
      std::this_thread::yield();
    const Time since = clock.now();
    while (router_->silence_of(peer) > clock.now() - since)
      std::this_thread::yield();  // until a heartbeat sent in the meantime is recorded
    silence = router_->silence_of(peer);
    io_.stop();
  });
  run([&](Peer& peer) {
    peer.send(question(1));
    told = true;
    const RealClock clock;
    while (!io_.stopped() && clock.now() < Time(test::kPatience))
      peer.send(Heartbeat{});
  });
  EXPECT_LT(silence, test::kPatience);
}

TEST_P(AsioRouterTest, DeliversHeartbeatsApartFromMessages) {
  int loading = 0, messages = 0;
  on_heartbeat_ = [&](const PeerId&, const IncomingMessage& heartbeat) {
    loading += heartbeat.decode<Heartbeat>().value().loading ? 1 : 0;
    if (messages > 0)
      io_.stop();
  };
  open(GetParam(), [&](const PeerId&, const IncomingMessage& message) {
    EXPECT_TRUE(message.is<CommitWeights>());
    ++messages;
  });
  run([&](Peer& peer) {
    peer.send(Heartbeat{.resident = {}, .loading = true});
    peer.send(question(1));
    const RealClock clock;
    while (!io_.stopped() && clock.now() < Time(test::kPatience))
      peer.send(Heartbeat{.resident = {}, .loading = true});
  });
  EXPECT_GT(loading, 0);
  EXPECT_EQ(messages, 1);
}

TEST_P(AsioRouterTest, DisconnectsAPeerThatViolatesTheProtocol) {
  open(GetParam(), [](const PeerId&, const IncomingMessage&) {}, {.max_message = Bytes(3 << 20)});
  run([&](Peer& peer) {
    peer.send(large(4 << 20));
    while (!io_.stopped())
      std::this_thread::yield();
  });
  ASSERT_EQ(broken_.size(), 1U);
  EXPECT_NE(broken_.front().find("protocol violation: weights.chunk: "), std::string::npos)
      << broken_.front();
  EXPECT_NE(broken_.front().find("transport.max_message"), std::string::npos) << broken_.front();
}

TEST_P(AsioRouterTest, IgnoresMessagesOfPeersThatAreNotAdmitted) {
  int handled = 0;
  open(GetParam(), [&](const PeerId&, const IncomingMessage&) { ++handled; });
  run([&](Peer&) {
    Peer unknown_peer(router_->endpoint());
    for (int i = 0; i < 10; ++i)
      unknown_peer.send(question(1));
    unknown_peer.send(large(2 << 20));  // sent in two pieces
    const RealClock clock;
    while (router_->stats().dropped < 13 && clock.now() < Time(test::kPatience))
      std::this_thread::yield();
  });
  EXPECT_EQ(handled, 0);
  EXPECT_EQ(router_->stats().dropped, 13U);
}

TEST_P(AsioRouterTest, AFloodDoesNotStarveTimers) {
  int handled = 0;
  int handled_when_timer_ran = 0;
  constexpr int kFlood = 5'000;
  asio::steady_timer timer(io_);
  open(GetParam(), [&](const PeerId& peer, const IncomingMessage&) {
    if (++handled == 1) {
      timer.expires_after(Duration::zero());
      timer.async_wait([&](const auto&) { handled_when_timer_ran = handled; });
    }
    if (handled == kFlood)
      router_->send(peer, outgoing(question(1)));
  });
  run([](Peer& peer) {
    for (int i = 0; i < kFlood; ++i)
      peer.send(question(2));
    EXPECT_TRUE(peer.next_of<CommitWeights>());
  });
  EXPECT_LE(handled_when_timer_ran, 1024) << "a batch or a few, not all";
}

TEST(Exchange, IgnoresLateMessagesOfAForgottenPeerWithoutCountingThem) {
  const RealClock clock;
  Exchange exchange(bind_router("ipc"), {}, clock);
  const auto next_hello = [&] {
    while (clock.now() < Time(test::kPatience)) {
      for (const Exchange::Arrival& a :
           exchange.turn(Exchange::Reading::On, Exchange::Heartbeats::Off).arrived) {
        EXPECT_TRUE(a.message.is<Hello>()) << "the message was delivered";
        return a.peer;
      }
    }
    return PeerId();
  };
  Peer peer(exchange.endpoint());
  peer.send(Hello{});
  const PeerId id = next_hello();
  exchange.admit(id, std::make_shared<PeerLiveness>(clock.now()));
  exchange.forget(id);
  for (int i = 0; i < 10; ++i)
    peer.send(question(1));
  peer.send(Hello{});  // arrives after all of them
  EXPECT_EQ(next_hello(), id);
  EXPECT_EQ(exchange.stats().dropped, 0U);
}

TEST_F(AsioRouterTest, MayBeDestroyedWithTheLoopStillRunning) {
  open("ipc", [](const PeerId&, const IncomingMessage&) {});
  router_.reset();
  io_.run();  // Returns: no work is left.
}

TEST(AsioRouter, MayOutliveItsLoopsHandlers) {
  auto io = std::make_unique<asio::io_context>();
  AsioRouter::Events events;
  events.on_message = [](const PeerId&, const IncomingMessage&) {};
  auto router = AsioRouter::create(*io, bind_router("ipc"), {}, events, kNoLog).value();
  io->poll();
  router.reset();
  io.reset();
}

}  // namespace
}  // namespace temper::actors
