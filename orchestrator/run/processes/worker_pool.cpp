#include "orchestrator/run/processes/worker_pool.hpp"

#include "actors/asio/asio.hpp"
#include "actors/asio/router.hpp"
#include "actors/border/values.hpp"
#include "actors/protocol/lifecycle.hpp"
#include "core/clock.hpp"
#include "orchestrator/run/processes/connections.hpp"
#include "orchestrator/run/processes/exit_reason.hpp"
#include "orchestrator/run/processes/launch.hpp"
#include "orchestrator/run/processes/supervisor.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

/// Wall time means nothing to a run in virtual time: long enough for a machine that is busy with
/// something else. A worker that ends is known at once.
constexpr Duration kLeastSilence = 60s;
constexpr auto kSlice = std::chrono::milliseconds(200);  ///< Between two looks at the clock.
constexpr auto kLastWords = 100ms;  ///< Between the end of a worker and its last messages.
constexpr auto kProcessEnd = 1s;    ///< Between the end of a connection and of its process.

}  // namespace

struct WorkerPool::Impl : std::enable_shared_from_this<WorkerPool::Impl> {
  Impl(asio::io_context& loop,
       WorkerPoolOptions o,
       OnMessage callback,
       LaunchCredentials handed,
       const Log& l)
      : io(loop),
        options(std::move(o)),
        on_other(std::move(callback)),
        log(l),
        credentials(std::move(handed)),
        silence(std::max(options.transport.heartbeat_timeout, kLeastSilence)),
        connections(options.names, credentials.secret()),
        roles(options.names.size()) {}

  Status open() {
    TEMPER_TRY(
        auto socket,
        actors::RouterSocket::bind(
            socket_address(options.transport), options.transport.limits, log, credentials.key()));
    actors::AsioRouter::Events events;
    events.on_message = [this](const auto& peer, const auto& m) { on_message(peer, m); };
    events.on_broken = [this](const auto& peer, const auto& why) { on_broken(peer, why); };
    TEMPER_TRY(router,
               actors::AsioRouter::create(
                   io,
                   std::move(socket),
                   {options.transport.heartbeat, options.transport.limits.max_message},
                   std::move(events),
                   log));
    supervisor = std::make_unique<Supervisor>(io, [this](const ChildExit& e) { on_exit(e); });
    tick();
    return {};
  }

  // --- Watching

  void tick() {
    const Time now = clock.now();
    router->turns();
    for (const auto& [peer, actor] : connections.peers())
      connections.heard(actor, now - router->silence_of(peer));
    for (const ActorId actor : connections.silent_since(now - silence))
      lose(actor, fmt::format("silent for {}", to_text(silence)));
    timer.expires_after(options.transport.heartbeat);
    timer.async_wait([weak = weak_from_this()](const auto& error) {
      const auto self = weak.lock();
      if (self && !error)
        self->tick();
    });
  }

  void lose(ActorId actor, const std::string& reason) {
    if (lost)
      return;
    lost = Error{ErrorCode::Unavailable,
                 fmt::format("{}: {}", options.names[actor.value()], actors::bounded_text(reason))};
  }

  void on_exit(const ChildExit& exit) {
    if (leaving)
      return;
    // Its last message says more than its end, and may still be on its way.
    lose_after(kLastWords, fmt::format("{}: {}", exit.name, exit_reason(exit)));
  }

  void lose_after(Duration pause, std::string reason) {
    const auto wait = std::make_shared<asio::steady_timer>(io, pause);
    wait->async_wait([weak = weak_from_this(), wait, reason = std::move(reason)](const auto&) {
      const auto self = weak.lock();
      if (self && !self->lost && !self->leaving)
        self->lost = Error{ErrorCode::Unavailable, reason};
    });
  }

  // --- Messages

  void on_message(const actors::PeerId& peer, const actors::IncomingMessage& message) {
    if (message.is<actors::Hello>())
      return on_hello(peer, message);
    const auto actor = connections.actor_of(peer);
    if (!actor)
      return router->drop(peer, "not registered");
    heard = clock.now();
    const Status status = on_actor_message(*actor, message);
    if (status)
      return;
    // The memory that a message refers to ends with its sender.
    if (status.error().code == ErrorCode::Unavailable)
      return on_broken(peer, status.error().context);
    lose(*actor, "protocol violation: " + status.error().context);
  }

  /// How its process ended says more, and is known in a moment.
  void on_broken(const actors::PeerId& peer, const std::string& why) {
    if (const auto actor = connections.actor_of(peer))
      lose_after(kProcessEnd, fmt::format("{}: {}", options.names[actor->value()], why));
  }

