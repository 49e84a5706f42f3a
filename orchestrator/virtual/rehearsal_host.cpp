#include "orchestrator/virtual/rehearsal_host.hpp"

#include "actors/asio/asio.hpp"
#include "actors/asio/router.hpp"
#include "actors/protocol/counted.hpp"
#include "actors/protocol/lifecycle.hpp"
#include "core/clock.hpp"
#include "orchestrator/live/connections.hpp"
#include "orchestrator/live/launch.hpp"
#include "orchestrator/live/supervisor.hpp"

#include <fmt/format.h>
#include <unistd.h>

namespace temper::orchestrator {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr Duration kTick = 100ms;
constexpr Duration kStart = 60s;    ///< Until every worker is connected.
constexpr Duration kAnswer = 120s;  ///< Until every actor has answered one step.
constexpr Duration kGoodbye = 3s;   ///< Until every worker has ended by itself.

}  // namespace

struct RehearsalHost::Impl {
  struct Slot {
    actors::RoleConfig role;
    std::vector<actors::OutgoingMessage> outbox;
    std::vector<Arrival> said;
    std::optional<Time> next;
    bool connected = false;
    bool owes = false;  ///< An answer to time.advance.
  };

  Impl(RehearsalOptions o, const Log& l)
      : options(std::move(o)),
        log(l),
        secret(random_secret()),
        connections(options.names, secret),
        slots(options.names.size()) {}

  Status open() {
    TEMPER_TRY(auto socket,
               actors::RouterSocket::bind(
                   socket_address(options.transport), options.transport.limits, log));
    router = std::make_unique<actors::AsioRouter>(
        io, std::move(socket), [this](actors::Received r) { on_message(std::move(r)); });
    supervisor = std::make_unique<Supervisor>(io, [this](const ChildExit& e) { on_exit(e); });
    tick();
    return {};
  }

  // --- Watching

  void tick() {
    const TransportSection& t = options.transport;
    for (const ActorId actor : connections.silent_since(clock.now() - t.heartbeat_timeout))
      lose(actor, fmt::format("silent for {}", to_text(t.heartbeat_timeout)));
    std::vector<ActorId> alive;
    for (const auto& [peer, actor] : connections.peers())
      alive.push_back(actor);
    for (const ActorId actor : alive)
      send(actor, actors::outgoing(actors::Heartbeat{}));
    timer.expires_after(std::min(kTick, t.heartbeat));
    timer.async_wait([this](const auto& error) {
      if (!error)
        tick();
    });
  }

  void lose(ActorId actor, const std::string& reason) {
    if (!lost)
      lost = Error{ErrorCode::Unavailable,
                   fmt::format("{}: {}", options.names[actor.value()], reason)};
  }

  void on_exit(const ChildExit& exit) {
    if (leaving)
      return;
    std::string reason = fmt::format("{}: {}", exit.name, exit.status);
    if (!exit.log_tail.empty())
      reason += fmt::format("; {}", last_line(exit.log_tail));
    if (!lost)
      lost = Error{ErrorCode::Unavailable, std::move(reason)};
  }

  /// Runs the loop until `done`, a loss, or the end of patience; names who is waited for.
  template <class Done>
  Status wait(Duration patience, Done&& done, bool Slot::*still) {
    const Time deadline = clock.now() + patience;
    while (!done()) {
      if (lost)
        return *lost;
      io.run_one_for(std::chrono::milliseconds(200));
      if (done() || clock.now() < deadline)
        continue;
      for (std::uint32_t i = 0; i < slots.size(); ++i) {
        if (slots[i].*still) {
          lose(ActorId(i), fmt::format("no answer within {} of wall time", to_text(patience)));
          break;
        }
      }
    }
    return {};
  }

  // --- Messages

