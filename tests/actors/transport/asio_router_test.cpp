#include "actors/asio/asio.hpp"
#include "actors/asio/router.hpp"
#include "core/clock.hpp"
#include "tests/support/transport.hpp"

#include <gtest/gtest.h>

#include <thread>

namespace temper::actors {
namespace {

using namespace std::chrono_literals;
namespace asio = boost::asio;

const Log kNoLog = Log::discard();
const TransportConfig kDefaults;

RouterSocket bind(const char* where) {
  return RouterSocket::bind(where, kDefaults, kNoLog).value();
}

/// Sends `count` messages, at most `window` unanswered, and returns how many answers came.
int exchange(const std::string& endpoint, int count, int window) {
  auto dealer = DealerSocket::connect(endpoint, kDefaults, kNoLog).value();
  const RealClock clock;
  int sent = 0;
  int answered = 0;
  while (answered < count && clock.now() < Time(test::kPatience)) {
    std::string body = "question";
    while (sent < count && sent - answered < window && *dealer.try_send("head", body)) {
      ++sent;
      body = "question";
    }
    while (dealer.try_receive())
      ++answered;
    if (answered < sent && !dealer.wait(DealerSocket::Wait::Readable, -1, test::kPatience))
      break;
  }
  return answered;
}

class AsioRouterTest : public testing::TestWithParam<const char*> {};
INSTANTIATE_TEST_SUITE_P(Transports,
                         AsioRouterTest,
                         testing::Values("ipc", "tcp://127.0.0.1:0"),
                         [](const auto& p) { return std::string(p.param).substr(0, 3); });

TEST_P(AsioRouterTest, NoMessageIsLeftWaitingWhenAnswersAreSentMeanwhile) {
  // The descriptor signals an edge that a send may consume: a loop that only waits for it stalls
  // here after a few messages.
  asio::io_context io;
  std::unique_ptr<AsioRouter> router;
  router = std::make_unique<AsioRouter>(io, bind(GetParam()), [&](const Received& message) {
    EXPECT_TRUE(router->send(message.peer, "head", "answer"));
  });
  int answered = 0;
  std::thread client([&, endpoint = router->endpoint()] {
    answered = exchange(endpoint, 20'000, 64) + exchange(endpoint, 500, 1);
    asio::post(io, [&] { router.reset(); });
  });
  io.run();
  client.join();
  EXPECT_EQ(answered, 20'500);
}

TEST_P(AsioRouterTest, SendsFromOutsideTheCallbackLoseNoWakeUp) {
  asio::io_context io;
  std::unique_ptr<AsioRouter> router;
  std::vector<PeerId> owed;
  asio::steady_timer timer(io);
  bool timer_waits = false;
  router = std::make_unique<AsioRouter>(io, bind(GetParam()), [&](const Received& message) {
    owed.push_back(message.peer);
    if (std::exchange(timer_waits, true))
      return;
    timer.expires_after(100us);
    timer.async_wait([&](const auto&) {
      timer_waits = false;
      for (const PeerId& peer : std::exchange(owed, {}))
        EXPECT_TRUE(router->send(peer, "head", "answer"));
    });
  });
  int answered = 0;
  std::thread client([&, endpoint = router->endpoint()] {
    answered = exchange(endpoint, 5'000, 32);
    asio::post(io, [&] { router.reset(); });
  });
  io.run();
  client.join();
  EXPECT_EQ(answered, 5'000);
}

TEST(AsioRouter, AFloodDoesNotStarveTimers) {
  asio::io_context io;
  std::uint64_t handled = 0;
  std::uint64_t handled_when_timer_ran = 0;
  constexpr std::uint64_t kFlood = 5'000;
  asio::steady_timer timer(io);
  AsioRouter router(io, bind("ipc"), [&](const Received&) {
    if (++handled == kFlood)
      io.stop();
  });
  auto dealer = DealerSocket::connect(router.endpoint(), kDefaults, kNoLog).value();
  for (std::uint64_t i = 0; i < kFlood; ++i) {
    std::string body = "body";
    ASSERT_TRUE(dealer.try_send("head", body).value());
  }
  timer.expires_after(Duration::zero());
  timer.async_wait([&](const auto&) { handled_when_timer_ran = handled; });
  io.run_for(test::kPatience);
  EXPECT_EQ(handled, kFlood);
  EXPECT_LE(handled_when_timer_ran, 1024U) << "a batch or a few, not all";
}

TEST(AsioRouter, MayBeDestroyedWithTheLoopStillRunning) {
  asio::io_context io;
  int handled = 0;
  auto router = std::make_unique<AsioRouter>(io, bind("ipc"), [&](const Received&) { ++handled; });
  auto dealer = DealerSocket::connect(router->endpoint(), kDefaults, kNoLog).value();
  std::string body = "body";
  ASSERT_TRUE(dealer.try_send("head", body).value());
  router.reset();
  io.run();  // Ends: nothing is left to wait for.
  EXPECT_EQ(handled, 0);
}

TEST(AsioRouter, MayOutliveItsLoopsHandlers) {
  auto io = std::make_unique<asio::io_context>();
  auto router = std::make_unique<AsioRouter>(*io, bind("ipc"), [](const Received&) {});
  io->poll();
  router.reset();
  io.reset();
}

}  // namespace
}  // namespace temper::actors