  Status on_actor_message(ActorId actor, const actors::IncomingMessage& message) {
    if (!message.is<actors::Failed>())
      return on_other(actor, message);
    TEMPER_TRY(const auto failed, message.decode<actors::Failed>());
    lose(actor, failed.reason);
    return {};
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
      welcome.role = roles[actor->value()];
      welcome.epoch_monotonic_ns = clock.epoch_monotonic_ns();
      welcome.heartbeat = options.transport.heartbeat;
      welcome.heartbeat_timeout = silence;
      answer = actors::outgoing(welcome);
      router->admit(peer);
    } else {
      if (connections.note_refusal()) {
        log.warning("worker refused",
                    {{"name", hello->name},
                     {"why", actor.error().context},
                     {"refused_so_far", connections.refused()}});
      }
      if (!connections.has_secret(*hello))
        return;
      answer = actors::outgoing(actors::Reject{actor.error().context});
    }
    router->send(peer, std::move(answer));
  }

  void send(ActorId actor, actors::OutgoingMessage message) {
    const actors::PeerId* peer = connections.peer_of(actor);
    if (peer != nullptr)
      router->send(*peer, std::move(message));
  }

  asio::io_context& io;
  const WorkerPoolOptions options;
  const OnMessage on_other;
  const Log log;
  LaunchCredentials credentials;
  const Duration silence;
  const RealClock clock{};
  asio::steady_timer timer{io};
  Connections connections;
  std::vector<actors::RoleConfig> roles;
  std::unique_ptr<actors::AsioRouter> router;
  std::unique_ptr<Supervisor> supervisor;
  Time heard{};  ///< When any actor last said something.
  std::optional<Error> lost;
  bool leaving = false;
};

WorkerPool::WorkerPool(std::shared_ptr<Impl> impl) : impl_(std::move(impl)) {}

WorkerPool::~WorkerPool() {
  impl_->leaving = true;
}

Result<std::unique_ptr<WorkerPool>> WorkerPool::create(asio::io_context& io,
                                                       WorkerPoolOptions options,
                                                       OnMessage on_message,
                                                       const Log& log) {
  TEMPER_TRY(LaunchCredentials credentials, LaunchCredentials::create(options.transport));
  auto impl = std::make_shared<Impl>(
      io, std::move(options), std::move(on_message), std::move(credentials), log);
  TEMPER_TRY_STATUS(impl->open());
  return std::unique_ptr<WorkerPool>(new WorkerPool(std::move(impl)));
}

void WorkerPool::assign(ActorId actor, actors::RoleConfig role) {
  impl_->roles.at(actor.value()) = std::move(role);
}

Status WorkerPool::start(ActorId actor) {
  ChildSpec spec;
  spec.name = name(actor);
  TEMPER_TRY(const auto credentials, impl_->credentials.issue(spec.name, *impl_->router));
  spec.command = {impl_->options.worker.string(),
                  "actor",
                  "--connect",
                  impl_->router->endpoint(),
                  "--parent",
                  std::to_string(::getpid()),
                  "--name",
                  spec.name,
                  "--credentials",
                  credentials.string()};
  spec.command.insert(
      spec.command.end(), impl_->options.arguments.begin(), impl_->options.arguments.end());
  spec.environment = {{"OMP_WAIT_POLICY", "passive"}};
  spec.log = impl_->options.log_of(spec.name);
  TEMPER_TRY(const std::int64_t pid, impl_->supervisor->start(spec));
  impl_->connections.expect(actor, pid);
  return {};
}

void WorkerPool::send(ActorId actor, actors::OutgoingMessage message) {
  impl_->send(actor, std::move(message));
}

void WorkerPool::lose(ActorId actor, const std::string& reason) {
  impl_->lose(actor, reason);
}

Status WorkerPool::wait(Patience patience,
                        const std::function<bool()>& done,
                        const std::function<ActorId()>& owing) {
  const Time began = impl_->clock.now();
  impl_->heard = began;
  while (!done()) {
    if (impl_->lost)
      return *impl_->lost;
    impl_->io.run_one_for(kSlice);
    const Time since = patience.since == Patience::Since::Begin ? began : impl_->heard;
    if (!done() && impl_->clock.now() >= since + patience.length)
      lose(owing(), fmt::format("no answer within {} of wall time", to_text(patience.length)));
  }
  return {};
}

Status WorkerPool::serve() {
  impl_->io.poll();
  if (impl_->lost)
    return *impl_->lost;
  return {};
}

void WorkerPool::let_end() {
  impl_->leaving = true;
}

void WorkerPool::leave(Duration grace) {
  let_end();
  for (std::uint32_t i = 0; i < impl_->roles.size(); ++i) {
    if (impl_->connections.peer_of(ActorId(i)) == nullptr)
      impl_->supervisor->kill(name(ActorId(i)));  // nobody there to be asked
  }
  const Time deadline = impl_->clock.now() + grace;
  while (impl_->supervisor->running() > 0 && impl_->clock.now() < deadline)
    impl_->io.run_one_for(kSlice);
  impl_->supervisor.reset();
}

bool WorkerPool::has_loss() const {
  return impl_->lost.has_value();
}

const std::string& WorkerPool::name(ActorId actor) const {
  return impl_->options.names.at(actor.value());
}

}  // namespace temper::orchestrator