  void on_message(actors::Received received) {
    const actors::PeerId peer = received.peer;
    auto message = actors::IncomingMessage::parse(std::move(received));
    if (!message)
      return router->drop(peer, message.error().context);
    if (message->is<actors::Hello>())
      return on_hello(peer, *message);
    const auto actor = connections.actor_of(peer);
    if (!actor)
      return router->drop(peer, "not registered");
    connections.heard(*actor, clock.now());
    if (Status status = on_actor_message(*actor, *message); !status)
      lose(*actor, "sent a message that cannot be: " + status.error().context);
  }

  void on_hello(const actors::PeerId& peer, const actors::IncomingMessage& message) {
    const auto hello = message.decode<actors::Hello>();
    if (!hello)
      return router->drop(peer, hello.error().context);
    const auto actor = connections.admit(peer, *hello, clock.now());
    actors::OutgoingMessage answer;
    if (actor) {
      actors::Welcome welcome;
      welcome.actor = *actor;
      welcome.role = slots[actor->value()].role;
      welcome.epoch_monotonic_ns = clock.epoch_monotonic_ns();
      welcome.heartbeat = options.transport.heartbeat;
      welcome.heartbeat_timeout = options.transport.heartbeat_timeout;
      answer = actors::outgoing(welcome);
    } else {
      log.warning("worker refused", {{"name", hello->name}, {"why", actor.error().context}});
      answer = actors::outgoing(actors::Reject{actor.error().context});
    }
    const Status done = router->send(peer, encode_head(answer, ++sent), std::move(answer.body));
    if (!done)
      log.warning("no answer to a worker", {{"why", done.error().context}});
  }

  Status on_actor_message(ActorId actor, const actors::IncomingMessage& m) {
    Slot& slot = slots[actor.value()];
    if (m.is<actors::Heartbeat>())
      return {};
    if (m.is<actors::Failed>()) {
      TEMPER_TRY(const auto failed, m.decode<actors::Failed>());
      lose(actor, failed.reason);
      return {};
    }
    if (m.is<actors::Ready>() && !slot.connected) {  // of the worker; the actor's own comes later
      slot.connected = true;
      ++connected;
      return {};
    }
    if (m.is<actors::Advanced>()) {
      TEMPER_TRY(const auto advanced, m.decode<actors::Advanced>());
      if (!slot.owes)
        return invalid_input("an answer to nothing");
      slot.next = advanced.next;
      slot.owes = false;
      --owed;
      return {};
    }
    slot.said.push_back({actor, m});
    return {};
  }

  void send(ActorId actor, actors::OutgoingMessage message) {
    const actors::PeerId* peer = connections.peer_of(actor);
    if (peer == nullptr)
      return;  // its loss is known or on its way
    const Status done = router->send(*peer, encode_head(message, ++sent), std::move(message.body));
    if (!done)
      lose(actor, done.error().context);
  }

  // --- Processes

  /// Starts what was launched, `actors_per_worker` to a process, and waits for them.
  Status start_workers() {
    const auto each = static_cast<std::size_t>(options.transport.actors_per_worker);
    for (std::size_t begin = 0; begin < to_start.size(); begin += each) {
      const std::size_t end = std::min(to_start.size(), begin + each);
      TEMPER_TRY_STATUS(start_worker(std::span(to_start).subspan(begin, end - begin)));
    }
    started += to_start.size();
    to_start.clear();
    return wait(
        kStart, [this] { return connected == started; }, &Slot::connected);
  }

  Status start_worker(std::span<const ActorId> actors) {
    ChildSpec spec;
    spec.name = fmt::format("worker-{}", workers++);
    spec.command = {options.worker.string(),
                    "actor",
                    "--simulated",
                    "--connect",
                    router->endpoint(),
                    "--parent",
                    std::to_string(::getpid())};
    for (const ActorId actor : actors) {
      spec.command.insert(spec.command.end(), {"--name", options.names[actor.value()]});
    }
    spec.environment = {{"TEMPER_SECRET", secret}};
    spec.log = options.log_of(spec.name);
    TEMPER_TRY(const std::int64_t pid, supervisor->start(spec));
    for (const ActorId actor : actors)
      connections.expect(actor, pid);
    return {};
  }

