// A scheduler and actors that answer in the order they were asked, as far as a test lets them: two
// engines, a reference, a reward and a trainer with cards of their own; a checkpoint after every
// update.
#pragma once

#include "orchestrator/scheduler/scheduler.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <tuple>

namespace temper::orchestrator::testing {

class ScriptedRun {
 public:
  static SchedulerConfig small_config() {
    using actors::RoleKind;
    SchedulerConfig c;
    c.actors = {{"rollout-0", RoleKind::Rollout, {}, 4, false},
                {"rollout-1", RoleKind::Rollout, {}, 4, false},
                {"reference-0", RoleKind::Reference, {}, 0, false},
                {"reward-0", RoleKind::Reward, {}, 0, false},
                {"trainer", RoleKind::Trainer, {}, 0, false}};
    c.steps = 4;
    c.groups_per_update = 1;
    c.responses_per_group = 2;
    c.staleness_bound = 1;
    c.checkpoint_every = 1;
    return c;
  }

  explicit ScriptedRun(const SchedulerConfig& config = small_config()) {
    on(event::Started{config});
  }

  const Scheduler& scheduler() const { return scheduler_; }
  Time now() const { return now_; }
  void wait(Duration time) { now_ += time; }
  ActorId rollout() const { return ActorId(0); }
  ActorId other_rollout() const { return ActorId(1); }
  ActorId with_role(actors::RoleKind role) const {
    return scheduler_.fleet().with_role(role).front();
  }

  /// Lets it happen a millisecond after what happened last; what it commands is kept to be
  /// answered.
  Commands on(const Event& event) {
    now_ += std::chrono::milliseconds(1);
    Commands commands = scheduler_.on(event, now_);
    for (const Command& command : commands) {
      std::visit([this]<class C>(const C& c) { std::get<std::optional<C>>(last_) = c; }, command);
      open_.push_back(command);
    }
    return commands;
  }
  /// The last such command. Requires: there was one.
  template <class C>
  const C& last() const {
    return std::get<std::optional<C>>(last_).value();
  }
  void ready(ActorId actor) {
    const bool trains = actor == scheduler_.fleet().trainer();
    on(event::ActorReady{actor,
                         trains ? std::optional(scheduler_.progress().version) : std::nullopt});
  }
  /// Answers commands in their order until one of this kind is given, which stays open.
  template <class C>
  void until() {
    std::get<std::optional<C>>(last_).reset();
    for (int i = 0; i < 1000; ++i) {
      if (std::get<std::optional<C>>(last_))
        return;
      ASSERT_FALSE(open_.empty());
      const Command command = std::move(open_.front());
      open_.pop_front();
      std::visit([this](const auto& c) { this->answer(c); }, command);
    }
    FAIL() << "no such command";
  }

  // --- Honest answers
  event::Generated generated(const command::Dispatch& c) const {
    event::Generated e{c.actor, {}};
    for (const ResponseId r : c.responses)
      e.items.push_back({c.lease, r, Tokens(5), Tokens(3), {{c.version, Tokens(3)}}});
    return e;
  }
  event::Judged judged(const command::Judge& c) const {
    event::Judged e{c.actor, c.lease, {}};
    for (std::size_t i = 0; i < c.responses.size(); ++i)
      e.items.push_back({static_cast<double>(i), false});
    return e;
  }
  event::Trained trained(const command::Train& c) const {
    event::Trained e{c.actor, c.lease, next(c.certificate.step), {}, {}};
    for (const auto& entry : c.certificate.groups)
      e.groups.push_back(entry.group);
    return e;
  }

 private:
  void answer(const command::Launch& c) { ready(c.actor); }
  void answer(const command::Dispatch& c) { on(generated(c)); }
  void answer(const command::ScoreReference& c) { on(event::ReferenceScored{c.actor, c.lease}); }
  void answer(const command::Judge& c) { on(judged(c)); }
  void answer(const command::Train& c) { on(trained(c)); }
  void answer(const command::StageWeights& c) { on(event::WeightsStaged{c.actor, c.version, ""}); }
  void answer(const command::CommitWeights& c) {
    on(event::WeightsCommitted{c.actor, c.version, ""});
  }
  void answer(const command::Switch& c) { on(event::Switched{c.actor, c.action, {}, ""}); }
  void answer(const command::SaveCheckpoint& c) { on(event::CheckpointSaved{c.version, ""}); }
  template <class C>
  void answer(const C&) {}

  template <class Variant>
  struct LastOf;
  template <class... Cs>
  struct LastOf<std::variant<Cs...>> {
    using type = std::tuple<std::optional<Cs>...>;
  };

  Scheduler scheduler_;
  Time now_{};
  LastOf<Command>::type last_;
  std::deque<Command> open_;
};

}  // namespace temper::orchestrator::testing
