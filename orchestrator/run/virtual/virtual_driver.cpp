#include "orchestrator/run/virtual/virtual_driver.hpp"

#include "actors/protocol/catalog.hpp"
#include "orchestrator/run/actor_events.hpp"
#include "orchestrator/run/way_back.hpp"

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
constexpr LogWriting kWriting{.when = LogWriting::When::Gathered};

using Answer = std::optional<Event>;

event::Generated to_generated(ActorId actor, actors::CountedGenerated message) {
  event::Generated event{actor, {}};
  event.items.reserve(message.items.size());
  for (auto& item : message.items) {
    event.items.push_back({item.lease,
                           item.response,
                           item.prompt,
                           item.tokens,
                           std::move(item.segments),
                           item.finish,
                           item.cached});
  }
  return event;
}

}  // namespace

VirtualDriver::VirtualDriver(VirtualOptions options,
                             std::unique_ptr<ActorHost> host,
                             RunObserver observer,
                             const Log& log)
    : options_(std::move(options)),
      observer_(std::move(observer)),
      log_(log),
      scheduler_config_(scheduler_config(options_.pipeline)),
      host_(std::move(host)),
      events_(EventLog::unwritten()),
      next_events_(scheduler_config_.actors.size()),
      has_mail_(scheduler_config_.actors.size()),
      launched_(scheduler_config_.actors.size()) {}

Result<std::unique_ptr<VirtualDriver>> VirtualDriver::create(
    VirtualOptions options,
    std::unique_ptr<ActorHost> host,
    RunObserver observer,
    const Log& log,
    std::unique_ptr<ContentSource> content) {
  std::unique_ptr<VirtualDriver> driver(
      new VirtualDriver(std::move(options), std::move(host), std::move(observer), log));
  driver->content_ = std::move(content);
  TEMPER_TRY_STATUS(driver->plan_faults());
  TEMPER_TRY_STATUS(driver->options_.resume ? driver->open_resumed() : driver->open());
  return driver;
}

Status VirtualDriver::open() {
  if (options_.log.empty())
    return {};
  TEMPER_TRY(events_, EventLog::create(options_.log, kWriting));
  return {};
}

/// As the live driver does. Failures before the end of the log have been: they leave their mark on
/// the hosts, and on nobody else.
Status VirtualDriver::open_resumed() {
  const Checkpoints checkpoints(options_.checkpoints);
  HistoryReader reader(checkpoints);
  TEMPER_TRY(const LogSummary summary,
             scan_event_log(options_.log, [&](const Record& record, const LogPosition& behind) {
               reader.feed(record, behind);
               if (observer_.on_record)
                 observer_.on_record(record);
               return Status();
             }));
  TEMPER_TRY(WayBack way, find_way_back(checkpoints, reader.history()));
  if (way.checkpoint)
    checkpoint_ = std::move(way.checkpoint->state);
  TEMPER_TRY(events_, EventLog::reopen(options_.log, summary, kWriting));
  resumed_ = reader.resumed(checkpoint_.sequence, scheduler_config_, options_.changes);
  now_ = events_.last_time();
  while (hardware_ && hardware_->plan.next() && *hardware_->plan.next() <= now_)
    hardware_->hosts.fail(hardware_->plan.take());
  TEMPER_TRY(scheduler_, Scheduler::restored(scheduler_config_, checkpoint_.scheduler));
  return {};
}

RunOutcome VirtualDriver::run() {
  if (options_.resume)
    post(resumed_);
  else
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
  const std::optional<Time> change = next_change();
  const auto deadline = scheduler_.next_deadline();
  if (!next && waits_for_cards_.empty() && !(hardware_ && deadline))
    return abort("no actor has anything left to do, and the run is not over: " + who_waits());
  Time then = Time::max();
  for (const std::optional<Time>& at : {next, change, deadline})
    then = std::min(then, at.value_or(Time::max()));
  then = std::max(now_, then);
  turns_at_now_ = then == now_ ? turns_at_now_ + 1 : 0;
  if (turns_at_now_ > kMostTurnsAtOnce) {
    return abort(
        fmt::format("time stands still at {}: {}", to_text(now_.time_since_epoch()), who_waits()));
  }
  now_ = then;
  if (change && *change <= now_)
    return change_hardware();
  if (deadline && *deadline < next.value_or(Time::max()))
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
                        load.responses > 0
                            ? fmt::format("owes {} responses", load.responses)
                            : fmt::format("{} ({})", name_of(wait.state), sentence(wait.cause)));
  }
  return text;
}

