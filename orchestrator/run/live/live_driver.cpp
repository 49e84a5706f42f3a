#include "orchestrator/run/live/live_driver.hpp"

#include "actors/asio/asio.hpp"
#include "core/msgpack.hpp"
#include "orchestrator/pipeline/model_section.hpp"
#include "orchestrator/run/evaluation_source.hpp"
#include "orchestrator/run/processes/launch.hpp"

#include <fmt/format.h>
#include <signal.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

namespace asio = boost::asio;
using namespace std::chrono_literals;

constexpr Duration kTick = 100ms;
constexpr Duration kStopGrace = 2s;

/// Our own engines keep to them, and synthetic ones need not.
ResponseLimits response_limits(const PipelineConfig& config) {
  if (config.rollout.engine.kind == actors::EngineKind::Native)
    return {};
  return {config.sampling.max_new_tokens,
          config.model.vocabulary.value_or(actors::Tokenizer::for_task(config.task).vocabulary())};
}

std::vector<std::string> names_of(const SchedulerConfig& config) {
  std::vector<std::string> names;
  for (const ActorSpec& spec : config.actors)
    names.push_back(spec.name);
  return names;
}

}  // namespace

struct LiveDriver::Loop {
  asio::io_context io{1};
  asio::steady_timer deadline{io};
  asio::steady_timer tick{io};
  asio::steady_timer grace{io};
  asio::signal_set signals{io, SIGINT, SIGTERM};

  Loop() {
    struct sigaction current {};  // nohup ignores it, and means it
    if (::sigaction(SIGHUP, nullptr, &current) == 0 && current.sa_handler != SIG_IGN)
      signals.add(SIGHUP);
  }
};

LiveDriver::LiveDriver(LiveOptions options, Observer observer, Handout handout, const Log& log)
    : options_(std::move(options)),
      observer_(std::move(observer)),
      log_(log),
      scheduler_config_(scheduler_config(options_.pipeline)),
      run_dir_(options_.run_dir),
      handout_(std::move(handout)),
      tokenizer_(actors::Tokenizer::for_task(options_.pipeline.config.task)),
      limits_(response_limits(options_.pipeline.config)),
      loop_(std::make_unique<Loop>()),
      connections_(names_of(scheduler_config_), handout_.secret()),
      payloads_(scheduler_config_.responses_per_group),
      evaluated_(scheduler_config_.evaluation.samples),
      best_(options_.run_dir),
      start_{options_.base, {}, PolicyVersion(0)},
      relaunch_(scheduler_config_.actors.size()) {}

LiveDriver::~LiveDriver() = default;

Result<std::unique_ptr<LiveDriver>> LiveDriver::create(LiveOptions options,
                                                       Observer observer,
                                                       const Log& log) {
  TEMPER_TRY(Handout handout, Handout::create(options.pipeline.config.transport));
  std::unique_ptr<LiveDriver> driver(
      new LiveDriver(std::move(options), std::move(observer), std::move(handout), log));
  TEMPER_TRY_STATUS(driver->open());
  return driver;
}

Status LiveDriver::open() {
  TEMPER_TRY(
      prompts_,
      actors::make_prompt_source(options_.pipeline.config.task, options_.pipeline.config.seed));
  if (scheduler_config_.evaluation.every > 0) {
    TEMPER_TRY(problems_, make_evaluation_source(options_.pipeline.config));
  }
  TEMPER_TRY(tokenizer_, tokenizer_of(options_.pipeline.config, options_.base));
  TEMPER_TRY_STATUS(bind_socket());
  if (options_.resume)
    return open_resumed();
  // Last: with a log the folder holds a run.
  TEMPER_TRY(EventLog log, EventLog::create(run_dir_.file("events.log")));
  events_ = std::make_unique<EventLog>(std::move(log));
  clock_ = std::make_unique<RealClock>();
  return {};
}

/// The run's clock goes on where the log ends; the time in between does not count. What the log and
/// the checkpoints must be was seen to before (run/resume.hpp).
Status LiveDriver::open_resumed() {
  const auto path = run_dir_.file("events.log");
  HistoryReader reader(run_dir_.checkpoints());
  TEMPER_TRY(const LogSummary summary,
             scan_event_log(path, [&](const Record& record, const LogPosition& behind) {
               reader.feed(record, behind);
               if (observer_.on_record)
                 observer_.on_record(record);
               return Status();
             }));
  history_ = reader.history();
  TEMPER_TRY(EventLog log, EventLog::reopen(path, summary));
  events_ = std::make_unique<EventLog>(std::move(log));
  last_sequence_ = events_->next_sequence() - 1;
  clock_ = std::make_unique<RealClock>(RealClock().epoch_monotonic_ns() -
                                       events_->last_time().time_since_epoch().count());
  return return_to_checkpoint();
}

