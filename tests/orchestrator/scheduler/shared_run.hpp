// A run on shared cards around a CardSharing. Its actors do what they are asked when the test says
// so; the test stands in for the parts that publish weights and dispatch groups.
#pragma once

#include "orchestrator/scheduler/sharing/card_sharing.hpp"
#include "tests/orchestrator/scheduler/run_state.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <vector>

namespace temper::orchestrator::testing {

class SharedRun {
 public:
  explicit SharedRun(const SchedulerConfig& config) : run(ready_run(config)), sharing(run) {}

  RunState run;
  CardSharing sharing;
  std::vector<command::Switch> asked;  ///< Every switch so far.
  std::vector<SwitchPhase> phases;     ///< Every phase that drive() stopped at, without repeats.

  SwitchPhase phase() const { return sharing.phase(); }
  ActorState& state(ActorId a) { return run.fleet.change(a); }

  void drive() {
    run.out.clear();
    sharing.drive(run);
    sharing.call_references(run);
    for (const auto& c : emitted<command::Switch>(run))
      asked.push_back(c);
    if (phases.empty() || phases.back() != phase())
      phases.push_back(phase());
  }
  /// The actor has done, or refused, what it was asked.
  std::optional<Reason> answer(ActorId actor, const std::string& error = {}) {
    const auto action = state(actor).switching;
    if (!action)
      return std::nullopt;
    if (*action == actors::SwitchAction::Interrupt && error.empty())
      run.saved.queue.revoke_all(actor);  // handed back
    return sharing.on_switched(run, {actor, *action, {}, error});
  }
  /// Weights, as far as the cards allow: staged, committed, and then a KV cache.
  void publish_to(ActorId engine) {
    ActorState& a = state(engine);
    const PolicyVersion published = run.saved.progress.version;
    if (!a.ready() || a.switching)
      return;
    if (a.staging) {
      if (sharing.must_wait_to_commit(run, engine))
        return;
      a.version = std::exchange(a.staging, std::nullopt);
      a.staged = false;
    } else if (a.version != published && sharing.may_get_weights(run, engine)) {
      a.staging = published;
      a.staged = true;
    } else if (!a.has_kv && a.version == published && sharing.may_get_kv(run, engine)) {
      a.switching = actors::SwitchAction::AllocateKv;
    }
  }
  /// Every actor does what it is asked, once.
  void work() {
    for (std::uint32_t i = 0; i < run.fleet.size(); ++i) {
      if (state(ActorId(i)).ready())
        answer(ActorId(i));
    }
    for (const ActorId engine : run.fleet.rollouts())
      publish_to(engine);
  }
  /// Withdrawn responses come back.
  void hand_back() {
    for (const ResponseId r : std::exchange(run.withdrawn, {})) {
      const Row* row = run.saved.queue.row(r);
      if (row != nullptr && row->lease[0] != LeaseId{})
        run.saved.queue.give_back(row->lease[0], r);
    }
  }
  /// The engine gets all that no engine has.
  void continue_on(ActorId engine) {
    std::vector<ResponseId> responses;
    for (const ResponseId r : run.saved.queue.ready(Task::Generate))
      responses.push_back(r);
    if (!responses.empty())
      run.saved.queue.lease(Task::Generate, engine, responses, Time::max());
  }
  void score_all() {
    std::vector<ResponseId> responses;
    for (const ResponseId r : run.saved.queue.ready(Task::Reference))
      responses.push_back(r);
    if (!responses.empty())
      do_task(run, Task::Reference, Field::ReferenceLogprobs, kReference, responses);
  }
  /// Everybody works until the cards come to this phase.
  void go_to(SwitchPhase to) {
    for (int i = 0; i < 64 && phase() != to; ++i) {
      work();
      drive();
    }
    ASSERT_EQ(phase(), to);
  }

  /// "rollout-0 free_kv" for each switch so far, in their order.
  std::vector<std::string> asked_in_words() const {
    std::vector<std::string> words;
    for (const auto& c : asked)
      words.push_back(fmt::format("{} {}", run.fleet.spec(c.actor).name, name_of(c.action)));
    return words;
  }
};

}  // namespace temper::orchestrator::testing