// --- Events

void VirtualDriver::post(Event event) {
  queue_.push_back(std::move(event));
  if (delivering_)
    return;
  delivering_ = true;
  while (!queue_.empty()) {
    Event first = std::move(queue_.front());
    queue_.pop_front();
    deliver(std::move(first));
  }
  delivering_ = false;
}

void VirtualDriver::deliver(Event event) {
  // After the end only the actors' last spans are still of interest.
  if (outcome_ && !std::holds_alternative<event::Activity>(event))
    return;
  Record record{events_.next_sequence(), now_, std::move(event), {}};
  record.commands = scheduler_.on(record.event, now_);
  Status status = events_.append(record);
  // What is made from the log follows it: a resume takes back lines of certificates.jsonl.
  if (status && std::holds_alternative<event::Resumed>(record.event))
    status = events_.sync();
  if (!status) {
    // The log itself cannot be written: the end of the run is known to the observer alone.
    const command::Finish finish{
        false, false, reason_with(ReasonKind::Aborted, status.error().context)};
    record.event = event::Aborted{status.error().context, false};
    record.commands = {finish};
  }
  if (observer_.on_record)
    observer_.on_record(record);
  if (const auto* saved = std::get_if<event::CheckpointSaved>(&record.event);
      saved != nullptr && saved->error.empty())
    keep_checkpoint(record, saved->version);
  for (const Command& command : record.commands)
    std::visit([this](const auto& c) { execute(c); }, command);
}

Status VirtualDriver::take(const ActorHost::Arrival& arrival) {
  const std::uint32_t tag = arrival.message.envelope().tag;
  if (!outcome_ && !scheduler_.may_say(arrival.actor, tag)) {
    return invalid_input(fmt::format("{}: not for an actor that is {}",
                                     actors::message_name(tag),
                                     name_of(scheduler_.stage_of(arrival.actor))));
  }
  TEMPER_TRY(auto event, to_event(arrival.actor, arrival.message));
  if (!event || (outcome_ && !std::holds_alternative<event::Activity>(*event)))
    return {};
  if (auto lie = scheduler_.find_lie(*event, now_))
    return invalid_input(fmt::format("{}: {}", actors::message_name(tag), lie->what));
  post(*std::move(event));
  return {};
}

Result<std::optional<Event>> VirtualDriver::to_event(ActorId actor,
                                                     const actors::IncomingMessage& m) {
  if (m.is<actors::Ready>())
    return Answer(event::ActorReady{actor, std::nullopt});
  auto answer = actors::dispatch<Result<Answer>>(
      m,
      [&](actors::CountedGenerated generated) { return to_generated(actor, std::move(generated)); },
      [&](const actors::CountedScored& scored) {
        return event::ReferenceScored{actor, scored.lease};
      },
      [&](const actors::CountedPrepared& prepared) {
        return event::Prepared{actor, prepared.lease};
      },
      [&](actors::Judged judged) { return to_judged(actor, std::move(judged)); },
      [&](actors::Trained trained) { return to_trained(actor, std::move(trained)); },
      [&](const actors::TrainerReady& ready) {
        weights_[ready.weights.version] = ready.weights;
        return event::ActorReady{actor, ready.weights.version};
      },
      [](const actors::Failed& failed) { return invalid_input(failed.reason); });
  if (answer)
    return *std::move(answer);
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
    m.gave_up = real->gave_up;
  }
  event::Judged event{.actor = actor, .lease = m.lease, .items = {}, .gave_up = m.gave_up};
  event.items.reserve(m.items.size());
  for (const auto& item : m.items) {
    event.items.push_back({item.reward, !item.failure.empty()});
    if (event.failure.empty())
      event.failure = item.failure;
  }
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
