#include "orchestrator/run/virtual/virtual_driver.hpp"

#include "actors/protocol/catalog.hpp"
#include "orchestrator/run/actor_events.hpp"
#include "orchestrator/run/virtual/simulated_roles.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Turns between two looks at the world outside: signals, the screen.
constexpr std::uint64_t kLookEvery = 64;
/// More turns than any actor can need at one time.
constexpr std::uint64_t kMostTurnsAtOnce = 100000;
constexpr std::size_t kMostWeights = 8;

using Answer = std::optional<Event>;

}  // namespace

VirtualDriver::VirtualDriver(VirtualOptions options,
                             std::unique_ptr<ActorHost> host,
                             RunObserver observer,
                             const Log& log,
                             EventLog events)
    : options_(std::move(options)),
      observer_(std::move(observer)),
      log_(log),
      scheduler_config_(scheduler_config(options_.pipeline)),
      host_(std::move(host)),
      events_(std::move(events)),
      next_events_(scheduler_config_.actors.size()),
      has_mail_(scheduler_config_.actors.size()),
      launched_(scheduler_config_.actors.size()) {}

Result<std::unique_ptr<VirtualDriver>> VirtualDriver::create(
    VirtualOptions options,
    std::unique_ptr<ActorHost> host,
    RunObserver observer,
    const Log& log,
    std::unique_ptr<ContentSource> content) {
  auto events = options.log.empty() ? Result<EventLog>(EventLog::unwritten())
                                    : EventLog::create(options.log, EventLog::Writing::Gathered);
  if (!events)
    return std::move(events).error();
  std::unique_ptr<VirtualDriver> driver(new VirtualDriver(
      std::move(options), std::move(host), std::move(observer), log, *std::move(events)));
  driver->content_ = std::move(content);
  return driver;
}

RunOutcome VirtualDriver::run() {
  post(event::Started{scheduler_config_});
  while (!outcome_)
    turn();
  say_goodbye();
  content_.reset();
  if (Status status = events_.sync(); !status && outcome_->finish.ok)
    outcome_->finish = {false, false, status.error().context};
  outcome_->log_hash = events_.hash();
  return *outcome_;
}

// --- Time

void VirtualDriver::turn() {
  if (turns_++ % kLookEvery == 0)
    look_up();
  if (outcome_)
    return;
  if (addressed_.empty())
    return move_time();
  if (++turns_at_now_ > kMostTurnsAtOnce) {
    return abort(
        fmt::format("time stands still at {}: {}", to_text(now_.time_since_epoch()), who_waits()));
  }
  acting_.swap(addressed_);
  addressed_.clear();
  std::sort(acting_.begin(), acting_.end());
  for (const ActorId actor : acting_)
    has_mail_[actor.value()] = false;
  let_act();
}

/// The actor has something to take at the present time.
void VirtualDriver::address(ActorId actor) {
  if (!has_mail_[actor.value()])
    addressed_.push_back(actor);
  has_mail_[actor.value()] = true;
}

void VirtualDriver::look_up() {
  if (observer_.on_tick)
    observer_.on_tick(scheduler_, now_);
  if (content_)
    follow(content_->serve());
  const int stops = options_.stops ? options_.stops() : 0;
  if (stops > stops_ && stops_ == 0) {
    log_.info("stopping: the update under way ends; again to stop at once");
    post(event::StopRequested{});
  } else if (stops > stops_) {
    post(event::Aborted{"stopped at once, on request", true});
  }
  stops_ = stops;
}

/// To the next event of an actor, or to a deadline before it.
void VirtualDriver::move_time() {
  const std::optional<Time> next = next_events_.time();
  if (!next)
    return abort("no actor has anything left to do, and the run is not over: " + who_waits());
  const auto deadline = scheduler_.next_deadline();
  const Time then = std::max(now_, deadline ? std::min(*next, *deadline) : *next);
  turns_at_now_ = then == now_ ? turns_at_now_ + 1 : 0;
  if (turns_at_now_ > kMostTurnsAtOnce) {
    return abort(
        fmt::format("time stands still at {}: {}", to_text(now_.time_since_epoch()), who_waits()));
  }
  now_ = then;
  if (deadline && *deadline < *next)
    return post(event::DeadlineReached{});
  acting_.clear();
  next_events_.for_each_next([this](std::uint32_t actor) { acting_.emplace_back(actor); });
  let_act();
}

