#include "orchestrator/run/live/live_driver.hpp"

#include "actors/asio/asio.hpp"
#include "core/msgpack.hpp"
#include "orchestrator/run/actor_events.hpp"
#include "orchestrator/run/live/payload_events.hpp"
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
  return {config.sampling.max_new_tokens, actors::Tokenizer::for_task(config.task).vocabulary()};
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

LiveDriver::LiveDriver(LiveOptions options, Observer observer, const Log& log)
    : options_(std::move(options)),
      observer_(std::move(observer)),
      log_(log),
      scheduler_config_(scheduler_config(options_.pipeline)),
      run_dir_(options_.run_dir),
      secret_(random_secret()),
      tokenizer_(actors::Tokenizer::for_task(options_.pipeline.config.task)),
      limits_(response_limits(options_.pipeline.config)),
      loop_(std::make_unique<Loop>()),
      connections_(names_of(scheduler_config_), secret_),
      payloads_(scheduler_config_.responses_per_group),
      start_{options_.base_weights, {}, PolicyVersion(0)},
      relaunch_(scheduler_config_.actors.size()) {}

LiveDriver::~LiveDriver() = default;

Result<std::unique_ptr<LiveDriver>> LiveDriver::create(LiveOptions options,
                                                       Observer observer,
                                                       const Log& log) {
  std::unique_ptr<LiveDriver> driver(new LiveDriver(std::move(options), std::move(observer), log));
  TEMPER_TRY_STATUS(driver->open());
  return driver;
}

Status LiveDriver::open() {
  TEMPER_TRY(
      prompts_,
      actors::make_prompt_source(options_.pipeline.config.task, options_.pipeline.config.seed));
  TEMPER_TRY_STATUS(bind_socket());
  if (options_.resume)
    return open_resumed();
  // Last: with a log the folder holds a run.
  TEMPER_TRY(EventLog log, EventLog::create(run_dir_.file("events.log")));
  events_ = std::make_unique<EventLog>(std::move(log));
  clock_ = std::make_unique<RealClock>();
  return {};
}

/// The run's clock goes on where the log ends; the time in between does not count.
Status LiveDriver::open_resumed() {
  const auto path = run_dir_.file("events.log");
  std::optional<SchedulerConfig> recorded;
  TEMPER_TRY(const LogSummary summary, read_event_log(path, [&](const Record& record) -> Status {
               if (const auto* started = std::get_if<event::Started>(&record.event)) {
                 recorded = started->config;
               }
               if (observer_.on_record)
                 observer_.on_record(record);
               return {};
             }));
  if (!recorded) {
    return invalid_input(
        fmt::format("{} holds no record of a start; begin the run anew in "
                    "another run_dir",
                    path.string()));
  }
  if (encode(*recorded) != encode(scheduler_config_)) {
    return invalid_input(
        fmt::format("{}: the configuration is not the one this run began with", path.string()));
  }
  if (summary.torn_tail)
    log_.warning("the log ended in the middle of a record; cut off");
  TEMPER_TRY(EventLog log, EventLog::reopen(path));
  events_ = std::make_unique<EventLog>(std::move(log));
  last_sequence_ = events_->next_sequence() - 1;
  clock_ = std::make_unique<RealClock>(RealClock().epoch_monotonic_ns() -
                                       events_->last_time().time_since_epoch().count());
  return return_to_checkpoint();
}

Status LiveDriver::bind_socket() {
  const TransportSection& t = options_.pipeline.config.transport;
  TEMPER_TRY(auto socket, actors::RouterSocket::bind(socket_address(t), t.limits, log_));
  router_ = std::make_unique<actors::AsioRouter>(
      loop_->io, std::move(socket), [this](actors::Received r) { on_message(std::move(r)); });
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
  if (!outcome_) {
    const TransportSection& t = options_.pipeline.config.transport;
    for (const ActorId actor : connections_.silent_since(clock_->now() - t.heartbeat_timeout)) {
      lose(actor, fmt::format("silent for {}", to_text(t.heartbeat_timeout)));
    }
    if (observer_.on_tick)
      observer_.on_tick(scheduler_, clock_->now());
  }
  std::vector<ActorId> connected;
  for (const auto& [peer, actor] : connections_.peers())
    connected.push_back(actor);
  for (const ActorId actor : connected)
    send(actor, actors::Heartbeat{});
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

void LiveDriver::on_message(actors::Received received) {
  const actors::PeerId peer = received.peer;
  auto message = actors::IncomingMessage::parse(std::move(received));
  if (!message)
    return router_->drop(peer, message.error().context);
  if (message->is<actors::Hello>())
    return on_hello(peer, *message);
  const auto actor = connections_.actor_of(peer);
  if (!actor)
    return router_->drop(peer, "not registered");
  connections_.heard(*actor, clock_->now());
  if (Status status = on_actor_message(*actor, *message); !status) {
    lose(*actor, "sent a message that cannot be: " + status.error().context);
  }
  process_events();
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
  } else {
    log_.warning("worker refused", {{"name", hello->name}, {"why", actor.error().context}});
    answer = actors::outgoing(actors::Reject{actor.error().context});
  }
  const Status sent = router_->send(peer, encode_head(answer, ++sent_), std::move(answer.body));
  if (!sent)
    log_.warning("no answer to a worker", {{"why", sent.error().context}});
}

