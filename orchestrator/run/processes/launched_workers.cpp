#include "orchestrator/run/processes/exit_reason.hpp"
#include "orchestrator/run/processes/worker_source.hpp"

#include <algorithm>

namespace temper::orchestrator {

LaunchedWorkers::LaunchedWorkers(boost::asio::io_context& io,
                                 Plan plan,
                                 LaunchCredentials& credentials,
                                 actors::AsioRouter& router,
                                 Connections& connections,
                                 OnEnd on_end)
    : plan_(std::move(plan)),
      credentials_(credentials),
      router_(router),
      connections_(connections),
      on_end_(std::move(on_end)),
      again_(plan_.names.size()),
      supervisor_(io, [this](const ChildExit& e) { on_exit(e); }) {}

void LaunchedWorkers::add(std::string name, actors::EngineConfig engine) {
  plan_.names.push_back(std::move(name));
  plan_.engines.push_back(std::move(engine));
  again_.push_back(false);
}

void LaunchedWorkers::provide(ActorId actor) {
  const std::string& name = plan_.names[actor.value()];
  forget(actor, {});
  if (supervisor_.is_running(name)) {
    again_[actor.value()] = true;
    supervisor_.kill(name);
  } else {
    start(actor);
  }
}

void LaunchedWorkers::forget(ActorId actor, const std::string&) {
  if (const actors::PeerId* peer = connections_.peer_of(actor))
    router_.forget(*peer);
  connections_.forget(actor);
}

void LaunchedWorkers::dismiss(ActorId actor) {
  forget(actor, {});
  again_[actor.value()] = false;
  supervisor_.kill(plan_.names[actor.value()]);
}

void LaunchedWorkers::start(ActorId actor) {
  again_[actor.value()] = false;
  if (plan_.puts_off && plan_.puts_off(actor))
    return;
  const std::string& name = plan_.names[actor.value()];
  const auto credentials = credentials_.issue(name, router_);
  if (!credentials)
    return on_end_(actor, {credentials.error().context});
  auto spec = actor_child({name, router_.endpoint(), *credentials, plan_.log_of(name)},
                          plan_.worker,
                          plan_.engines[actor.value()]);
  if (!spec)
    return on_end_(actor, {spec.error().context, true});  // it has no such program
  if (plan_.engines[actor.value()].kind != actors::EngineKind::Command)
    spec->cores = plan_.cores;  // it pins itself to its cards, which are these
  const auto pid = supervisor_.start(*spec);
  if (!pid)
    return on_end_(actor, {pid.error().context, pid.error().code == ErrorCode::NotFound});
  connections_.expect(actor, *pid);
}

void LaunchedWorkers::signal(ActorId actor, int number) {
  supervisor_.signal(plan_.names[actor.value()], number);
}

void LaunchedWorkers::on_exit(const ChildExit& exit) {
  const auto it = std::ranges::find(plan_.names, exit.name);
  const ActorId actor(static_cast<std::uint32_t>(it - plan_.names.begin()));
  if (again_[actor.value()])
    return start(actor);
  forget(actor, {});
  on_end_(actor, {exit_reason(exit), exit.permanent});
}

}  // namespace temper::orchestrator
