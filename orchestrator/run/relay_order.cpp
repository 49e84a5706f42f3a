#include "orchestrator/run/relay_order.hpp"

#include <algorithm>

namespace temper::orchestrator {
namespace {

/// Of tcp://host:port.
std::string host_of(const std::string& endpoint) {
  return endpoint.substr(0, endpoint.rfind(':'));
}

}  // namespace

void RelayOrder::join(ActorId actor, const actors::RelayAddress& address) {
  take_out(actor);
  workers_.erase(actor);
  if (trainer_ == actor)
    trainer_.reset();  // this worker has published nothing yet
  if (!address.endpoint.empty())
    workers_[actor] = {address, host_of(address.endpoint), {}, {}};
}

std::vector<RelayOrder::Feed> RelayOrder::leave(ActorId actor) {
  std::vector<Feed> feeds;
  if (const auto it = workers_.find(actor); it != workers_.end()) {
    for (const ActorId feeder : it->second.told)
      feeds.push_back({feeder, it->second.address.key, false});
    workers_.erase(it);
  }
  take_out(actor);
  if (trainer_ == actor)
    trainer_.reset();
  for (auto& [id, worker] : workers_)
    worker.told.erase(actor);  // its successor knows no key
  return feeds;
}

void RelayOrder::take_out(ActorId actor) {
  std::erase(leaders_, actor);
  for (auto& [host, there] : hosts_)
    std::erase(there, actor);
}

void RelayOrder::begin_chain(PolicyVersion version) {
  version_ = version;
  leaders_.clear();
  hosts_.clear();
  if (!trainer_)
    return;
  leaders_.push_back(*trainer_);
  hosts_[workers_.at(*trainer_).host].push_back(*trainer_);
}

void RelayOrder::add_source(Plan& plan, Worker& worker, ActorId id, const Worker& source) {
  if (worker.told.insert(id).second)
    plan.feeds.push_back({id, worker.address.key, true});
  plan.sources.push_back(source.address);
}

std::optional<RelayOrder::Plan> RelayOrder::plan(ActorId actor, PolicyVersion version) {
  const auto it = workers_.find(actor);
  if (it == workers_.end())
    return std::nullopt;
  if (version_ != version)
    begin_chain(version);
  take_out(actor);
  Worker& worker = it->second;
  std::vector<ActorId>& there = hosts_[worker.host];
  worker.feeder.reset();
  if (!there.empty()) {
    worker.feeder = there.back();
  } else {
    if (!leaders_.empty())
      worker.feeder = leaders_.back();
    leaders_.push_back(actor);
  }
  there.push_back(actor);

  Plan plan;
  bool asks_trainer = false;
  std::optional<ActorId> feeder = worker.feeder;
  for (int i = 0; i < 2 && feeder && workers_.contains(*feeder); ++i) {
    const Worker& source = workers_.at(*feeder);
    add_source(plan, worker, *feeder, source);
    asks_trainer = asks_trainer || feeder == trainer_;
    feeder = source.feeder == actor ? std::nullopt : source.feeder;
  }
  if (trainer_ && !asks_trainer)
    add_source(plan, worker, *trainer_, workers_.at(*trainer_));
  return plan;
}

}  // namespace temper::orchestrator