Status LiveDriver::on_actor_message(ActorId actor, const actors::IncomingMessage& m) {
  if (m.is<actors::Heartbeat>())
    return {};
  if (m.is<actors::Ready>()) {
    // The trainer is ready when its weights are (TrainerReady).
    if (actor != scheduler_.fleet().trainer())
      post(event::ActorReady{actor, std::nullopt});
    return {};
  }
  TEMPER_TRY(auto plain, plain_event(actor, m));
  if (plain) {
    post(*std::move(plain));
    return {};
  }
  const DistQueue& queue = scheduler_.queue();
  const auto told = [&](Result<Event> event) -> Status {
    TEMPER_TRY(Event happened, std::move(event));
    post(std::move(happened));
    return {};
  };
  auto answer = actors::dispatch(
      m,
      [&](const actors::Failed& failed) { lose(actor, failed.reason); },
      [&](actors::Generated generated) {
        return told(store(actor,
                          std::move(generated),
                          {queue, scheduler_.progress().version, limits_},
                          payloads_));
      },
      [&](actors::ReferenceScored scored) {
        return told(store(actor, std::move(scored), queue, payloads_));
      },
      [&](const actors::Judged& judged) {
        for (const auto& item : judged.items) {
          if (!item.failure.empty())
            log_.warning("a response could not be judged", {{"why", item.failure}});
        }
        return told(store(actor, judged, queue, payloads_));
      },
      [&](const actors::TrainerReady& ready) {
        return on_weights(actor, ready.weights, event::ActorReady{actor, ready.weights.version});
      },
      [&](const actors::Trained& t) -> Status {
        TEMPER_TRY_STATUS(check(t, next(scheduler_.progress().version)));
        return on_weights(actor,
                          t.weights,
                          event::Trained{actor, t.lease, t.weights.version, t.groups, t.metrics});
      },
      [&](const actors::WeightsChunk& chunk) -> Status {
        TEMPER_TRY(auto whole, weights_.add(chunk));
        if (whole)
          post(*std::move(whole));
        return {};
      });
  if (answer)
    return *std::move(answer);
  return invalid_input(
      fmt::format("{} is not for an orchestrator", actors::message_name(m.envelope().tag)));
}

Status LiveDriver::on_weights(ActorId actor,
                              const actors::WeightsHandle& handle,
                              Event announcement) {
  if (actor != scheduler_.fleet().trainer())
    return invalid_input("only the trainer publishes");
  TEMPER_TRY(auto whole, weights_.announce(handle, std::move(announcement)));
  if (whole)
    post(*std::move(whole));
  return {};
}

void LiveDriver::send_message(ActorId actor, actors::OutgoingMessage message) {
  const actors::PeerId* peer = connections_.peer_of(actor);
  if (peer == nullptr)
    return;  // its loss is on its way as an event
  const Status sent = router_->send(*peer, encode_head(message, ++sent_), std::move(message.body));
  if (!sent)
    lose(actor, sent.error().context);
}

// --- Processes

void LiveDriver::execute(const command::Launch& c) {
  const std::string& name = scheduler_config_.actors[c.actor.value()].name;
  if (!c.reason.empty()) {
    log_.warning("actor lost; starting it again", {{"actor", name}, {"why", c.reason}});
  }
  connections_.forget(c.actor);
  if (supervisor_->is_running(name)) {
    relaunch_[c.actor.value()] = true;
    supervisor_->kill(name);
  } else {
    start_process(c.actor);
  }
}

void LiveDriver::start_process(ActorId actor) {
  relaunch_[actor.value()] = false;
  const std::string& name = scheduler_config_.actors[actor.value()].name;
  const auto spec = actor_child(
      {name, router_->endpoint(), secret_, run_dir_.log_of(name)},
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
  connections_.forget(actor);
  std::string reason = exit.status;
  if (!exit.log_tail.empty() && !exit.success)
    reason += fmt::format("; {}", last_line(exit.log_tail));
  post(event::ActorDown{actor, std::move(reason)});
}

/// The actor is of no use any more: no message of it counts, its process ends.
void LiveDriver::lose(ActorId actor, const std::string& reason) {
  connections_.forget(actor);
  if (outcome_)
    return;
  queue_.push_back(event::ActorDown{actor, reason});
  process_events();
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
