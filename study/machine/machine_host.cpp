#include "study/machine/machine_host.hpp"

#include "actors/protocol/counted.hpp"

#include <algorithm>
#include <deque>
#include <utility>

namespace temper::study {
namespace {

template <class M>
std::optional<std::size_t> items_in(const actors::IncomingMessage& m) {
  if (!m.is<M>())
    return std::nullopt;
  const auto message = m.decode<M>();
  return message ? message->items.size() : 0;
}

/// Number of responses in a message.
std::size_t responses_in(const actors::IncomingMessage& m) {
  for (const auto& n : {items_in<actors::CountedGenerate>(m),
                        items_in<actors::CountedGenerated>(m),
                        items_in<actors::CountedJudge>(m),
                        items_in<actors::Judged>(m),
                        items_in<actors::CountedTrain>(m),
                        items_in<actors::CountedPrepare>(m)}) {
    if (n)
      return *n;
  }
  if (m.is<actors::CountedScore>()) {
    const auto score = m.decode<actors::CountedScore>();
    return score ? score->lengths.size() : 0;
  }
  return 0;
}

}  // namespace

struct MachineHost::Process {
  ActorId id;
  std::unique_ptr<MachineActor> actor;  ///< Null for the orchestrator.
  std::vector<std::uint32_t> cores;
  MessageTimes messages;
  bool ready = false;
  bool main_busy = false;
  bool second_busy = false;
  std::deque<Letter> inbox;
  std::deque<Letter> outbox;  ///< Messages to be written.
  std::map<LeaseId, std::size_t>
      asked;  ///< Responses per lease, for leases whose replies do not state the number.
};

MachineHost::MachineHost(std::unique_ptr<MachineWorld> world,
                         std::vector<orchestrator::ActorSpec> slots)
    : world_(std::move(world)),
      slots_(std::move(slots)),
      cores_(static_cast<std::uint32_t>(std::max(1, world_->calibration.cores))),
      processes_(slots_.size()),
      orchestrator_(std::make_unique<Process>()) {
  orchestrator_->messages = world_->calibration.processes.orchestrator;
  orchestrator_->ready = true;
}

MachineHost::~MachineHost() = default;

Status MachineHost::launch(ActorId actor, const actors::RoleConfig&) {
  const orchestrator::ActorSpec& slot = slots_.at(actor.value());
  auto process = std::make_unique<Process>();
  process->id = actor;
  process->actor = make_machine_actor(*world_, slot);
  const ProcessTimes& times = world_->calibration.processes;
  switch (slot.role) {
    case actors::RoleKind::Rollout:
      process->messages = times.rollout;
      break;
    case actors::RoleKind::Reference:
      process->messages = times.reference;
      break;
    case actors::RoleKind::Reward:
      process->messages = times.reward;
      break;
    case actors::RoleKind::Trainer:
      process->messages = times.trainer;
      break;
  }
  Process& p = *process;
  processes_[actor.value()] = std::move(process);
  // It is pinned once it knows its role, at the end of its start.
  start(p,
        ThreadKind::Main,
        {times.start_us * kMicro, world_->calibration.slowdowns.other, {}, {}},
        [this, &p, &slot] {
          for (const CardId card : slot.cards)
            p.cores.push_back(card.value());
          p.ready = true;
          if (slot.role != actors::RoleKind::Trainer)  // TrainerReady reports it.
            send(p, actors::outgoing_value(actors::Ready{}));
          actors::Outbox out([&](actors::OutgoingMessage m) { send(p, std::move(m)); }, form());
          p.actor->start(out);
        });
  return {};
}

void MachineHost::deliver(ActorId actor, actors::OutgoingMessage message) {
  Letter letter{actor, actors::IncomingMessage::from(std::move(message)), 0};
  letter.responses = responses_in(letter.message);
  if (letter.message.is<actors::CountedScore>()) {
    if (const auto score = letter.message.decode<actors::CountedScore>())
      processes_[actor.value()]->asked[score->lease] = letter.responses;
  }
  orchestrator_->outbox.push_back(std::move(letter));
}

Status MachineHost::advance(std::span<const ActorId>, Time now, std::vector<Arrival>& arrivals) {
  advance_to(now);
  for (Arrival& arrival : std::exchange(arrivals_, {}))
    arrivals.push_back(std::move(arrival));
  return std::exchange(status_, Status());
}

std::optional<Time> MachineHost::next_event(ActorId) const {
  std::optional<Time> next = cores_.next_end();
  const auto consider = [&](std::optional<Time> t) {
    if (t)
      next = next ? std::min(*next, *t) : *t;
  };
  consider(under_way_.next_due());
  for (const auto& process : processes_) {
    if (process != nullptr && process->ready && !process->main_busy)
      consider(process->actor->wakes());
  }
  return next;
}

/// Actor activity goes into the run's record; other output is dropped.
void MachineHost::finish(std::span<const ActorId> actors,
                         Time now,
                         std::vector<Arrival>& arrivals) {
  world_->clock.set(now);
  for (const ActorId actor : actors) {
    actors::Outbox out(
        [&](actors::OutgoingMessage message) {
          arrivals.push_back({actor, actors::IncomingMessage::from(std::move(message))});
        },
        form());
    processes_[actor.value()]->actor->flush(out);
  }
}

void MachineHost::advance_to(Time now) {
  world_->clock.set(now);
  cores_.advance(now);
  for (const auto job : cores_.take_ended()) {
    auto node = threads_.extract(job);
    auto& [thread, kind] = node.mapped();
    (kind == ThreadKind::Main ? thread.process->main_busy : thread.process->second_busy) = false;
    if (thread.then)
      thread.then();
  }
  under_way_.run_due(now);
  run_threads();
}

void MachineHost::start(Process& process,
                        ThreadKind kind,
                        const MachineTask& task,
                        std::function<void()> then) {
  (kind == ThreadKind::Main ? process.main_busy : process.second_busy) = true;
  sim_hw::SharedCores::Work work{task.seconds, process.cores, {}, task.slowdown};
  if (task.threads == MachineTask::Threads::Team)
    work.spread = sim_hw::SharedCores::Spread::AllOf;
  threads_.emplace(cores_.start(work), std::pair{Thread{&process, std::move(then)}, kind});
}

void MachineHost::run_threads() {
  for (const auto& process : processes_) {
    if (process != nullptr && process->ready)
      continue_actor(*process);
  }
  continue_orchestrator();
}

MachineTask MachineHost::handling(const MessageTimes& times, std::size_t responses) const {
  return {(times.message_us + times.response_us * static_cast<double>(responses)) * kMicro,
          world_->calibration.slowdowns.other,
          {},
          {}};
}

void MachineHost::continue_actor(Process& p) {
  actors::Outbox out([&](actors::OutgoingMessage m) { send(p, std::move(m)); }, form());
  if (!p.second_busy) {
    if (auto task = p.actor->next_second()) {
      auto done = std::move(task->done);
      start(p, ThreadKind::Second, *task, [this, &p, done] {
        actors::Outbox o([&](actors::OutgoingMessage m) { send(p, std::move(m)); }, form());
        done(o);
      });
    }
  }
  if (p.main_busy)
    return;
  if (!p.outbox.empty()) {  // Sent once it is written.
    auto letter = std::make_shared<Letter>(std::move(p.outbox.front()));
    p.outbox.pop_front();
    return start(p, ThreadKind::Main, handling(p.messages, letter->responses), [this, letter] {
      const Time there =
          world_->clock.now() + from_seconds(world_->calibration.processes.hop_us * kMicro);
      under_way_.at(there, [this, letter] { orchestrator_->inbox.push_back(std::move(*letter)); });
    });
  }
  if (!p.inbox.empty()) {
    auto letter = std::make_shared<Letter>(std::move(p.inbox.front()));
    p.inbox.pop_front();
    return start(p, ThreadKind::Main, handling(p.messages, letter->responses), [this, &p, letter] {
      actors::Outbox o([&](actors::OutgoingMessage m) { send(p, std::move(m)); }, form());
      if (Status status = p.actor->on_message(letter->message, o); !status)
        status_ = std::move(status);
    });
  }
  auto task = p.actor->next();
  if (!task)
    return p.actor->flush(out);
  auto done = std::move(task->done);
  start(p, ThreadKind::Main, *task, [this, &p, done] {
    actors::Outbox o([&](actors::OutgoingMessage m) { send(p, std::move(m)); }, form());
    if (done)
      done(o);
    p.actor->report(o);
  });
}

/// Activity reports are almost free and are sent at once; other messages are written first.
void MachineHost::send(Process& p, actors::OutgoingMessage message) {
  Letter letter{p.id, actors::IncomingMessage::from(std::move(message)), 0};
  if (letter.message.is<actors::Activity>())
    return arrivals_.push_back({p.id, std::move(letter.message)});
  letter.responses = responses_in(letter.message);
  if (letter.message.is<actors::CountedScored>()) {
    if (const auto scored = letter.message.decode<actors::CountedScored>()) {
      const auto node = p.asked.extract(scored->lease);
      letter.responses = node.empty() ? 0 : node.mapped();
    }
  }
  p.outbox.push_back(std::move(letter));
}

void MachineHost::continue_orchestrator() {
  Process& o = *orchestrator_;
  if (o.main_busy)
    return;
  if (!o.outbox.empty()) {
    auto letter = std::make_shared<Letter>(std::move(o.outbox.front()));
    o.outbox.pop_front();
    return start(o, ThreadKind::Main, handling(o.messages, letter->responses), [this, letter] {
      const Time there =
          world_->clock.now() + from_seconds(world_->calibration.processes.hop_us * kMicro);
      under_way_.at(there, [this, letter] {
        processes_[letter->actor.value()]->inbox.push_back(std::move(*letter));
      });
    });
  }
  if (o.inbox.empty())
    return;
  auto letter = std::make_shared<Letter>(std::move(o.inbox.front()));
  o.inbox.pop_front();
  if (const auto& woken_by = processes_[letter->actor.value()]->cores; !woken_by.empty())
    o.cores = {woken_by.front()};
  MachineTask reading = handling(o.messages, letter->responses);
  if (letter->message.is<actors::StateSaved>())
    reading.seconds += world_->calibration.processes.checkpoint_us * kMicro;
  start(o, ThreadKind::Main, reading, [this, letter] {
    arrivals_.push_back({letter->actor, letter->message});
  });
}

}  // namespace temper::study
