#include "orchestrator/run/virtual/rehearsal_host.hpp"

#include "actors/protocol/lifecycle.hpp"
#include "actors/protocol/virtual_time.hpp"
#include "orchestrator/run/processes/worker_pool.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

using namespace std::chrono_literals;

// Wall time means nothing to a run in virtual time: these are long enough for a machine that is
// busy with something else.
constexpr Duration kStart = 60s;             ///< Until every worker is connected; and
constexpr Duration kStartEach = 1s;          ///< for each of them.
constexpr Duration kLeastHeartbeat = 1s;     ///< Hundreds of workers are to be greeted.
constexpr Duration kAnswerOfAll = 120s;      ///< Until every worker has answered one step.
constexpr Duration kRehearsalGoodbye = 10s;  ///< Until every worker has ended by itself.

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
    actors::Advance request;
    bool connected = false;
    bool owes = false;  ///< An answer to time.advance.
  };

  explicit Impl(RehearsalOptions o) : options(std::move(o)), slots(options.names.size()) {}

  Status open(boost::asio::io_context& io, const Log& log) {
    WorkerPoolOptions workers_of;
    workers_of.names = worker_names(options.names.size());
    workers_of.worker = options.worker;
    workers_of.log_of = options.log_of;
    workers_of.transport = options.transport;
    workers_of.transport.heartbeat = std::max(options.transport.heartbeat, kLeastHeartbeat);
    workers_of.arguments = {"--simulated"};
    const auto on_message = [this](WorkerId worker, const actors::IncomingMessage& m) {
      return on_worker_message(worker.value(), m);
    };
    TEMPER_TRY(pool, WorkerPool::create(io, std::move(workers_of), on_message, log));
    return {};
  }

  static WorkerId id_of(std::size_t worker) { return WorkerId(static_cast<WorkerId::rep>(worker)); }

  /// Until nothing is `missing`; a worker of which `still` holds is waited for.
  template <class Still>
  Status wait(Duration patience, const std::size_t& missing, Still&& still) {
    return pool->wait(
        {patience},
        [&] { return missing == 0; },
        [&] {
          const auto late = std::find_if(workers.begin(), workers.end(), still);
          return id_of(static_cast<std::size_t>(late - workers.begin()));
        });
  }

  Status on_worker_message(std::size_t index, const actors::IncomingMessage& m) {
    Worker& worker = workers[index];
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
    TEMPER_TRY_STATUS(pool->start(id_of(index)));
    for (const ActorId actor : actors)
      slots[actor.value()].worker = index;
    workers.emplace_back();
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
      pool->send(id_of(worker), actors::outgoing(workers[worker].request));
    asked.clear();
    return wait(kAnswerOfAll, owed, [](const Worker& w) { return w.owes; });
  }

  /// Collects what they said, up to the first failure.
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

  const RehearsalOptions options;
  std::unique_ptr<WorkerPool> pool;
  std::vector<Slot> slots;
  std::vector<Worker> workers;
  std::vector<ActorId> to_start;
  std::vector<std::size_t> asked;  ///< Workers of the exchange that is being made.
  std::size_t starting = 0, owed = 0;
};

RehearsalHost::RehearsalHost(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
RehearsalHost::~RehearsalHost() = default;

Result<std::unique_ptr<RehearsalHost>> RehearsalHost::create(boost::asio::io_context& io,
                                                             RehearsalOptions options,
                                                             const Log& log) {
  auto impl = std::make_unique<Impl>(std::move(options));
  TEMPER_TRY_STATUS(impl->open(io, log));
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
  const Status collected = impl_->collect(actors, arrivals);
  return exchanged ? collected : exchanged;
}

std::optional<Time> RehearsalHost::next_event(ActorId actor) const {
  return impl_->slots.at(actor.value()).next;
}

void RehearsalHost::finish(std::span<const ActorId> actors,
                           Time now,
                           std::vector<Arrival>& arrivals) {
  const bool lost = impl_->pool->has_loss() || !impl_->to_start.empty();  // or never started
  if (!lost) {
    impl_->pool->let_end();
    static_cast<void>(impl_->exchange(actors, now, actors::Advance::Then::Stop));
    static_cast<void>(impl_->collect(actors, arrivals));
    for (std::size_t i = 0; i < impl_->workers.size(); ++i)
      impl_->pool->send(Impl::id_of(i), actors::outgoing(actors::Stop{}));
  }
  impl_->pool->leave(lost ? Duration(0) : kRehearsalGoodbye);
}

}  // namespace temper::orchestrator
