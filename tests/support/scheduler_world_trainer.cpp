// The trainer of a random world: what it is sent, and tensors that are gone before.
#include "core/check.hpp"
#include "tests/support/scheduler_world.hpp"

namespace temper::orchestrator::testing {

bool World::loses_tensors(LeaseId lease, const std::vector<ResponseId>& responses) {
  if (!random_.chance(chaos_.lost_in_batch))
    return false;
  event::TensorsLost e{lease, {}};
  for (const ResponseId r : responses) {
    if (scheduler_.queue().holds(lease, r) && random_.chance(0.5))
      e.lost.push_back(r);
  }
  if (e.lost.empty())
    return false;
  lost_in_batch_ += e.lost.size();
  // No event comes between.
  at(now_, [this, e] { deliver(e); });
  return true;
}

void World::act(const command::Train& c) {
  if (loses_tensors(c.lease, c.responses))
    return;
  to_actor(c.actor, [this, c](Actor&) {
    at(now_ + delay(30), [this, c, n = actors_[c.actor.value()].incarnation] {
      if (actors_[c.actor.value()].incarnation != n || !actors_[c.actor.value()].alive)
        return;
      event::Trained trained{c.actor, c.lease, next(c.certificate.step), {}, {}};
      for (const auto& entry : c.certificate.groups)
        trained.groups.push_back(entry.group);
      for (const ResponseId r : c.responses)
        prepared_.erase(r);
      TEMPER_CHECK(actors_[c.actor.value()].lied || prepared_.empty(),
                   "what was prepared is in the next update");
      trainer_version_ = trained.version;
      from_actor(c.actor, trained);
      if (random_.chance(chaos_.stop))
        at(now_ + delay(5), [this] { deliver(event::StopRequested{}); });
    });
  });
}

void World::act(const command::Prepare& c) {
  if (loses_tensors(c.lease, c.responses))
    return;
  to_actor(c.actor, [this, c](Actor& a) {
    TEMPER_CHECK(a.lied || trainer_version_ == c.step, "gradients are of the trainer's version");
    prepared_.insert(c.responses.begin(), c.responses.end());
    at(now_ + delay(10), [this, c, n = actors_[c.actor.value()].incarnation] {
      if (actors_[c.actor.value()].incarnation == n && actors_[c.actor.value()].alive)
        from_actor(c.actor, event::Prepared{c.actor, c.lease});
    });
  });
}

}  // namespace temper::orchestrator::testing
