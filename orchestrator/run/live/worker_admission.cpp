#include "orchestrator/run/live/worker_admission.hpp"

#include "actors/border/values.hpp"
#include "actors/protocol/catalog.hpp"

#include <algorithm>
#include <cctype>
#include <utility>

namespace temper::orchestrator {
namespace {

constexpr std::size_t kLongestName = 256;

/// A worker's name for its host, fit to be shown anywhere.
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

WorkerAdmission::WorkerAdmission(const LiveOptions& options,
                                 RunCore& core,
                                 ActorLinks& links,
                                 WeightSync& weights,
                                 WorkerClocks& clocks,
                                 const RealClock& clock,
                                 const Log& log)
    : options_(options),
      core_(core),
      links_(links),
      weights_(weights),
      clocks_(clocks),
      clock_(clock),
      log_(log),
      start_{options.base, {}, PolicyVersion(0)} {}

void WorkerAdmission::start_from(std::filesystem::path checkpoint, PolicyVersion version) {
  start_.checkpoint = std::move(checkpoint);
  start_.version = version;
}

void WorkerAdmission::on_hello(const actors::PeerId& peer,
                               const std::string& user,
                               const actors::IncomingMessage& message) {
  actors::AsioRouter& router = links_.router();
  Connections& connections = links_.connections();
  const auto hello = message.decode<actors::Hello>();
  if (!hello)
    return router.drop(peer, hello.error().context);
  if (core_.finished() && hello->attached && connections.has_secret(*hello))
    return router.send(peer, actors::outgoing(actors::Stop{}));
  const auto actor = hello->attached && attached_ != nullptr
                         ? attached_->admit(peer, user, *hello, clock_.now())
                         : connections.admit(peer, *hello, clock_.now());
  if (!actor)
    return refuse(peer, *hello, actor.error());
  if (core_.actor(*actor).attached)
    attach(*actor, user.substr(1), *hello);
  router.admit(peer);
  router.send(peer, actors::outgoing(welcome_for(*actor)));
}

void WorkerAdmission::attach(ActorId actor, const std::string& key, const actors::Hello& hello) {
  clocks_.reset(actor);
  weights_.join_relays(actor,
                       actors::is_key(hello.relay.key) ? hello.relay : actors::RelayAddress());
  log_.info("worker attached",
            {{"actor", core_.actor(actor).name},
             {"host", hello.host},
             {"pid", hello.pid},
             {"key", key},
             {"served", hello.incarnation}});
  core_.post(event::WorkerAttached{actor, host_name(hello.host), hello.pid, key});
}

actors::Welcome WorkerAdmission::welcome_for(ActorId actor) const {
  const PipelineConfig& config = options_.pipeline.config;
  const ActorSpec& spec = core_.actor(actor);
  actors::Welcome welcome;
  welcome.actor = actor;
  welcome.role = role_config(config, spec, start_);
  welcome.epoch_monotonic_ns = clock_.epoch_monotonic_ns();
  welcome.heartbeat = config.transport.heartbeat;
  welcome.heartbeat_timeout = config.transport.heartbeat_timeout;
  welcome.name = spec.name;
  if (spec.attached) {
    welcome.run = attached_->run();
    welcome.incarnation = attached_->incarnation();
    welcome.now = clock_.now();
    welcome.grace = config.transport.grace;
    welcome.relay_timeout = config.transport.relay_timeout;
    welcome.role.serves_weights = weights_.serves_weights(actor);
  }
  return welcome;
}

void WorkerAdmission::refuse(const actors::PeerId& peer,
                             const actors::Hello& hello,
                             const Error& why) {
  Connections& connections = links_.connections();
  const bool again = hello.attached && why.code == ErrorCode::Unavailable;
  if (!again && connections.note_refusal()) {
    log_.warning("worker refused",
                 {{"name", actors::bounded_text(hello.name, kLongestName)},
                  {"host", actors::bounded_text(hello.host, kLongestName)},
                  {"why", why.context},
                  {"refused_so_far", connections.refused()}});
  }
  if (connections.has_secret(hello))
    links_.router().send(peer, actors::outgoing(actors::Reject{why.context, again}));
}

}  // namespace temper::orchestrator