/// Those of acting_.
void VirtualDriver::let_act() {
  std::vector<ActorHost::Arrival> arrivals;
  const Status acted = host_->advance(acting_, now_, arrivals);
  for (const ActorId actor : acting_)
    next_events_.set(actor.value(), host_->next_event(actor));
  for (const ActorHost::Arrival& arrival : arrivals) {
    if (Status status = take(arrival); !status) {
      return abort(fmt::format("{} sent a message that cannot be: {}",
                               scheduler_config_.actors[arrival.actor.value()].name,
                               status.error().context));
    }
  }
  if (!acted)
    abort(acted.error().context);
}

/// What the actors were busy with until now belongs to the run.
void VirtualDriver::say_goodbye() {
  std::vector<ActorId> all;
  for (std::uint32_t i = 0; i < launched_.size(); ++i) {
    if (launched_[i])
      all.emplace_back(i);
  }
  std::vector<ActorHost::Arrival> arrivals;
  host_->finish(all, now_, arrivals);
  for (const ActorHost::Arrival& arrival : arrivals) {
    if (arrival.message.is<actors::Activity>())
      static_cast<void>(take(arrival));
  }
}

std::string VirtualDriver::who_waits() const {
  std::string text = fmt::format("{} of the {} groups of an update are ready",
                                 scheduler_.queue().trainable().size(),
                                 scheduler_config_.groups_per_update);
  for (std::uint32_t i = 0; i < scheduler_.fleet().size(); ++i) {
    const command::Waiting& wait = scheduler_.fleet().state(ActorId(i)).waiting;
    const Load load = scheduler_.queue().load(ActorId(i));
    text += fmt::format("; {} {}",
                        scheduler_config_.actors[i].name,
                        load.responses > 0 ? fmt::format("owes {} responses", load.responses)
                                           : fmt::format("{} ({})", name_of(wait.state), wait.on));
  }
  return text;
}

// --- Events

void VirtualDriver::post(Event event) {
  queue_.push_back(std::move(event));
  if (delivering_)
    return;
  delivering_ = true;
  for (std::size_t i = 0; i < queue_.size(); ++i)
    deliver(std::move(queue_[i]));
  queue_.clear();
  delivering_ = false;
}

void VirtualDriver::deliver(Event event) {
  // After the end only the actors' last spans are still of interest.
  if (outcome_ && !std::holds_alternative<event::Activity>(event))
    return;
  Record record{events_.next_sequence(), now_, std::move(event), {}};
  record.commands = scheduler_.on(record.event, now_);
  if (Status status = events_.append(record); !status) {
    // The log itself cannot be written: the end of the run is known to the observer alone.
    const command::Finish finish{false, false, status.error().context};
    record.event = event::Aborted{finish.reason, false};
    record.commands = {finish};
  }
  if (observer_.on_record)
    observer_.on_record(record);
  for (const Command& command : record.commands)
    std::visit([this](const auto& c) { execute(c); }, command);
}

Status VirtualDriver::take(const ActorHost::Arrival& arrival) {
  TEMPER_TRY(auto event, to_event(arrival.actor, arrival.message));
  if (event)
    post(*std::move(event));
  return {};
}