Status LiveDriver::bind_socket() {
  const TransportSection& t = options_.pipeline.config.transport;
  TEMPER_TRY(auto socket,
             actors::RouterSocket::bind(socket_address(t), t.limits, log_, handout_.key()));
  actors::AsioRouter::Events events;
  events.on_message = [this](const auto& peer, const auto& m) { on_message(peer, m); };
  events.on_broken = [this](const auto& peer, const auto& why) { on_broken(peer, why); };
  TEMPER_TRY(router_,
             actors::AsioRouter::create(loop_->io,
                                        std::move(socket),
                                        {t.heartbeat, t.limits.max_message},
                                        std::move(events),
                                        log_));
  supervisor_ = std::make_unique<Supervisor>(loop_->io, [this](const ChildExit& e) { on_exit(e); });
  return {};
}

RunOutcome LiveDriver::run() {
  loop_->signals.async_wait([this](auto error, int number) {
    if (!error)
      on_signal(number);
  });
  on_tick();
  if (options_.resume) {
    post(event::Resumed{checkpoint_sequence_, 0});
  } else {
    post(event::Started{scheduler_config_});
  }
  loop_->io.run();
  router_.reset();
  outcome_->log_hash = events_->hash();
  return *outcome_;
}

// --- Events

void LiveDriver::post(Event event) {
  queue_.push_back(std::move(event));
  process_events();
}

/// Carrying out a command can make the next event; they queue here instead of nesting.
void LiveDriver::process_events() {
  if (processing_)
    return;
  processing_ = true;
  while (!queue_.empty()) {
    const Event event = std::move(queue_.front());
    queue_.pop_front();
    deliver(event);
  }
  processing_ = false;
  arm_deadline();
}

void LiveDriver::deliver(const Event& event) {
  // After the end only the actors' last spans are still of interest.
  if (outcome_ && !std::holds_alternative<event::Activity>(event))
    return;
  const Time now = std::max(clock_->now(), events_->last_time());
  Record record{events_->next_sequence(), now, event, scheduler_.on(event, now)};
  if (Status status = events_->append(record); !status) {
    return abort_unrecorded(std::move(record), status.error().context);
  }
  last_sequence_ = record.sequence;
  if (const auto* saved = std::get_if<event::CheckpointSaved>(&event);
      saved && saved->error.empty()) {
    complete_checkpoint(saved->version);
  }
  if (observer_.on_record)
    observer_.on_record(record);
  for (const Command& command : record.commands) {
    std::visit([this](const auto& c) { execute(c); }, command);
  }
}

void LiveDriver::arm_deadline() {
  const auto deadline = scheduler_.next_deadline();
  if (!deadline || outcome_) {
    loop_->deadline.cancel();
    return;
  }
  const Duration left = std::max(Duration(0), *deadline - clock_->now());
  loop_->deadline.expires_after(left);
  loop_->deadline.async_wait([this](auto error) {
    if (!error)
      post(event::DeadlineReached{});
  });
}

void LiveDriver::on_tick() {
  router_->turns();
  if (!outcome_) {
    const TransportSection& t = options_.pipeline.config.transport;
    const Time now = clock_->now();
    for (const auto& [peer, actor] : connections_.peers())
      connections_.heard(actor, now - router_->silence_of(peer));
    for (const ActorId actor : connections_.silent_since(clock_->now() - t.heartbeat_timeout)) {
      lose(actor, fmt::format("silent for {}", to_text(t.heartbeat_timeout)));
    }
    if (Status named = events_->check_named(); !named)
      fail(named.error().context);
    if (observer_.on_tick)
      observer_.on_tick(scheduler_, clock_->now());
  }
  loop_->tick.expires_after(std::min(kTick, options_.pipeline.config.transport.heartbeat));
  loop_->tick.async_wait([this](auto error) {
    if (!error)
      on_tick();
  });
}

void LiveDriver::on_signal(int number) {
  loop_->signals.async_wait([this](auto error, int next) {
    if (!error)
      on_signal(next);
  });
  if (number == SIGHUP && signals_ > 0)
    return;  // a terminal that closes may say so twice
  if (++signals_ == 1) {
    log_.info("stopping: the update under way ends, then a checkpoint; again to stop at once");
    return post(event::StopRequested{});
  }
  fail("stopped at once, on request; --resume goes on from the last checkpoint");
}

// --- Messages

void LiveDriver::on_message(const actors::PeerId& peer, const actors::IncomingMessage& message) {
  if (message.is<actors::Hello>())
    return on_hello(peer, message);
  const auto actor = connections_.actor_of(peer);
  if (!actor)
    return router_->drop(peer, "not registered");
  if (Status status = on_actor_message(*actor, message); !status)
    on_lie(*actor, message, status.error().context);
  process_events();
}

void LiveDriver::on_broken(const actors::PeerId& peer, const std::string& why) {
  if (const auto actor = connections_.actor_of(peer))
    lose(*actor, why);
}