  /// Sends what was delivered and the time, and waits for every answer.
  Status exchange(std::span<const ActorId> actors, Time now, std::optional<actors::Stop> stop) {
    for (const ActorId actor : actors) {
      Slot& slot = slots[actor.value()];
      for (actors::OutgoingMessage& message : slot.outbox)
        send(actor, std::move(message));
      slot.outbox.clear();
      slot.owes = true;
      ++owed;
      send(actor, actors::outgoing(actors::Advance{now}));
    }
    TEMPER_TRY_STATUS(wait(
        kAnswer, [this] { return owed == 0; }, &Slot::owes));
    if (!stop)
      return {};
    for (const ActorId actor : actors) {
      slots[actor.value()].owes = true;
      ++owed;
      send(actor, actors::outgoing(*stop));
    }
    return wait(
        kAnswer, [this] { return owed == 0; }, &Slot::owes);
  }

  void collect(std::span<const ActorId> actors, std::vector<Arrival>& arrivals) {
    for (const ActorId actor : actors) {
      std::vector<Arrival>& said = slots[actor.value()].said;
      std::move(said.begin(), said.end(), std::back_inserter(arrivals));
      said.clear();
    }
  }

  const RehearsalOptions options;
  const Log log;
  const std::string secret;
  const RealClock clock{};
  asio::io_context io{1};
  asio::steady_timer timer{io};
  Connections connections;
  std::unique_ptr<actors::AsioRouter> router;
  std::unique_ptr<Supervisor> supervisor;
  std::vector<Slot> slots;
  std::vector<ActorId> to_start;
  std::size_t started = 0, connected = 0, owed = 0, workers = 0;
  std::uint64_t sent = 0;
  std::optional<Error> lost;
  bool leaving = false;
};

RehearsalHost::RehearsalHost(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RehearsalHost::~RehearsalHost() = default;

Result<std::unique_ptr<RehearsalHost>> RehearsalHost::create(RehearsalOptions options,
                                                             const Log& log) {
  auto impl = std::make_unique<Impl>(std::move(options), log);
  TEMPER_TRY_STATUS(impl->open());
  return std::unique_ptr<RehearsalHost>(new RehearsalHost(std::move(impl)));
}

Status RehearsalHost::launch(ActorId actor, const actors::RoleConfig& role) {
  impl_->slots.at(actor.value()).role = role;
  impl_->to_start.push_back(actor);
  return {};
}

void RehearsalHost::deliver(ActorId actor, actors::OutgoingMessage message) {
  impl_->slots.at(actor.value()).outbox.push_back(std::move(message));
}

Status RehearsalHost::advance(std::span<const ActorId> actors,
                              Time now,
                              std::vector<Arrival>& arrivals) {
  if (!impl_->to_start.empty())
    TEMPER_TRY_STATUS(impl_->start_workers());
  const Status status = impl_->exchange(actors, now, std::nullopt);
  impl_->collect(actors, arrivals);
  return status;
}

std::optional<Time> RehearsalHost::next_event(ActorId actor) const {
  return impl_->slots.at(actor.value()).next;
}

void RehearsalHost::finish(std::span<const ActorId> actors,
                           Time now,
                           std::vector<Arrival>& arrivals) {
  if (!impl_->lost) {
    impl_->leaving = true;  // from here on a worker may end
    static_cast<void>(impl_->exchange(actors, now, actors::Stop{}));
    impl_->collect(actors, arrivals);
    const Time deadline = impl_->clock.now() + kGoodbye;
    while (impl_->supervisor->running() > 0 && impl_->clock.now() < deadline)
      impl_->io.run_one_for(std::chrono::milliseconds(200));
  }
  impl_->leaving = true;
  impl_->supervisor.reset();  // what is still there ends now
}

}  // namespace temper::orchestrator
