#include "orchestrator/virtual/rehearsal_host.hpp"

#include "actors/asio/asio.hpp"
#include "actors/asio/router.hpp"
#include "actors/protocol/lifecycle.hpp"
#include "actors/protocol/virtual_time.hpp"
#include "core/clock.hpp"
#include "orchestrator/live/connections.hpp"
#include "orchestrator/live/launch.hpp"
#include "orchestrator/live/supervisor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

// Wall time means nothing to a run in virtual time: these are long enough for a machine that is
// busy with something else. A worker that ends is known at once.
constexpr Duration kStart = 60s;          ///< Until every worker is connected; and
constexpr Duration kStartEach = 1s;       ///< for each of them.
constexpr Duration kLeastHeartbeat = 1s;  ///< Hundreds of workers are to be greeted.
constexpr Duration kLeastSilence = 60s;   ///< Before a worker is given up.
constexpr Duration kAnswer = 120s;        ///< Until every worker has answered one step.
constexpr auto kLastWords = 1s;           ///< Between the end of a connection and of its process.
constexpr Duration kGoodbye = 10s;        ///< Until every worker has ended by itself.

using WorkerId = ActorId;  ///< Of a connection: here each is a worker's.

std::vector<std::string> worker_names(std::size_t most) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < most; ++i)
    names.push_back(fmt::format("worker-{}", i));
  return names;
}

}  // namespace

struct RehearsalHost::Impl {
  struct Slot {
    std::size_t worker = 0;
    std::optional<actors::RoleConfig> role;  ///< Until it was sent.
    std::vector<actors::Carried> outbox;
    actors::Advanced::Act said;  ///< In answer to the last step.
    std::optional<Time> next;
  };
  struct Worker {
    std::string name;
    actors::Advance request;
    bool connected = false;
    bool owes = false;  ///< An answer to time.advance.
  };