void LiveDriver::on_hello(const actors::PeerId& peer, const actors::IncomingMessage& message) {
  const auto hello = message.decode<actors::Hello>();
  if (!hello)
    return router_->drop(peer, hello.error().context);
  const auto actor = connections_.admit(peer, *hello, clock_->now());
  actors::OutgoingMessage answer;
  if (actor) {
    actors::Welcome welcome;
    welcome.actor = *actor;
    welcome.role =
        role_config(options_.pipeline.config, scheduler_config_.actors[actor->value()], start_);
    welcome.epoch_monotonic_ns = clock_->epoch_monotonic_ns();
    welcome.heartbeat = options_.pipeline.config.transport.heartbeat;
    welcome.heartbeat_timeout = options_.pipeline.config.transport.heartbeat_timeout;
    answer = actors::outgoing(welcome);
    router_->admit(peer);
  } else {
    if (connections_.note_refusal()) {
      log_.warning("worker refused",
                   {{"name", hello->name},
                    {"why", actor.error().context},
                    {"refused_so_far", connections_.refused()}});
    }
    if (!connections_.has_secret(*hello))
      return;
    answer = actors::outgoing(actors::Reject{actor.error().context});
  }
  router_->send(peer, std::move(answer));
}

void LiveDriver::send_message(ActorId actor, actors::OutgoingMessage message) {
  const actors::PeerId* peer = connections_.peer_of(actor);
  if (peer != nullptr)  // else its loss is on its way as an event
    router_->send(*peer, std::move(message));
}

// --- Processes

void LiveDriver::execute(const command::Launch& c) {
  const std::string& name = scheduler_config_.actors[c.actor.value()].name;
  if (!c.reason.empty()) {
    log_.warning("actor lost; starting it again", {{"actor", name}, {"why", c.reason}});
  }
  forget(c.actor);
  if (supervisor_->is_running(name)) {
    relaunch_[c.actor.value()] = true;
    supervisor_->kill(name);
  } else {
    start_process(c.actor);
  }
}

void LiveDriver::execute(const command::Discard& c) {
  const std::string& name = scheduler_config_.actors[c.actor.value()].name;
  log_.warning("actor lost; starting it again later",
               {{"actor", name},
                {"why", c.reason},
                {"in", to_text(std::max(Duration(0), c.until - clock_->now()))}});
  forget(c.actor);
  relaunch_[c.actor.value()] = false;
  supervisor_->kill(name);
}

void LiveDriver::start_process(ActorId actor) {
  relaunch_[actor.value()] = false;
  const std::string& name = scheduler_config_.actors[actor.value()].name;
  const auto credentials = handout_.give(name, *router_);
  if (!credentials)
    return post(event::ActorDown{actor, credentials.error().context});
  const auto spec = actor_child(
      {name, router_->endpoint(), *credentials, run_dir_.log_of(name)},
      options_.worker,
      engine_of(options_.pipeline.config, scheduler_config_.actors[actor.value()].role));
  if (!spec)
    return post(event::ActorDown{actor, spec.error().context});
  const auto pid = supervisor_->start(*spec);
  if (!pid)
    return post(event::ActorDown{actor, pid.error().context});
  connections_.expect(actor, *pid);
}

void LiveDriver::on_exit(const ChildExit& exit) {
  const auto& specs = scheduler_config_.actors;
  const auto it = std::find_if(
      specs.begin(), specs.end(), [&](const ActorSpec& s) { return s.name == exit.name; });
  const ActorId actor(static_cast<std::uint32_t>(it - specs.begin()));
  if (outcome_) {
    if (supervisor_->running() == 0)
      loop_->io.stop();
    return;
  }
  if (relaunch_[actor.value()])
    return start_process(actor);
  forget(actor);
  std::string reason = exit.status;
  if (!exit.log_tail.empty() && !exit.success)
    reason += fmt::format("; {}", last_line(exit.log_tail));
  post(event::ActorDown{actor, std::move(reason)});
}

/// Nothing of the message counts, nor does anything else of its sender.
void LiveDriver::on_lie(ActorId actor,
                        const actors::IncomingMessage& message,
                        const std::string& what) {
  forget(actor);
  if (outcome_)
    return;
  queue_.push_back(event::ActorDown{actor,
                                    fmt::format("sent a message that cannot be: {}: {}",
                                                actors::message_name(message.envelope().tag),
                                                what),
                                    true});
}

// --- The end

void LiveDriver::shut_down() {
  loop_->deadline.cancel();
  for (std::uint32_t i = 0; i < scheduler_config_.actors.size(); ++i) {
    if (connections_.peer_of(ActorId(i)) != nullptr) {
      send(ActorId(i), actors::Stop{});
    } else {
      supervisor_->kill(scheduler_config_.actors[i].name);  // nobody there to be asked
    }
  }
  if (supervisor_->running() == 0)
    return loop_->io.stop();
  loop_->grace.expires_after(signals_ > 1 ? Duration(0) : kStopGrace);
  loop_->grace.async_wait([this](auto error) {
    if (!error)
      supervisor_->stop_all(Duration(0));
  });
}

}  // namespace temper::orchestrator
