// Small runs for the tests of one part of the scheduler: a RunState whose actors are ready, with
// groups as far along as a test needs them, and the commands that the part emits.
#pragma once

#include "orchestrator/scheduler/state/events.hpp"
#include "orchestrator/scheduler/state/run_state.hpp"
#include "tests/support/times.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <utility>
#include <vector>

namespace temper::orchestrator::testing {

constexpr ActorId kTrainer(0), kEngine(1), kOther(2), kReference(3), kReward(4);

/// Which actors share the trainer's cards.
enum class Shared { Nothing, OneEngine, Engines, EnginesAndReference };

/// A trainer, two engines, a reference and a verifier. A step takes two groups of two responses,
/// and two steps may be ahead: eight responses at most.
inline SchedulerConfig small_config(Shared shared = Shared::Nothing) {
  using actors::RoleKind;
  const bool engines = shared == Shared::Engines || shared == Shared::EnginesAndReference;
  SchedulerConfig c;
  c.actors = {{"trainer", RoleKind::Trainer, {}, 0, false},
              {"rollout-0", RoleKind::Rollout, {}, 4, engines},
              {"rollout-1", RoleKind::Rollout, {}, 4, shared != Shared::Nothing},
              {"reference-0", RoleKind::Reference, {}, 0, shared == Shared::EnginesAndReference},
              {"reward-0", RoleKind::Reward, {}, 0, false}};
  c.steps = 8;
  c.groups_per_update = 2;
  c.responses_per_group = 2;
  c.staleness_bound = 1;
  c.stragglers.even_load = false;
  return c;
}

/// The same without the reference.
inline SchedulerConfig config_without_reference(Shared shared = Shared::Nothing) {
  SchedulerConfig c = small_config(shared);
  std::erase_if(c.actors,
                [](const ActorSpec& actor) { return actor.role == actors::RoleKind::Reference; });
  return c;
}

/// Its actors are ready. Engines with cards of their own have the published version and a KV cache;
/// those on shared cards have neither.
inline RunState ready_run(const SchedulerConfig& config = small_config()) {
  RunState run;
  run.configure(config);
  run.fleet = Fleet(config.actors, config.starts_at_once);
  for (std::uint32_t i = 0; i < run.fleet.size(); ++i) {
    const ActorSpec& spec = run.fleet.spec(ActorId(i));
    ActorState& a = run.fleet.change(ActorId(i));
    a.life = spec.away ? Life::Down : Life::Ready;
    if (spec.role == actors::RoleKind::Rollout && !spec.takes_turns) {
      a.version = PolicyVersion();
      a.has_kv = true;
    }
  }
  return run;
}

// --- Versions

inline PolicyVersion version(std::uint64_t n) {
  return PolicyVersion(n);
}
/// The run is at this version, which its trainer has.
inline void publish(RunState& run, std::uint64_t n) {
  run.saved.progress.version = version(n);
  run.saved.outstanding.publish(version(n));
}
inline void give_version(RunState& run, ActorId engine, std::uint64_t n) {
  run.fleet.change(engine).version = version(n);
  run.fleet.change(engine).has_kv = true;
}

// --- Groups

/// A new group, none of whose responses any engine has.
inline GroupId add_group(RunState& run, std::uint64_t v0 = 0) {
  const GroupId group(run.saved.next_group++);
  ++run.saved.progress.groups_dispatched;
  run.saved.queue.add_group(group, version(v0));
  run.saved.outstanding.add(version(v0));
  return group;
}
inline ResponseId response(const RunState& run, GroupId group, std::size_t place) {
  return run.saved.queue.ids().at(group, place);
}
/// The engine generates the group's responses.
inline LeaseId generate_on(RunState& run, GroupId group, ActorId engine) {
  return run.saved.queue.lease(Task::Generate,
                               engine,
                               run.saved.queue.live_responses(group),
                               run.now + run.config.deadlines.generate);
}
inline GroupId generating_group(RunState& run, ActorId engine, std::uint64_t v0 = 0) {
  const GroupId group = add_group(run, v0);
  generate_on(run, group, engine);
  return group;
}
/// Grants the task for these responses to the actor, and commits the field that it makes.
inline void do_task(
    RunState& run, Task task, Field made, ActorId actor, const std::vector<ResponseId>& responses) {
  const LeaseId lease = run.saved.queue.lease(task, actor, responses, Time::max());
  for (const ResponseId r : responses)
    run.saved.queue.commit(lease, r, made);
}
/// Its responses have ended, with ten tokens of this version each.
inline GroupId generated_group(RunState& run, std::uint64_t v0 = 0) {
  const GroupId group = add_group(run, v0);
  const std::vector<ResponseId> responses = run.saved.queue.live_responses(group);
  for (const ResponseId r : responses)
    run.saved.queue.append_tokens(r, Tokens(5), Tokens(10), {{version(v0), Tokens(10)}});
  do_task(run, Task::Generate, Field::Response, kEngine, responses);
  return group;
}
/// It lacks nothing but the scores of the reference.
inline GroupId judged_group(RunState& run, std::uint64_t v0 = 0) {
  const GroupId group = generated_group(run, v0);
  do_task(run, Task::Reward, Field::Reward, kReward, run.saved.queue.live_responses(group));
  return group;
}
inline GroupId trainable_group(RunState& run, std::uint64_t v0 = 0) {
  const GroupId group = judged_group(run, v0);
  if (run.config.has_reference()) {
    do_task(run,
            Task::Reference,
            Field::ReferenceLogprobs,
            kReference,
            run.saved.queue.live_responses(group));
  }
  return group;
}

// --- Commands

template <class C>
std::vector<C> emitted(const RunState& run) {
  std::vector<C> found;
  for (const Command& command : run.out) {
    if (const auto* c = std::get_if<C>(&command))
      found.push_back(*c);
  }
  return found;
}
/// The only command of this kind; a failure of the test if there is none or another one.
template <class C>
C only(const RunState& run) {
  const std::vector<C> found = emitted<C>(run);
  EXPECT_EQ(found.size(), 1U) << "commands: " << C::kName;
  return found.empty() ? C{} : found.front();
}
inline Commands take_commands(RunState& run) {
  return std::exchange(run.out, {});
}

}  // namespace temper::orchestrator::testing
