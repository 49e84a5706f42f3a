#include "orchestrator/run/live/live_driver.hpp"

#include "core/msgpack.hpp"
#include "orchestrator/pipeline/model_section.hpp"
#include "orchestrator/run/evaluation_source.hpp"
#include "orchestrator/run/live/loop.hpp"
#include "orchestrator/run/processes/launch.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTick = 100ms;
constexpr Duration kLogsEvery = 1s;
/// Between the end of a launched worker's connection and the end of its process.
constexpr auto kProcessEnd = std::chrono::seconds(1);

/// Native engines keep to them, and synthetic ones need not.
actors::ResponseLimits response_limits(const PipelineConfig& config) {
  if (config.rollout.engine.kind == actors::EngineKind::Native)
    return {};
  return {static_cast<std::size_t>(config.sampling.max_new_tokens.count()),
          config.model.vocabulary.value_or(actors::Tokenizer::for_task(config.task).vocabulary())};
}

std::vector<std::string> names_of(const SchedulerConfig& config) {
  std::vector<std::string> names;
  for (const ActorSpec& spec : config.actors)
    names.push_back(spec.name);
  return names;
}

}  // namespace

LiveDriver::LiveDriver(LiveOptions options,
                       Observer observer,
                       Handout handout,
                       std::optional<KeyRing> ring,
                       const Log& log)
    : options_(std::move(options)),
      observer_(std::move(observer)),
      log_(log),
      config_(options_.pipeline.config),
      scheduler_config_(scheduler_config(options_.pipeline)),
      run_dir_(options_.run_dir),
      handout_(std::move(handout)),
      tokenizer_(actors::Tokenizer::for_task(options_.pipeline.config.task)),
      limits_(response_limits(options_.pipeline.config)),
      loop_(std::make_unique<Loop>()),
      connections_(names_of(scheduler_config_), handout_.secret()),
      ring_(std::move(ring)),
      payloads_(scheduler_config_.responses_per_group),
      evaluated_(scheduler_config_.evaluation.samples),
      best_(options_.run_dir),
      card_memory_(options_.pipeline.config.placement.card_memory),
      start_{options_.base, {}, PolicyVersion(0)},
      clocks_(scheduler_config_.actors.size()) {}

LiveDriver::~LiveDriver() = default;

Result<std::unique_ptr<LiveDriver>> LiveDriver::create(LiveOptions options,
                                                       Observer observer,
                                                       const Log& log) {
  std::optional<KeyRing> ring;
  std::optional<HeadIdentity> head;
  if (std::ranges::any_of(options.pipeline.slots, &ActorSpec::attached)) {
    TEMPER_TRY(ring, KeyRing::open(options.run_dir, KeyRing::Make::Missing));
    head = ring->head();
  }
  TEMPER_TRY(Handout handout, Handout::create(options.pipeline.config.transport, head));
  std::unique_ptr<LiveDriver> driver(new LiveDriver(
      std::move(options), std::move(observer), std::move(handout), std::move(ring), log));
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
  TEMPER_TRY_STATUS(plan_faults());
  if (options_.resume) {
    TEMPER_TRY_STATUS(open_resumed());
    return find_workers();
  }
  // With a log the folder holds a run.
  TEMPER_TRY(EventLog log, EventLog::create(run_dir_.file("events.log")));
  events_ = std::make_unique<EventLog>(std::move(log));
  clock_ = std::make_unique<RealClock>();
  return find_workers();
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
  resumed_ = reader.resumed(0, scheduler_config_, options_.changes);
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
  events.on_hello = [this](const auto& peer, const auto& user, const auto& m) {
    on_hello(peer, user, m);
  };
  TEMPER_TRY(router_,
             actors::AsioRouter::create(loop_->io,
                                        std::move(socket),
                                        {t.heartbeat, t.limits.max_message},
                                        std::move(events),
                                        log_));
  return {};
}

RunOutcome LiveDriver::run() {
  loop_->signals.async_wait([this](auto error, int number) {
    if (!error)
      on_signal(number);
  });
  on_tick();
  if (faults_)
    faults_->begin();
  if (options_.resume) {
    resumed_.sequence = checkpoint_sequence_;
    post(resumed_);
  } else {
    post(event::Started{scheduler_config_});
  }
  loop_->io.run();
  run_dir_.bound_logs();
  router_.reset();
  if (options_.pipeline.config.placement.card_memory > Bytes(0))
    log_.info("most memory that the processes of a card held", {{"by_card", card_memory_.peaks()}});
  outcome_->log_hash = events_->hash();
  outcome_->out_of_time = out_of_time_;
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
  send_images();
  arm_deadline();
}

