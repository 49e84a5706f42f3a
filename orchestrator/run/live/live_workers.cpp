#include "orchestrator/run/live/live_workers.hpp"

#include "actors/asio/asio.hpp"
#include "actors/border/values.hpp"
#include "actors/protocol/catalog.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "orchestrator/scheduler/view/claims.hpp"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Between the end of a launched worker's connection and the end of its process.
constexpr auto kProcessEnd = std::chrono::seconds(1);
/// For a worker that was told to end.
constexpr Duration kEndGrace = std::chrono::seconds(10);
/// Between two looks at a process that loads.
constexpr Duration kLeastProcessor = std::chrono::milliseconds(1);

/// Zero for a process that is gone.
Duration processor_time(std::int64_t pid) {
  clockid_t clock{};
  timespec used{};
  if (::clock_getcpuclockid(static_cast<pid_t>(pid), &clock) != 0 ||
      ::clock_gettime(clock, &used) != 0)
    return {};
  return std::chrono::seconds(used.tv_sec) + std::chrono::nanoseconds(used.tv_nsec);
}

}  // namespace

LiveWorkers::LiveWorkers(const LiveOptions& options,
                         boost::asio::io_context& io,
                         RunCore& core,
                         ActorLinks& links,
                         FaultInjection& faults,
                         WeightSync& weights,
                         const Log& log)
    : options_(options),
      io_(io),
      core_(core),
      links_(links),
      faults_(faults),
      weights_(weights),
      log_(log) {}

Status LiveWorkers::open(std::optional<KeyRing> ring, WorkerAdmission& admission) {
  const auto end = [this](ActorId actor, WorkerEnd how) { on_end(actor, std::move(how)); };
  launched_ = std::make_unique<LaunchedWorkers>(
      io_, launch_plan(), links_.credentials(), links_.router(), links_.connections(), end);
  if (!ring)
    return {};
  TEMPER_TRY(attached_,
             AttachedWorkers::open({options_.run_dir, options_.pipeline.config.transport.advertise},
                                   *std::move(ring),
                                   links_.router(),
                                   links_.connections(),
                                   end));
  admission.open_to(*attached_);
  log_.info("workers may attach",
            {{"run", attached_->run()}, {"orchestrator", attached_->incarnation()}});
  return {};
}

LaunchedWorkers::Plan LiveWorkers::launch_plan() {
  LaunchedWorkers::Plan plan;
  const std::vector<ActorSpec>& actors = core_.config().actors;
  for (std::uint32_t i = 0; i < actors.size(); ++i) {
    plan.names.push_back(actors[i].name);
    plan.engines.push_back(engine_of(options_.pipeline.config, actors[i].role, actors[i].teacher));
    if (actors[i].attached)
      links_.connections().attach(ActorId(i));
  }
  plan.worker = options_.worker;
  plan.cores = options_.cores;
  plan.log_of = [this](std::string_view name) { return RunDir(options_.run_dir).log_of(name); };
  plan.puts_off = [this](ActorId actor) { return faults_.puts_off(actor); };
  return plan;
}

WorkerSource& LiveWorkers::source_of(ActorId actor) {
  if (core_.actor(actor).attached)
    return *attached_;
  return *launched_;
}

void LiveWorkers::add(ActorId actor, const actors::EngineConfig& engine) {
  const ActorSpec& spec = core_.actor(actor);
  links_.connections().add(spec.name);
  launched_->add(spec.name, engine);
  if (spec.attached)
    links_.connections().attach(actor);
}

void LiveWorkers::actors_changed() {
  if (attached_)
    attached_->places_changed();
}

// --- Commands

void LiveWorkers::execute(const command::Launch& c) {
  const ActorSpec& spec = core_.actor(c.actor);
  if (c.reason) {
    log_.warning(
        spec.attached ? "actor lost; waiting for another worker" : "actor lost; starting it again",
        {{"actor", spec.name}, {"why", core_.text(c.reason)}});
  }
  weights_.leave_relays(c.actor);
  ending_.erase(c.actor);
  source_of(c.actor).provide(c.actor);
}

void LiveWorkers::execute(const command::Discard& c) {
  const std::string& name = core_.actor(c.actor).name;
  if (!c.reason) {
    log_.info("actor wanted again before it ended; starting it again", {{"actor", name}});
  } else {
    log_.warning("actor lost; starting it again later",
                 {{"actor", name},
                  {"why", core_.text(c.reason)},
                  {"in", to_text(std::max(Duration(0), c.until - core_.now()))}});
  }
  weights_.leave_relays(c.actor);
  ending_.erase(c.actor);
  dismiss(c.actor);
}

void LiveWorkers::execute(const command::Retire& c) {
  log_.info("actor removed", {{"actor", core_.actor(c.actor).name}});
  weights_.leave_relays(c.actor);
  if (!links_.is_connected(c.actor) || !core_.state().fleet.state(c.actor).ready())
    return source_of(c.actor).dismiss(c.actor);
  links_.send(c.actor, actors::Stop{});
  ending_[c.actor] = core_.now() + kEndGrace;
}

