#include "orchestrator/run/live/actor_links.hpp"

#include "actors/protocol/catalog.hpp"

#include <utility>

namespace temper::orchestrator {
namespace {

std::vector<std::string> names_of(const SchedulerConfig& config) {
  std::vector<std::string> names;
  for (const ActorSpec& spec : config.actors)
    names.push_back(spec.name);
  return names;
}

}  // namespace

ActorLinks::ActorLinks(RunCore& core, FaultInjection& faults, LaunchCredentials credentials)
    : core_(core),
      faults_(faults),
      credentials_(std::move(credentials)),
      connections_(names_of(core.config()), credentials_.secret()) {}

Status ActorLinks::bind(boost::asio::io_context& io,
                        const TransportSection& transport,
                        Events events,
                        const Log& log) {
  events_ = std::move(events);
  TEMPER_TRY(auto socket,
             actors::RouterSocket::bind(
                 socket_address(transport), transport.limits, log, credentials_.key()));
  actors::AsioRouter::Events from;
  from.on_message = [this](const auto& peer, const auto& m) { receive(peer, m); };
  from.on_heartbeat = [this](const auto& peer, const auto& m) {
    if (const auto actor = connections_.actor_of(peer); actor && !faults_.is_cut(*actor))
      events_.on_message(*actor, m);
  };
  from.on_hello = events_.on_hello;
  from.on_broken = [this](const auto& peer, const auto& why) {
    if (const auto actor = connections_.actor_of(peer))
      events_.on_broken(*actor, peer, why);
  };
  TEMPER_TRY(router_,
             actors::AsioRouter::create(io,
                                        std::move(socket),
                                        {transport.heartbeat, transport.limits.max_message},
                                        std::move(from),
                                        log));
  return {};
}

void ActorLinks::receive(const actors::PeerId& peer, const actors::IncomingMessage& message) {
  const auto actor = connections_.actor_of(peer);
  if (!actor)
    return router_->drop(peer, "not registered");
  if (faults_.is_cut(*actor))
    return faults_.hold(*actor, peer, message);
  events_.on_message(*actor, message);
}

void ActorLinks::send_message(ActorId actor, actors::OutgoingMessage message) {
  const actors::PeerId* peer = connections_.peer_of(actor);
  if (peer == nullptr)
    return;
  if (faults_.is_cut(actor))
    return faults_.hold(actor, *peer, std::move(message));
  router_->send(*peer, std::move(message));
}

void ActorLinks::deliver_held(ActorId actor, FaultInjection::HeldMessages held) {
  const actors::PeerId* worker = connections_.peer_of(actor);
  if (worker == nullptr || held.worker != *worker)
    return;
  for (actors::OutgoingMessage& message : held.to)
    send_message(actor, std::move(message));
  for (const actors::IncomingMessage& message : held.from)
    receive(held.worker, message);
}

std::vector<ActorId> ActorLinks::silent_for(Duration timeout, Time now) {
  for (const auto& [peer, actor] : connections_.peers()) {
    if (!faults_.is_cut(actor))
      connections_.heard(actor, now - router_->silence_of(peer));
  }
  return connections_.silent_since(now - timeout);
}

void ActorLinks::execute(const command::Cancel& c) {
  send(c.actor, actors::Cancel{{c.response}});
}

void ActorLinks::execute(const command::Withdraw& c) {
  send(c.actor, actors::Withdraw{c.responses});
}

void ActorLinks::execute(const command::Switch& c) {
  send(c.actor, actors::Switch{c.action});
}

void ActorLinks::execute(const command::SaveCheckpoint& c) {
  const auto folder = core_.begin_checkpoint(c.version);
  if (!folder)
    return core_.post(event::CheckpointSaved{c.version, folder.error().context});
  send(c.trainer, actors::SaveState{c.version, folder->string()});
}

}  // namespace temper::orchestrator