  Impl(asio::io_context& loop, RehearsalOptions o, const Log& l)
      : io(loop),
        options(std::move(o)),
        log(l),
        secret(random_secret()),
        heartbeat(std::max(options.transport.heartbeat, kLeastHeartbeat)),
        silence(std::max(options.transport.heartbeat_timeout, kLeastSilence)),
        connections(worker_names(options.names.size()), secret),
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
    for (const WorkerId worker : connections.silent_since(clock.now() - silence))
      lose(worker.value(), fmt::format("silent for {}", to_text(silence)));
    for (std::size_t i = 0; i < workers.size(); ++i)
      send(i, actors::outgoing(actors::Heartbeat{}));
    timer.expires_after(heartbeat);
    timer.async_wait([this, weak = std::weak_ptr<bool>(alive)](const auto& error) {
      if (!error && !weak.expired())
        tick();
    });
  }

  void lose(std::size_t worker, const std::string& reason) {
    if (!lost)
      lost = Error{ErrorCode::Unavailable, fmt::format("{}: {}", workers[worker].name, reason)};
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

  /// Runs the loop until nothing is `missing`, a loss, or the end of patience; names a worker of
  /// which `still` says that it is waited for.
  template <class Still>
  Status wait(Duration patience, const std::size_t& missing, Still&& still) {
    const Time deadline = clock.now() + patience;
    while (missing > 0) {
      if (lost)
        return *lost;
      io.run_one_for(200ms);
      if (missing == 0 || clock.now() < deadline)
        continue;
      const auto late = std::find_if(workers.begin(), workers.end(), still);
      lose(static_cast<std::size_t>(late - workers.begin()),
           fmt::format("no answer within {} of wall time", to_text(patience)));
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
    const auto worker = connections.actor_of(peer);
    if (!worker)
      return router->drop(peer, "not registered");
    connections.heard(*worker, clock.now());
    if (Status status = on_worker_message(worker->value(), *message); !status)
      lose(worker->value(), "sent a message that cannot be: " + status.error().context);
  }

  void on_hello(const actors::PeerId& peer, const actors::IncomingMessage& message) {
    const auto hello = message.decode<actors::Hello>();
    if (!hello)
      return router->drop(peer, hello.error().context);
    const auto worker = connections.admit(peer, *hello, clock.now());
    actors::OutgoingMessage answer;
    if (worker) {
      actors::Welcome welcome;  // its actors' roles come with the first step
      welcome.actor = *worker;
      welcome.epoch_monotonic_ns = clock.epoch_monotonic_ns();
      welcome.heartbeat = heartbeat;
      welcome.heartbeat_timeout = silence;
      answer = actors::outgoing(welcome);
    } else {
      log.warning("worker refused", {{"name", hello->name}, {"why", worker.error().context}});
      answer = actors::outgoing(actors::Reject{worker.error().context});
    }
    const Status done = router->send(peer, encode_head(answer, ++sent), std::move(answer.body));
    if (!done)
      log.warning("no answer to a worker", {{"why", done.error().context}});
  }

  Status on_worker_message(std::size_t index, const actors::IncomingMessage& m) {
    Worker& worker = workers[index];
    if (m.is<actors::Heartbeat>())
      return {};
    if (m.is<actors::Failed>()) {
      TEMPER_TRY(const auto failed, m.decode<actors::Failed>());
      lose(index, failed.reason);
      return {};
    }
    if (m.is<actors::Ready>() && !worker.connected) {
      worker.connected = true;
      --starting;
      return {};
    }
    TEMPER_TRY(auto answer, m.decode<actors::Advanced>());
    const auto& acts = worker.request.acts;
    const bool whole = answer.acts.size() == acts.size();
    const bool failed = !answer.acts.empty() && !answer.acts.back().error.empty();
    if (!worker.owes || answer.acts.size() > acts.size() || !(whole || failed))
      return invalid_input("an answer to nothing that was asked");
    for (std::size_t i = 0; i < answer.acts.size(); ++i)
      slots[acts[i].actor.value()].said = std::move(answer.acts[i]);
    worker.owes = false;
    --owed;
    return {};
  }

  void send(std::size_t worker, actors::OutgoingMessage message) {
    const actors::PeerId* peer = connections.peer_of(WorkerId(static_cast<WorkerId::rep>(worker)));
    if (peer == nullptr)
      return;  // it is not there yet, or its loss is known or on its way
    const Status done = router->send(*peer, encode_head(message, ++sent), std::move(message.body));
    if (!done)
      lose_soon(worker, done.error().context);
  }

  /// A peer is gone a moment before it is known how its process ended, which says more.
  void lose_soon(std::size_t worker, std::string reason) {
    const auto pause = std::make_shared<asio::steady_timer>(io, kLastWords);
    pause->async_wait(
        [this, pause, worker, reason, weak = std::weak_ptr<bool>(alive)](const auto&) {
          if (!weak.expired() && !leaving)
            lose(worker, reason);
        });
  }

  // --- Processes

  /// Starts what was launched, `actors_per_worker` to a process, and waits for them.
  Status start_workers() {
    const auto each = static_cast<std::size_t>(options.transport.actors_per_worker);
    for (std::size_t begin = 0; begin < to_start.size(); begin += each) {
      const std::size_t end = std::min(to_start.size(), begin + each);
      TEMPER_TRY_STATUS(start_worker(std::span(to_start).subspan(begin, end - begin)));
    }
    to_start.clear();
    return wait(kStart + kStartEach * static_cast<std::int64_t>(starting),
                starting,
                [](const Worker& w) { return !w.connected; });
  }

  Status start_worker(std::span<const ActorId> actors) {
    const std::size_t index = workers.size();
    ChildSpec spec;
    spec.name = fmt::format("worker-{}", index);
    spec.command = {options.worker.string(),
                    "actor",
                    "--simulated",
                    "--connect",
                    router->endpoint(),
                    "--parent",
                    std::to_string(::getpid()),
                    "--name",
                    spec.name};
    spec.environment = {{"TEMPER_SECRET", secret}};
    spec.log = options.log_of(spec.name);
    TEMPER_TRY(const std::int64_t pid, supervisor->start(spec));
    connections.expect(WorkerId(static_cast<WorkerId::rep>(index)), pid);
    for (const ActorId actor : actors)
      slots[actor.value()].worker = index;
    workers.push_back({spec.name, {}, false, false});
    ++starting;
    return {};
  }

  /// Sends what was delivered and the time, one message to each worker concerned, and waits for
  /// every answer.
  Status exchange(std::span<const ActorId> actors, Time now, actors::Advance::Then then) {
    for (const ActorId actor : actors) {
      Slot& slot = slots[actor.value()];
      Worker& worker = workers[slot.worker];
      if (!std::exchange(worker.owes, true)) {
        ++owed;
        worker.request = {now, {}, then};
        asked.push_back(slot.worker);
      }
      slot.said = {};
      worker.request.acts.push_back(
          {actor, std::exchange(slot.role, std::nullopt), std::exchange(slot.outbox, {})});
    }
    for (const std::size_t worker : asked)
      send(worker, actors::outgoing(workers[worker].request));
    asked.clear();
    return wait(kAnswer, owed, [](const Worker& w) { return w.owes; });
  }

  /// What they said, up to one that failed.
  Status collect(std::span<const ActorId> actors, std::vector<Arrival>& arrivals) {
    for (const ActorId actor : actors) {
      Slot& slot = slots[actor.value()];
      for (actors::Carried& m : slot.said.said) {
        arrivals.push_back({actor,
                            actors::IncomingMessage::from(
                                {.tag = m.tag, .version = m.version, .body = std::move(m.body)})});
      }
      slot.next = slot.said.next;
      if (!slot.said.error.empty()) {
        return Error{ErrorCode::Unavailable,
                     fmt::format("{}: {}", options.names[actor.value()], slot.said.error)};
      }
    }
    return {};
  }

  asio::io_context& io;
  const RehearsalOptions options;
  const Log log;
  const std::string secret;
  const Duration heartbeat;
  const Duration silence;
  const RealClock clock{};
  const std::shared_ptr<bool> alive = std::make_shared<bool>(true);  ///< For what io still holds.
  asio::steady_timer timer{io};
  Connections connections;
  std::unique_ptr<actors::AsioRouter> router;
  std::unique_ptr<Supervisor> supervisor;
  std::vector<Slot> slots;
  std::vector<Worker> workers;
  std::vector<ActorId> to_start;
  std::vector<std::size_t> asked;  ///< Workers of the exchange that is being made.
  std::size_t starting = 0, owed = 0;
  std::uint64_t sent = 0;
  std::optional<Error> lost;
  bool leaving = false;
};

RehearsalHost::RehearsalHost(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RehearsalHost::~RehearsalHost() = default;

Result<std::unique_ptr<RehearsalHost>> RehearsalHost::create(boost::asio::io_context& io,
                                                             RehearsalOptions options,
                                                             const Log& log) {
  auto impl = std::make_unique<Impl>(io, std::move(options), log);
  TEMPER_TRY_STATUS(impl->open());
  return std::unique_ptr<RehearsalHost>(new RehearsalHost(std::move(impl)));
}

Status RehearsalHost::launch(ActorId actor, const actors::RoleConfig& role) {
  impl_->slots.at(actor.value()).role = role;
  impl_->to_start.push_back(actor);
  return {};
}

void RehearsalHost::deliver(ActorId actor, actors::OutgoingMessage message) {
  impl_->slots.at(actor.value())
      .outbox.push_back({message.tag, message.version, std::move(message.body)});
}

Status RehearsalHost::advance(std::span<const ActorId> actors,
                              Time now,
                              std::vector<Arrival>& arrivals) {
  if (!impl_->to_start.empty())
    TEMPER_TRY_STATUS(impl_->start_workers());
  const Status exchanged = impl_->exchange(actors, now, actors::Advance::Then::GoOn);
  Status collected = impl_->collect(actors, arrivals);
  return exchanged ? std::move(collected) : exchanged;
}

std::optional<Time> RehearsalHost::next_event(ActorId actor) const {
  return impl_->slots.at(actor.value()).next;
}

void RehearsalHost::finish(std::span<const ActorId> actors,
                           Time now,
                           std::vector<Arrival>& arrivals) {
  if (!impl_->lost) {
    impl_->leaving = true;  // from here on a worker may end
    static_cast<void>(impl_->exchange(actors, now, actors::Advance::Then::Stop));
    static_cast<void>(impl_->collect(actors, arrivals));
    for (std::size_t i = 0; i < impl_->workers.size(); ++i)
      impl_->send(i, actors::outgoing(actors::Stop{}));
    const Time deadline = impl_->clock.now() + kGoodbye;
    while (impl_->supervisor->running() > 0 && impl_->clock.now() < deadline)
      impl_->io.run_one_for(200ms);
  }
  impl_->leaving = true;
  impl_->supervisor.reset();  // what is still there ends now
}

}  // namespace temper::orchestrator
