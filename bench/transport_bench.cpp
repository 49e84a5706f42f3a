// Measures how late heartbeats are while a large message is sent, and the rate of that message: an
// orchestrator's Exchange on one thread, a worker's OutgoingStream and Reassembler on another.
//
//   transport_bench [GiB]      default 3
#include "actors/transport/exchange.hpp"
#include "core/clock.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <thread>
#include <vector>

namespace temper::actors {
namespace {

using namespace std::chrono_literals;

constexpr Duration kHeartbeat = 10ms;

struct Measured {
  double seconds = 0;
  std::vector<Duration> gaps;  ///< Between two heartbeats, while the message was in transit.
};

/// Connects, receives `bytes`, and records the arrival of heartbeats meanwhile.
Measured be_worker(const std::string& endpoint, const Credentials& credentials) {
  const RealClock clock;
  auto socket = DealerSocket::connect(endpoint, {}, Log::discard(), credentials).value();
  OutgoingStream stream;
  Reassembler reassembler(Bytes(Bytes::rep{1} << 40));
  Hello hello;
  hello.name = "worker";
  stream.push(outgoing(hello));
  Measured measured;
  std::optional<Time> first_piece;
  Time last_heartbeat{};
  for (;;) {
    while (const OutgoingStream::Frames* wire = stream.front()) {
      if (!socket.try_send(wire->head, wire->body).value())
        break;
      stream.pop();
    }
    static_cast<void>(socket.wait(DealerSocket::Wait::Readable, -1, 1s));
    while (auto received = socket.try_receive()) {
      const auto part = IncomingMessage::parse(*std::move(received)).value();
      const Time now = clock.now();
      if (part.is<Heartbeat>()) {
        if (first_piece && last_heartbeat != Time{})
          measured.gaps.push_back(now - last_heartbeat);
        last_heartbeat = now;
      }
      if (part.envelope().piece && !first_piece)
        first_piece = now;
      const auto whole = reassembler.add(part).value();
      if (const auto told = reassembler.due_ack())
        stream.push(outgoing(*told));
      if (whole && !whole->is<Heartbeat>()) {
        measured.seconds =
            std::chrono::duration<double>(clock.now() - first_piece.value_or(now)).count();
        return measured;
      }
    }
  }
}

void run(std::string_view name, const std::string& where, bool encrypted, const Slice& body) {
  const RealClock clock;
  std::optional<KeyPair> key;
  Credentials credentials;
  if (encrypted) {
    key = KeyPair::create();
    credentials = {"", key->open, KeyPair::create()};
  }
  auto socket = RouterSocket::bind(where, {}, Log::discard(), key).value();
  socket.let_in(credentials.own.open, "worker");
  Exchange exchange(std::move(socket), {.heartbeat = kHeartbeat}, clock);
  std::atomic<bool> done = false;
  std::thread head([&] {
    while (!done) {
      const auto result = exchange.turn(Exchange::Reading::On, Exchange::Heartbeats::On);
      for (const auto& a : result.arrived) {
        exchange.admit(a.peer, std::make_shared<actors::PeerLiveness>(Time{}));
        exchange.send(a.peer, {.tag = 62, .version = 1, .body = {}, .shared = body});
      }
      if (!result.more)
        static_cast<void>(exchange.wait(Exchange::Reading::On, -1));
    }
  });
  Measured m = be_worker(exchange.endpoint(), credentials);
  done = true;
  head.join();
  std::sort(m.gaps.begin(), m.gaps.end());
  const auto at = [&](double share) {
    return m.gaps.empty() ? 0.0
                          : std::chrono::duration<double, std::milli>(
                                m.gaps[static_cast<std::size_t>(
                                    share * static_cast<double>(m.gaps.size() - 1))])
                                .count();
  };
  fmt::print(
      "{:<12} {:5.2f} GiB in {:6.2f} s  {:5.2f} GiB/s   heartbeats every {} ms: {:4} came, "
      "gap median {:.1f} ms, p99 {:.1f} ms, largest {:.1f} ms\n",
      name,
      static_cast<double>(body.size()) / (1 << 30),
      m.seconds,
      static_cast<double>(body.size()) / (1 << 30) / m.seconds,
      kHeartbeat / 1ms,
      m.gaps.size(),
      at(0.5),
      at(0.99),
      at(1));
}

}  // namespace
}  // namespace temper::actors

int main(int argc, char** argv) {
  using namespace temper::actors;
  const double gib = argc > 1 ? std::atof(argv[1]) : 3;
  const Slice body(std::string(static_cast<std::size_t>(gib * (1 << 30)), 'x'));
  run("ipc", "ipc", false, body);
  run("tcp", "tcp://127.0.0.1:0", false, body);
  run("tcp + CURVE", "tcp://127.0.0.1:0", true, body);
}