Result<std::optional<Event>> VirtualDriver::to_event(ActorId actor,
                                                     const actors::IncomingMessage& m) {
  if (m.is<actors::CountedGenerated>()) {
    TEMPER_TRY(auto generated, m.decode<actors::CountedGenerated>());
    event::Generated event{actor, {}};
    event.items.reserve(generated.items.size());
    for (auto& item : generated.items) {
      event.items.push_back({item.lease,
                             item.response,
                             item.prompt,
                             item.tokens,
                             std::move(item.segments),
                             item.finish,
                             item.cached});
    }
    return Answer(std::move(event));
  }
  if (m.is<actors::CountedScored>()) {
    TEMPER_TRY(const auto scored, m.decode<actors::CountedScored>());
    return Answer(event::ReferenceScored{actor, scored.lease});
  }
  if (m.is<actors::Judged>()) {
    TEMPER_TRY(auto judged, m.decode<actors::Judged>());
    return to_judged(actor, std::move(judged));
  }
  if (m.is<actors::Trained>()) {
    TEMPER_TRY(auto trained, m.decode<actors::Trained>());
    return to_trained(actor, std::move(trained));
  }
  if (m.is<actors::TrainerReady>()) {
    TEMPER_TRY(const auto ready, m.decode<actors::TrainerReady>());
    weights_[ready.weights.version] = ready.weights;
    return Answer(event::ActorReady{actor, ready.weights.version});
  }
  if (m.is<actors::Ready>())
    return Answer(event::ActorReady{actor, std::nullopt});
  if (m.is<actors::Failed>()) {
    TEMPER_TRY(const auto failed, m.decode<actors::Failed>());
    return invalid_input(failed.reason);
  }
  TEMPER_TRY(auto plain, plain_event(actor, m));
  if (plain)
    return plain;
  return invalid_input(fmt::format("{} is not for a driver of virtual time",
                                   actors::message_name(m.envelope().tag)));
}

Result<std::optional<Event>> VirtualDriver::to_judged(ActorId actor, actors::Judged m) {
  if (content_) {
    auto real = content_->judged(m.lease);
    if (!real) {
      follow(real.error());
      return Answer();
    }
    if (real->items.size() != m.items.size()) {
      return invalid_input(fmt::format("{} responses of lease {}, whose content has {}",
                                       m.items.size(),
                                       m.lease,
                                       real->items.size()));
    }
    m.items = std::move(real->items);
  }
  event::Judged event{actor, m.lease, {}};
  event.items.reserve(m.items.size());
  for (const auto& item : m.items)
    event.items.push_back({item.reward, !item.failure.empty()});
  return Answer(std::move(event));
}

Result<std::optional<Event>> VirtualDriver::to_trained(ActorId actor, actors::Trained m) {
  if (content_) {
    auto real = content_->trained(m.lease);
    if (!real) {
      follow(real.error());
      return Answer();
    }
    real->tokens = m.metrics.tokens;
    real->micro_batches = m.metrics.micro_batches;
    m.metrics = *real;
  }
  weights_[m.weights.version] = m.weights;
  if (weights_.size() > kMostWeights)
    weights_.erase(weights_.begin());
  return Answer(event::Trained{actor, m.lease, m.weights.version, std::move(m.groups), m.metrics});
}

void VirtualDriver::follow(const Status& status) {
  if (!status)
    abort("content: " + status.error().context);
}

// --- Commands

template <class M>
void VirtualDriver::send(ActorId actor, M message) {
  address(actor);
  host_->deliver(actor,
                 host_->form() == actors::Outbox::Form::Value
                     ? actors::outgoing_value(std::move(message))
                     : actors::outgoing(message));
}

void VirtualDriver::execute(const command::Launch& c) {
  const ActorSpec& spec = scheduler_config_.actors[c.actor.value()];
  if (launched_[c.actor.value()]) {
    return abort(
        fmt::format("{}: {}; a simulated actor would only do the same again", spec.name, c.reason));
  }
  const Status launched = host_->launch(c.actor, simulated_role_config(options_.pipeline, spec));
  if (!launched)
    return abort(launched.error().context);
  launched_[c.actor.value()] = true;
  address(c.actor);
}

