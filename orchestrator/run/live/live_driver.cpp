#include "orchestrator/run/live/live_driver.hpp"

#include "orchestrator/run/live/loop.hpp"
#include "orchestrator/run/run_dir.hpp"

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

using namespace std::chrono_literals;

constexpr Duration kTick = 100ms;
constexpr Duration kStopGrace = 2s;

RunCoreOptions core_options(const LiveOptions& options) {
  const RunDir run_dir(options.run_dir);
  const PipelineConfig& config = options.pipeline.config;
  RunCoreOptions core{
      .config = scheduler_config(options.pipeline),
      .checkpoints = CheckpointKeeper::in_folder(run_dir.checkpoints(), config.checkpoint.keep),
      .log = run_dir.file("events.log"),
      .resume = options.resume,
      .changes = options.changes};
  if (core.config.evaluation.every > 0 && core.config.evaluation.checkpoint)
    core.checkpoints.keep_best(options.run_dir);
  return core;
}

}  // namespace

LiveDriver::LiveDriver(LiveOptions options,
                       RunObserver observer,
                       LaunchCredentials credentials,
                       const Log& log)
    : options_(std::move(options)),
      log_(log),
      loop_(std::make_unique<Loop>()),
      core_(core_options(options_), *this, std::move(observer), log),
      links_(core_, faults_, std::move(credentials)),
      work_(core_, links_, options_.pipeline.config, log),
      weights_(core_,
               links_,
               options_.pipeline.config.transport.weights,
               RunDir(options_.run_dir).weights(),
               log),
      clocks_(core_, links_, clock_),
      admission_(options_, core_, links_, weights_, clocks_, clock_, log),
      workers_(options_, loop_->io, core_, links_, faults_, weights_, log),
      messages_(core_,
                work_,
                weights_,
                clocks_,
                workers_,
                options_.pipeline.config.placement.card_memory),
      scaling_(options_, core_, workers_, clocks_, log) {}

LiveDriver::~LiveDriver() = default;

Result<std::unique_ptr<LiveDriver>> LiveDriver::create(LiveOptions options,
                                                       RunObserver observer,
                                                       const Log& log) {
  std::optional<KeyRing> ring;
  std::optional<HeadIdentity> head;
  if (std::ranges::any_of(options.pipeline.slots, &ActorSpec::attached)) {
    TEMPER_TRY(ring, KeyRing::open(options.run_dir, KeyRing::Make::Missing));
    head = ring->head();
  }
  TEMPER_TRY(LaunchCredentials credentials,
             LaunchCredentials::create(options.pipeline.config.transport, head));
  std::unique_ptr<LiveDriver> driver(
      new LiveDriver(std::move(options), std::move(observer), std::move(credentials), log));
  TEMPER_TRY_STATUS(driver->open(std::move(ring)));
  return driver;
}

Status LiveDriver::open(std::optional<KeyRing> ring) {
  TEMPER_TRY_STATUS(work_.open(options_.base));
  admission_.put_tensors_in(work_.tensors());
  TEMPER_TRY_STATUS(bind_socket());
  TEMPER_TRY_STATUS(plan_faults());
  TEMPER_TRY_STATUS(core_.open());
  // The run's clock continues where the log ends; the time in between does not count.
  clock_ =
      RealClock(RealClock().epoch_monotonic_ns() - core_.last_time().time_since_epoch().count());
  return workers_.open(std::move(ring), admission_);
}

Status LiveDriver::bind_socket() {
  ActorLinks::Events events;
  events.on_message = [this](ActorId actor, const auto& m) {
    messages_.receive(actor, m);
    core_.process();
  };
  events.on_hello = [this](const auto& peer, const auto& user, const auto& m) {
    admission_.on_hello(peer, user, m);
  };
  events.on_broken = [this](ActorId actor, const auto& peer, const auto& why) {
    workers_.on_broken(actor, peer, why);
  };
  return links_.bind(loop_->io, options_.pipeline.config.transport, std::move(events), log_);
}

