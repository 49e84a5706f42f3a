// A run at a moment when everything that actors can answer is open, and messages to be checked.
#pragma once

#include "orchestrator/scheduler/view/claims.hpp"
#include "tests/orchestrator/scheduler/run_state.hpp"

#include <vector>

namespace temper::orchestrator::testing {

/// At 100 s and version 1, everything that can be answered is open.
struct BusyRun {
  BusyRun() {
    run.now = at(100);
    publish(run, 1);
    give_version(run, kEngine, 1);
    generating = generate_on(run, add_group(run), kEngine);
    const GroupId scored = generated_group(run);
    scoring = lease(Task::Reference, kReference, scored);
    judging = lease(Task::Reward, kReward, scored);
    batch = trainable_group(run);
    training = lease(Task::Train, kTrainer, batch);
    over = lease(Task::Train, kTrainer, trainable_group(run));
    run.saved.queue.revoke(over);
    run.trainer.training = training;
    run.trainer.batch = {batch};
    run.trainer.saving = at(160);
    run.fleet.change(kEngine).busy_until = at(90);
    ActorState& other = run.fleet.change(kOther);
    other.staging = version(1);
    run.fleet.change(kTrainer).switching = actors::SwitchAction::OnloadOptimizer;
  }
  LeaseId lease(Task task, ActorId actor, GroupId group) {
    return run.saved.queue.lease(task, actor, run.saved.queue.live_responses(group), at(160));
  }
  event::Generated::Item item(std::size_t k = 0) const {
    return {generating, ResponseId(k), Tokens(5), Tokens(10), {{version(1), Tokens(10)}}};
  }
  event::Generated generated(const event::Generated::Item& item) const { return {kEngine, {item}}; }
  event::Trained trained() const { return {kTrainer, training, version(2), {batch}, {}}; }
  std::optional<actors::Claim> broken(const Event& e) const {
    const auto invalid = find_invalid_claim(run, e, run.now);
    if (!invalid)
      return std::nullopt;
    EXPECT_FALSE(invalid->what.empty());
    return invalid->claim;
  }

  RunState run = ready_run();
  GroupId batch;
  LeaseId generating, scoring, judging, training, over;
};

/// A message, and the claim that it breaks; none: it is possible.
struct Message {
  const char* what;
  Event (*make)(const BusyRun&);
  std::optional<actors::Claim> broken{};
};

inline void expect_claims(const std::vector<Message>& messages) {
  const BusyRun busy;
  for (const Message& m : messages)
    EXPECT_EQ(busy.broken(m.make(busy)), m.broken) << m.what;
}

}  // namespace temper::orchestrator::testing