void VirtualDriver::execute(const command::Dispatch& c) {
  actors::CountedGenerate work{c.lease, c.group, {}};
  work.items.reserve(c.responses.size());
  for (std::size_t i = 0; i < c.responses.size(); ++i) {
    auto cached = actors::CachedAt::Nowhere;
    if (!c.cached_on.empty() && c.cached_on[i])
      cached = *c.cached_on[i] == c.actor ? actors::CachedAt::Here : actors::CachedAt::Elsewhere;
    work.items.push_back({c.responses[i], scheduler_.queue().row(c.responses[i])->tokens, cached});
  }
  if (content_) {
    Sampling sampling{c.lease, c.group, c.version, {}};
    for (const auto& item : work.items) {
      if (item.prefix == Tokens(0))
        sampling.responses.push_back(item.response);
    }
    if (!sampling.responses.empty())
      follow(content_->sample(sampling));
  }
  send(c.actor, std::move(work));
}

void VirtualDriver::execute(const command::Cancel& c) {
  send(c.actor, actors::Cancel{{c.response}});
}

Tokens VirtualDriver::length_of(ResponseId r) const {
  const Row& row = *scheduler_.queue().row(r);
  return row.prompt + row.tokens;
}

void VirtualDriver::execute(const command::Withdraw& c) {
  send(c.actor, actors::Withdraw{c.responses});
}

void VirtualDriver::execute(const command::ScoreReference& c) {
  actors::CountedScore work{c.lease, {}, {}};
  work.lengths.reserve(c.responses.size());
  std::optional<GroupId> before;
  for (const ResponseId r : c.responses) {
    work.lengths.push_back(length_of(r));
    const GroupId group = scheduler_.queue().group_of(r);
    if (std::exchange(before, group) == group)
      work.repeated += scheduler_.queue().row(r)->prompt;
  }
  if (content_)
    follow(content_->score(c.lease, c.responses));
  send(c.actor, std::move(work));
}

void VirtualDriver::execute(const command::Judge& c) {
  actors::CountedJudge work{c.lease, {}};
  work.items.reserve(c.responses.size());
  for (const ResponseId r : c.responses)
    work.items.push_back({r, scheduler_.queue().row(r)->tokens});
  if (content_)
    follow(content_->judge(c.lease, c.responses));
  send(c.actor, std::move(work));
}

void VirtualDriver::execute(const command::Train& c) {
  actors::CountedTrain work{c.lease, c.certificate, {}};
  work.items.reserve(c.responses.size());
  for (const ResponseId r : c.responses) {
    const Row& row = *scheduler_.queue().row(r);
    work.items.push_back({scheduler_.queue().group_of(r), row.prompt, row.tokens, row.reward});
  }
  if (content_)
    follow(content_->train(c.lease, c.certificate, c.responses));
  send(c.actor, std::move(work));
}

void VirtualDriver::execute(const command::StageWeights& c) {
  const auto handle = weights_.find(c.version);
  if (handle == weights_.end())
    return post(event::WeightsStaged{c.actor, c.version, "the trainer has not published it"});
  actors::WeightsHandle weights = handle->second;
  weights.fd = -1;
  send(c.actor, actors::StageWeights{weights});
}

void VirtualDriver::execute(const command::CommitWeights& c) {
  send(c.actor, actors::CommitWeights{c.version});
}

void VirtualDriver::execute(const command::Switch& c) {
  send(c.actor, actors::Switch{c.action});
}

void VirtualDriver::execute(const command::SaveCheckpoint& c) {
  send(c.trainer, actors::SaveState{c.version, ""});
}

void VirtualDriver::execute(const command::Release& c) {
  if (c.outcome != Outcome::Trained)
    log_.warning("group given up", {{"group", c.group}, {"why", c.reason}});
  if (content_)
    content_->release(c.group);
}

void VirtualDriver::execute(const command::Rollback& c) {
  abort(c.reason);
}

void VirtualDriver::execute(const command::Finish& c) {
  if (!outcome_)
    outcome_ = RunOutcome{c, now_, 0};
}

/// The run cannot go on for a reason outside the scheduler.
void VirtualDriver::abort(std::string reason) {
  if (outcome_)
    return;
  if (scheduler_.finished()) {  // its future is void (Rollback): nothing that it could say
    outcome_ = RunOutcome{{false, false, std::move(reason)}, now_, 0};
    return;
  }
  post(event::Aborted{std::move(reason), false});
}

}  // namespace temper::orchestrator