Status LiveDriver::plan_faults() {
  FaultInjection::Effects effects;
  effects.signal = [this](ActorId actor, int number) { workers_.signal(actor, number); };
  effects.start = [this](ActorId actor) { workers_.start_put_off(actor); };
  effects.mend = [this](ActorId actor, FaultInjection::HeldMessages held) {
    links_.deliver_held(actor, std::move(held));
  };
  effects.now = [this] { return clock_.now(); };
  return faults_.plan(loop_->io, options_.pipeline, std::move(effects), log_);
}

RunOutcome LiveDriver::run() {
  loop_->signals.async_wait([this](auto error, int number) {
    if (!error)
      on_signal(number);
  });
  on_tick();
  faults_.begin();
  core_.begin();
  loop_->io.run();
  RunDir(options_.run_dir).bound_logs();
  links_.close();
  if (options_.pipeline.config.placement.card_memory > Bytes(0)) {
    log_.info("most memory that the processes of a card held",
              {{"by_card", messages_.card_memory_peaks()}});
  }
  RunOutcome outcome = core_.close();
  outcome.out_of_time = out_of_time_;
  return outcome;
}

// --- For RunCore

std::vector<ResponseId> LiveDriver::restore(Checkpoint checkpoint) {
  admission_.start_from(std::move(checkpoint.folder), checkpoint.state.version);
  weights_.forget();
  return work_.restore(std::move(checkpoint.state.payloads));
}

void LiveDriver::on_settled() {
  weights_.send_images();
  arm_deadline();
}

void LiveDriver::on_finish() {
  loop_->deadline.cancel();
  faults_.end();
  workers_.begin_end(core_.outcome().finish.ok,
                     core_.stop_requests() > 1 ? Duration(0) : kStopGrace);
}

// --- Timers and signals

void LiveDriver::arm_deadline() {
  const auto deadline = core_.next_deadline();
  if (!deadline || core_.finished()) {
    loop_->deadline.cancel();
    return;
  }
  loop_->deadline.expires_after(std::max(Duration(0), *deadline - clock_.now()));
  loop_->deadline.async_wait([this](auto error) {
    if (!error)
      core_.post(event::DeadlineReached{});
  });
}

void LiveDriver::on_tick() {
  links_.router().turns();
  if (!core_.finished())
    watch();
  loop_->tick.expires_after(std::min(kTick, options_.pipeline.config.transport.heartbeat));
  loop_->tick.async_wait([this](auto error) {
    if (!error)
      on_tick();
  });
}

/// Notices what no message says: silent workers, removed files, new keys, requests to scale.
void LiveDriver::watch() {
  const Time now = clock_.now();
  work_.refresh_tensors(now);
  workers_.lose_silent(options_.pipeline.config.transport.heartbeat_timeout, now);
  if (Status named = core_.check_log(); !named)
    core_.fail(named.error().context);
  if (workers_.may_attach() && !core_.finished()) {
    if (Status alone = workers_.follow_keys(now); !alone)
      core_.fail(alone.error().context);
    clocks_.read();
  }
  if (!core_.finished())
    workers_.end_overdue(now);
  if (!core_.finished())
    workers_.note_loading();
  if (!core_.finished())
    scaling_.look(now);
  if (now >= loop_->bound_logs_at) {
    loop_->bound_logs_at = now + 1s;
    RunDir(options_.run_dir).bound_logs();
  }
  core_.tick();
}

void LiveDriver::on_signal(int number) {
  loop_->signals.async_wait([this](auto error, int next) {
    if (!error)
      on_signal(next);
  });
  if ((number == SIGHUP || number == SIGUSR1) && core_.stop_requests() > 0)
    return;  // a closing terminal, or a launcher at its time limit, may send its signal twice
  out_of_time_ = number == SIGUSR1;
  core_.request_stop();
}

}  // namespace temper::orchestrator