// --- Ends of workers

void LiveWorkers::lose(ActorId actor, const WorkerEnd& end) {
  std::string reason = actors::bounded_text(end.reason);
  source_of(actor).forget(actor, reason);
  if (!core_.finished())
    core_.post(event::ActorDown{actor, std::move(reason), false, end.permanent, end.not_finite});
}

void LiveWorkers::lose_violator(ActorId actor, const Error& violation) {
  source_of(actor).forget(actor, "protocol violation: " + violation.context);
  if (core_.finished())
    return;
  const bool not_finite = violation.code == ErrorCode::NotFinite;
  core_.post(event::ActorDown{actor, violation.context, true, false, not_finite});
}

/// How a launched worker's process ends says more than the end of its connection, and is known in a
/// moment.
void LiveWorkers::on_broken(ActorId actor, const actors::PeerId& peer, const std::string& why) {
  if (core_.actor(actor).attached)
    return lose(actor, {why});
  const auto wait = std::make_shared<boost::asio::steady_timer>(io_, kProcessEnd);
  wait->async_wait([this, wait, peer, why](auto) {
    const auto still = links_.connections().actor_of(peer);
    if (still && !ending_.contains(*still))  // otherwise end_overdue() waits for it
      lose(*still, {why});
  });
}

/// A role that is being built may hold up its heartbeats (a Python extension that keeps the
/// interpreter's lock). Its start has a deadline of its own, and the end of its process is seen.
void LiveWorkers::lose_silent(Duration timeout, Time now) {
  for (const ActorId actor : links_.silent_for(timeout, now)) {
    const bool may_be_silent =
        !core_.actor(actor).attached && stage_of(core_.state(), actor) == actors::Stage::Starting;
    if (!may_be_silent)
      lose(actor, {fmt::format("silent for {}", to_text(timeout))});
  }
}

void LiveWorkers::end_overdue(Time now) {
  std::vector<ActorId> overdue;
  for (const auto& [actor, until] : ending_) {
    if (until <= now)
      overdue.push_back(actor);
  }
  for (const ActorId actor : overdue) {
    ending_.erase(actor);
    source_of(actor).dismiss(actor);
    core_.enqueue(event::ActorDown{actor, "did not end in time"});
  }
  core_.process();
}

void LiveWorkers::note_loading() {
  for (std::uint32_t i = 0; i < core_.config().actors.size(); ++i) {
    const ActorId actor(i);
    const auto pid = links_.connections().pid_of(actor);
    if (!pid || links_.is_connected(actor)) {
      processor_.erase(actor);
      continue;
    }
    const Duration now = processor_time(*pid);
    const auto [before, is_new] = processor_.try_emplace(actor, now);
    const Duration used = now - std::exchange(before->second, now);
    if (!is_new && used >= kLeastProcessor && core_.wants_to_know_that_loads(actor))
      core_.enqueue(event::ActorLoading{actor});
  }
  core_.process();
}

Status LiveWorkers::follow_keys(Time now) {
  return attached_ ? attached_->look_again(now) : Status();
}

void LiveWorkers::on_end(ActorId actor, WorkerEnd end) {
  if (core_.finished())
    return stop_loop_if_none_left();
  ending_.erase(actor);
  core_.post(event::ActorDown{actor, std::move(end.reason), false, end.permanent, end.not_finite});
}

void LiveWorkers::dismiss(ActorId actor) {
  faults_.drop_start(actor);
  source_of(actor).dismiss(actor);
}

void LiveWorkers::end_all() {
  ending_.clear();
  for (std::uint32_t i = 0; i < core_.config().actors.size(); ++i)
    dismiss(ActorId(i));
}

// --- The end of the run

void LiveWorkers::begin_end(bool ok, Duration grace) {
  for (std::uint32_t i = 0; i < core_.config().actors.size(); ++i) {
    if (links_.is_connected(ActorId(i)))
      links_.send(ActorId(i), actors::Stop{});
    else
      dismiss(ActorId(i));  // there is no worker to ask
  }
  if (attached_) {
    using Run = AttachedWorkers::Run;
    attached_->say_the_end(ok ? Run::Finished : Run::GoesOnLater);
  }
  stop_loop_if_none_left();
  const auto timer = std::make_shared<boost::asio::steady_timer>(io_, grace);
  timer->async_wait([this, timer](auto error) {
    if (error)
      return;
    launched_->abandon_all();
    if (attached_)
      attached_->abandon_all();
    stop_loop_if_none_left();
  });
}

void LiveWorkers::stop_loop_if_none_left() {
  if (launched_->left() == 0 && (attached_ == nullptr || attached_->left() == 0))
    io_.stop();
}

}  // namespace temper::orchestrator
