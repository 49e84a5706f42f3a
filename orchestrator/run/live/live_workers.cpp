// The live driver, on its workers: where they come from, who is let in, and how they end.
#include "actors/protocol/catalog.hpp"
#include "orchestrator/run/live/live_driver.hpp"
#include "orchestrator/run/live/loop.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

namespace temper::orchestrator {
namespace {

constexpr Duration kStopGrace = std::chrono::seconds(2);
constexpr std::size_t kLongestName = 256;

/// What a worker calls its host, fit to be shown anywhere.
std::string host_name(std::string_view said) {
  constexpr std::size_t kLongest = 63;
  std::string out(said.substr(0, kLongest));
  std::ranges::replace_if(
      out,
      [](unsigned char c) { return std::isalnum(c) == 0 && c != '.' && c != '-' && c != '_'; },
      '?');
  return out.empty() ? "?" : out;
}

}  // namespace

/// Last of open(): from here on workers come.
Status LiveDriver::find_workers() {
  LaunchedWorkers::Plan plan;
  for (std::uint32_t i = 0; i < scheduler_config_.actors.size(); ++i) {
    const ActorSpec& spec = scheduler_config_.actors[i];
    plan.names.push_back(spec.name);
    plan.engines.push_back(engine_of(options_.pipeline.config, spec.role));
    if (spec.attached)
      connections_.attach(ActorId(i));
  }
  plan.worker = options_.worker;
  plan.cores = options_.cores;
  plan.log_of = [this](std::string_view name) { return run_dir_.log_of(name); };
  plan.puts_off = [this](ActorId actor) { return faults_ && faults_->puts_off(actor); };
  const auto end = [this](ActorId actor, WorkerEnd how) { on_end(actor, std::move(how)); };
  launched_ = std::make_unique<LaunchedWorkers>(
      loop_->io, std::move(plan), handout_, *router_, connections_, end);
  if (ring_) {
    TEMPER_TRY(
        attached_,
        AttachedWorkers::open({options_.run_dir, options_.pipeline.config.transport.advertise},
                              *std::move(ring_),
                              *router_,
                              connections_,
                              end));
    log_.info("workers may attach",
              {{"run", attached_->run()}, {"orchestrator", attached_->incarnation()}});
  }
  return {};
}

bool LiveDriver::is_attached(ActorId actor) const {
  return scheduler_config_.actors[actor.value()].attached;
}

WorkerSource& LiveDriver::source_of(ActorId actor) {
  if (is_attached(actor))
    return *attached_;
  return *launched_;
}

void LiveDriver::dismiss(ActorId actor) {
  if (faults_)
    faults_->drop(actor);
  source_of(actor).dismiss(actor);
}

void LiveDriver::execute(const command::Launch& c) {
  const std::string& name = scheduler_config_.actors[c.actor.value()].name;
  if (c.reason) {
    log_.warning(is_attached(c.actor) ? "actor lost; waiting for another worker"
                                      : "actor lost; starting it again",
                 {{"actor", name}, {"why", text(c.reason)}});
  }
  leave_relays(c.actor);
  ending_.erase(c.actor);
  source_of(c.actor).provide(c.actor);
}

void LiveDriver::tell_feeders(const std::vector<RelayOrder::Feed>& feeds) {
  for (const RelayOrder::Feed& feed : feeds)
    send(feed.feeder, actors::FeedWeights{feed.key, feed.admitted});
}

/// It feeds nobody any more, and nobody feeds it.
void LiveDriver::leave_relays(ActorId actor) {
  tell_feeders(relays_.leave(actor));
}

void LiveDriver::execute(const command::Discard& c) {
  const std::string& name = scheduler_config_.actors[c.actor.value()].name;
  if (!c.reason) {
    log_.info("actor brought back before it had ended; starting it again", {{"actor", name}});
  } else {
    log_.warning("actor lost; starting it again later",
                 {{"actor", name},
                  {"why", text(c.reason)},
                  {"in", to_text(std::max(Duration(0), c.until - clock_->now()))}});
  }
  leave_relays(c.actor);
  ending_.erase(c.actor);
  dismiss(c.actor);
}

/// A role that is being built may hold up its heartbeats (an extension of Python that keeps the
/// interpreter's lock). Its start has a deadline of its own, and the end of its process is seen.
bool LiveDriver::may_be_silent(ActorId actor) const {
  return !is_attached(actor) && scheduler_.stage_of(actor) == actors::Stage::Starting;
}

void LiveDriver::on_end(ActorId actor, WorkerEnd end) {
  if (outcome_)
    return end_if_none_left();
  ending_.erase(actor);
  post(event::ActorDown{actor, std::move(end.reason), false, end.permanent});
}

void LiveDriver::end_if_none_left() {
  if (launched_->left() == 0 && (attached_ == nullptr || attached_->left() == 0))
    loop_->io.stop();
}

void LiveDriver::on_hello(const actors::PeerId& peer,
                          const std::string& user,
                          const actors::IncomingMessage& message) {
  const auto hello = message.decode<actors::Hello>();
  if (!hello)
    return router_->drop(peer, hello.error().context);
  if (outcome_ && hello->attached && connections_.has_secret(*hello))
    return router_->send(peer, actors::outgoing(actors::Stop{}));
  const auto actor = hello->attached && attached_ != nullptr
                         ? attached_->admit(peer, user, *hello, clock_->now())
                         : connections_.admit(peer, *hello, clock_->now());
  if (!actor)
    return refuse(peer, *hello, actor.error());
  if (is_attached(*actor)) {
    clocks_[actor->value()] = {};
    relays_.join(*actor, actors::is_key(hello->relay.key) ? hello->relay : actors::RelayAddress());
    log_.info("worker attached",
              {{"actor", scheduler_config_.actors[actor->value()].name},
               {"host", hello->host},
               {"pid", hello->pid},
               {"key", user.substr(1)},
               {"served", hello->incarnation}});
    post(event::WorkerAttached{*actor, host_name(hello->host), hello->pid, user.substr(1)});
  }
  router_->admit(peer);
  router_->send(peer, actors::outgoing(welcome_for(*actor)));
}

actors::Welcome LiveDriver::welcome_for(ActorId actor) const {
  const TransportSection& t = options_.pipeline.config.transport;
  const ActorSpec& spec = scheduler_config_.actors[actor.value()];
  actors::Welcome welcome;
  welcome.actor = actor;
  welcome.role = role_config(options_.pipeline.config, spec, start_);
  welcome.epoch_monotonic_ns = clock_->epoch_monotonic_ns();
  welcome.heartbeat = t.heartbeat;
  welcome.heartbeat_timeout = t.heartbeat_timeout;
  welcome.name = spec.name;
  if (is_attached(actor)) {
    welcome.run = attached_->run();
    welcome.incarnation = attached_->incarnation();
    welcome.now = clock_->now();
    welcome.grace = t.grace;
    welcome.relay_timeout = t.relay_timeout;
  }
  return welcome;
}

void LiveDriver::refuse(const actors::PeerId& peer, const actors::Hello& hello, const Error& why) {
  const bool again = hello.attached && why.code == ErrorCode::Unavailable;
  if (!again && connections_.note_refusal()) {
    log_.warning("worker refused",
                 {{"name", actors::bounded_text(hello.name, kLongestName)},
                  {"host", actors::bounded_text(hello.host, kLongestName)},
                  {"why", why.context},
                  {"refused_so_far", connections_.refused()}});
  }
  if (connections_.has_secret(hello))
    router_->send(peer, actors::outgoing(actors::Reject{why.context, again}));
}

// --- The end

void LiveDriver::shut_down() {
  loop_->deadline.cancel();
  if (faults_)
    faults_->end();
  for (std::uint32_t i = 0; i < scheduler_config_.actors.size(); ++i) {
    if (connections_.peer_of(ActorId(i)) != nullptr) {
      send(ActorId(i), actors::Stop{});
    } else {
      dismiss(ActorId(i));  // nobody there to be asked
    }
  }
  if (attached_) {
    using Run = AttachedWorkers::Run;
    attached_->say_the_end(outcome_->finish.ok ? Run::Finished : Run::GoesOnLater);
  }
  end_if_none_left();
  loop_->grace.expires_after(signals_ > 1 ? Duration(0) : kStopGrace);
  loop_->grace.async_wait([this](auto error) {
    if (error)
      return;
    launched_->abandon_all();
    if (attached_)
      attached_->abandon_all();
    end_if_none_left();
  });
}

}  // namespace temper::orchestrator