void LiveDriver::deliver(const Event& event) {
  // After the end only the actors' last spans are still of interest.
  if (outcome_ && !std::holds_alternative<event::Activity>(event))
    return;
  const Time now = std::max(clock_->now(), events_->last_time());
  Record record{events_->next_sequence(), now, event, scheduler_.on(event, now)};
  Status status = events_->append(record);
  // What is made from the log follows it: a resume takes back lines of certificates.jsonl.
  if (status && std::holds_alternative<event::Resumed>(event))
    status = events_->sync();
  if (!status) {
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
    for (const auto& [peer, actor] : connections_.peers()) {
      if (!is_cut(actor))
        connections_.heard(actor, now - router_->silence_of(peer));
    }
    for (const ActorId actor : connections_.silent_since(clock_->now() - t.heartbeat_timeout)) {
      if (!may_be_silent(actor))
        lose(actor, {fmt::format("silent for {}", to_text(t.heartbeat_timeout))});
    }
    if (Status named = events_->check_named(); !named)
      fail(named.error().context);
    if (attached_ && !outcome_) {
      if (Status alone = attached_->look_again(now); !alone)
        fail(alone.error().context);
      read_clocks();
    }
    if (!outcome_)
      end_overdue(now);
    if (!outcome_)
      look_for_requests(now);
    if (now >= bound_logs_at_) {
      bound_logs_at_ = now + kLogsEvery;
      run_dir_.bound_logs();
    }
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
  if ((number == SIGHUP || number == SIGUSR1) && signals_ > 0)
    return;  // a terminal that closes may say so twice, and so may who says that time is up
  out_of_time_ = number == SIGUSR1;
  if (++signals_ == 1) {
    log_.info("stopping: the update under way ends, then a checkpoint; again to stop at once");
    return post(event::StopRequested{});
  }
  fail("stopped at once, on request; --resume goes on from the last checkpoint");
}

// --- Messages

void LiveDriver::on_message(const actors::PeerId& peer, const actors::IncomingMessage& message) {
  const auto actor = connections_.actor_of(peer);
  if (!actor)
    return router_->drop(peer, "not registered");
  if (is_cut(*actor)) {
    cut_off(*actor, peer).from.push_back(message);
    return;
  }
  if (Status status = on_actor_message(*actor, message); !status)
    on_lie(*actor, message, status.error().context);
  process_events();
}

void LiveDriver::on_broken(const actors::PeerId& peer, const std::string& why) {
  const auto actor = connections_.actor_of(peer);
  if (!actor)
    return;
  if (is_attached(*actor))
    return lose(*actor, {why});
  // How its process ends says more than that its connection did, and is known in a moment.
  const auto wait = std::make_shared<boost::asio::steady_timer>(loop_->io, kProcessEnd);
  wait->async_wait([this, wait, peer, why](auto) {
    const auto still = connections_.actor_of(peer);
    if (still && !ending_.contains(*still))  // one that was told to end is awaited by end_overdue()
      lose(*still, {why});
  });
}

void LiveDriver::send_message(ActorId actor, actors::OutgoingMessage message) {
  const actors::PeerId* peer = connections_.peer_of(actor);
  if (peer != nullptr && is_cut(actor)) {
    cut_off(actor, *peer).to.push_back(std::move(message));
    return;
  }
  if (peer != nullptr)  // else its loss is on its way as an event
    router_->send(*peer, std::move(message));
}

/// Nothing of the message counts, nor does anything else of its sender.
void LiveDriver::on_lie(ActorId actor,
                        const actors::IncomingMessage& message,
                        const std::string& what) {
  const std::string violation =
      fmt::format("{}: {}", actors::message_name(message.envelope().tag), what);
  source_of(actor).forget(actor, "protocol violation: " + violation);
  if (outcome_)
    return;
  queue_.push_back(event::ActorDown{actor, violation, true});
}

}  // namespace temper::orchestrator
