#include "orchestrator/run/virtual/virtual_driver.hpp"

#include "actors/protocol/catalog.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Turns between two looks at the world outside: signals, the screen.
constexpr std::uint64_t kLookEvery = 64;
/// More turns than any actor can need at one time.
constexpr std::uint64_t kMostTurnsAtOnce = 100000;

CheckpointKeeper keeper(const VirtualOptions& options, bool fails) {
  if (!options.checkpoints.empty()) {
    return CheckpointKeeper::in_folder(Checkpoints(options.checkpoints),
                                       options.pipeline.config.checkpoint.keep);
  }
  return fails ? CheckpointKeeper::in_memory() : CheckpointKeeper::none();
}

bool have_tensors(const ResolvedPipeline& pipeline) {
  return pipeline.simulation && pipeline.simulation->config.tensors.any();
}

/// Says what every actor waits for, to explain a run that cannot continue.
std::string describe_waits(const RunState& run) {
  std::string text = fmt::format("{} of the {} groups of an update are ready",
                                 run.saved.queue.trainable().size(),
                                 run.config.groups_per_update);
  for (std::uint32_t i = 0; i < run.fleet.size(); ++i) {
    const command::Waiting& wait = run.fleet.state(ActorId(i)).waiting;
    const Load load = run.saved.queue.load(ActorId(i));
    text += fmt::format("; {} {}",
                        run.config.actors[i].name,
                        load.responses > 0
                            ? fmt::format("owes {} responses", load.responses)
                            : fmt::format("{} ({})", name_of(wait.state), sentence(wait.cause)));
  }
  return text;
}

}  // namespace

VirtualDriver::VirtualDriver(VirtualOptions options,
                             Parts parts,
                             RunObserver observer,
                             const Log& log)
    : options_(std::move(options)),
      core_(std::move(parts.core), *this, std::move(observer), log),
      fleet_(std::move(parts.host), core_.config().actors.size()),
      hardware_(options_.pipeline, std::move(parts.plan), core_, fleet_, log),
      work_(
          core_,
          fleet_,
          std::move(parts.content),
          have_tensors(options_.pipeline) ? CountedWork::Tensors::Held : CountedWork::Tensors::None,
          log) {}

Result<std::unique_ptr<VirtualDriver>> VirtualDriver::create(
    VirtualOptions options,
    std::unique_ptr<ActorHost> host,
    RunObserver observer,
    const Log& log,
    std::unique_ptr<ContentSource> content) {
  TEMPER_TRY(auto plan, FaultPlan::of(options.pipeline));
  if (plan && (!host->can_lose() || content != nullptr)) {
    return invalid_input(
        "simulation.faults: hardware fails only in runs with `--driver in-process` whose work is "
        "counted (policy: synthetic)");
  }
  const bool fails = plan.has_value();
  RunCoreOptions core{.config = scheduler_config(options.pipeline),
                      .checkpoints = keeper(options, fails),
                      .log = options.log,
                      .writing = {.when = LogWriting::When::Gathered},
                      .rolls_back = fails,
                      .resume = options.resume,
                      .changes = options.changes};
  Parts parts{std::move(host), std::move(content), std::move(plan), std::move(core)};
  std::unique_ptr<VirtualDriver> driver(
      new VirtualDriver(std::move(options), std::move(parts), std::move(observer), log));
  TEMPER_TRY_STATUS(driver->open());
  return driver;
}

Status VirtualDriver::open() {
  TEMPER_TRY_STATUS(core_.open());
  now_ = core_.last_time();
  if (options_.resume)
    hardware_.skip_until(now_);
  return {};
}

std::vector<ResponseId> VirtualDriver::restore(Checkpoint checkpoint) {
  hardware_.restore(checkpoint.state.version);
  return work_.restore();
}

RunOutcome VirtualDriver::run() {
  core_.begin();
  while (!core_.finished())
    turn();
  finish_actors();
  work_.end_content();
  return core_.close();
}

// --- Time

void VirtualDriver::turn() {
  if (turns_++ % kLookEvery == 0)
    look_up();
  if (core_.finished())
    return;
  if (!fleet_.has_mail())
    return move_time();
  ++turns_at_now_;
  if (!is_stuck())
    take_all(fleet_.take_mail(now_));
}

void VirtualDriver::look_up() {
  core_.tick();
  work_.serve();
  const int stops = options_.stops ? options_.stops() : 0;
  if (stops > stops_)
    core_.request_stop();
  stops_ = stops;
}

/// To the next event of an actor, or to a deadline or a change of the hardware before it.
void VirtualDriver::move_time() {
  const std::optional<Time> next = fleet_.next_event();
  const std::optional<Time> change = hardware_.next_change();
  const auto deadline = core_.next_deadline();
  if (!next && !hardware_.has_waiting() && !(hardware_.fails() && deadline)) {
    return core_.fail("no actor has anything left to do, and the run is not over: " +
                      describe_waits(core_.state()));
  }
  Time then = Time::max();
  for (const std::optional<Time>& at : {next, change, deadline})
    then = std::min(then, at.value_or(Time::max()));
  then = std::max(now_, then);
  turns_at_now_ = then == now_ ? turns_at_now_ + 1 : 0;
  if (is_stuck())
    return;
  now_ = then;
  if (change && *change <= now_)
    return hardware_.change(now_);
  if (deadline && *deadline < next.value_or(Time::max()))
    return core_.post(event::DeadlineReached{});
  take_all(fleet_.act(now_));
}

/// Ends the run if time no longer moves.
bool VirtualDriver::is_stuck() {
  if (turns_at_now_ <= kMostTurnsAtOnce)
    return false;
  core_.fail(fmt::format("time stands still at {}: {}",
                         to_text(now_.time_since_epoch()),
                         describe_waits(core_.state())));
  return true;
}

// --- Messages

void VirtualDriver::take_all(const SimulatedFleet::Acted& acted) {
  for (const ActorHost::Arrival& arrival : acted.arrivals) {
    if (Status status = take(arrival); !status) {
      return core_.fail(fmt::format("{}: protocol violation: {}: {}",
                                    core_.actor(arrival.actor).name,
                                    actors::message_name(arrival.message.envelope().tag),
                                    status.error().context));
    }
  }
  if (!acted.status)
    core_.fail(acted.status.error().context);
}

Status VirtualDriver::take(const ActorHost::Arrival& arrival) {
  if (!core_.finished())
    TEMPER_TRY_STATUS(core_.validate(arrival.actor, arrival.message.envelope().tag));
  TEMPER_TRY(auto event, work_.to_event(arrival.actor, arrival.message));
  if (!event || (core_.finished() && !std::holds_alternative<event::Activity>(*event)))
    return {};
  TEMPER_TRY_STATUS(core_.validate(*event));
  core_.post(*std::move(event));
  return {};
}

/// The activity of actors until now belongs to the run.
void VirtualDriver::finish_actors() {
  for (const ActorHost::Arrival& arrival : fleet_.finish(now_)) {
    if (arrival.message.is<actors::Activity>())
      static_cast<void>(take(arrival));
  }
}

}  // namespace temper::orchestrator
