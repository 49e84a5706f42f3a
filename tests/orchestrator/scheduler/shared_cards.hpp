// Actors that take turns on the trainer's cards, around a RoleSwitch: a trainer, two engines and a
// reference, which do what they are asked when the test says so, and the parts of the scheduler
// that a switch waits for: publishing weights, giving memory, calling references.
#pragma once

#include "core/random.hpp"
#include "orchestrator/scheduler/sharing/role_switch.hpp"
#include "tests/orchestrator/scheduler/run_state.hpp"

#include <gtest/gtest.h>

#include <deque>
#include <utility>
#include <vector>

namespace temper::orchestrator::testing {

/// One turn of everything, in the order of the header's list.
constexpr SwitchPhase kWholeTurn[] = {SwitchPhase::Train,
                                      SwitchPhase::DrainTrain,
                                      SwitchPhase::OffloadOptimizer,
                                      SwitchPhase::Reshard,
                                      SwitchPhase::Bind,
                                      SwitchPhase::KvAlloc,
                                      SwitchPhase::Rollout,
                                      SwitchPhase::CutRoute,
                                      SwitchPhase::Interrupt,
                                      SwitchPhase::FreeKv,
                                      SwitchPhase::OffloadWeights,
                                      SwitchPhase::OnloadReference,
                                      SwitchPhase::Score,
                                      SwitchPhase::OffloadReference,
                                      SwitchPhase::Onload};

inline Fleet shared_fleet() {
  using actors::RoleKind;
  Fleet fleet({{"trainer", RoleKind::Trainer, {}, 0, false},
               {"rollout-0", RoleKind::Rollout, {}, 4, true},
               {"rollout-1", RoleKind::Rollout, {}, 4, true},
               {"reference-0", RoleKind::Reference, {}, 0, true}});
  for (std::uint32_t i = 0; i < fleet.size(); ++i)
    fleet.change(ActorId(i)).life = Life::Ready;
  return fleet;
}

/// Actors that answer when told.
class SharedCards {
 public:
  using Asked = std::vector<std::pair<ActorId, actors::SwitchAction>>;

  SharedCards() : fleet(shared_fleet()), turns(fleet) {}

  Fleet fleet;
  RoleSwitch turns;
  const PolicyVersion published{5};
  Asked asked;

  ActorState& state(ActorId a) { return fleet.change(a); }
  Asked take_asked() { return std::exchange(asked, {}); }

  Status try_advance() {
    return turns.advance(fleet, published, [this](ActorId a, actors::SwitchAction action) {
      state(a).switching = action;
      asked.emplace_back(a, action);
    });
  }
  void advance() { ASSERT_TRUE(try_advance()); }

  /// The actor has done what it was asked.
  void answer(ActorId a) {
    const auto action = std::exchange(state(a).switching, std::nullopt);
    if (action == actors::SwitchAction::FreeKv)
      state(a).has_kv = false;
    if (action == actors::SwitchAction::FreeWeights)
      state(a).version.reset();
    if (action == actors::SwitchAction::OffloadReference)
      state(a).onboard = false;
  }
  /// The trainer has refused to bring its optimizer back.
  void refuse(const std::string& why) {
    state(kTrainer).switching.reset();
    turns.onload_refused(why);
  }
  void stage(ActorId engine, PolicyVersion version) {
    state(engine).staging = version;
    state(engine).staged = true;
  }
  void commit(ActorId engine) {
    state(engine).version = published;
    state(engine).staging.reset();
    state(engine).staged = false;
  }
  /// The actor does what the phase wants of it.
  void obey(ActorId a) {
    answer(a);
    if (a == kTrainer)
      return;
    if (a == kReference) {
      state(a).onboard = turns.allows_reference();
      return;
    }
    if (turns.phase() == SwitchPhase::Reshard)
      stage(a, published);
    if (turns.phase() == SwitchPhase::Bind)
      commit(a);
    if (turns.phase() == SwitchPhase::KvAlloc)
      state(a).has_kv = true;
  }
  void answer_engines_until(SwitchPhase phase) {
    for (int i = 0; i < 8 && turns.phase() != phase; ++i) {
      answer(kEngine);
      answer(kOther);
      advance();
    }
    ASSERT_EQ(turns.phase(), phase);
  }
  /// Everybody does what is wanted until the phase begins; scoring is on the way.
  void go_to(SwitchPhase phase) {
    for (int i = 0; i < 64 && turns.phase() != phase; ++i) {
      for (const ActorId a : {kTrainer, kEngine, kOther, kReference})
        obey(a);
      request_next();
      if (turns.phase() != phase)
        advance();
    }
    ASSERT_EQ(turns.phase(), phase);
  }

 private:
  void request_next() {
    if (turns.phase() == SwitchPhase::Train)
      turns.request_rollout();
    else if (turns.phase() == SwitchPhase::Rollout)
      turns.request_training(RoleSwitch::Scoring::Needed, {kEngine, kOther});
    else if (turns.phase() == SwitchPhase::Score)
      turns.scored();
  }
};

/// Actors that answer, die and come back in a random order, and what lies on their cards meanwhile.
class RandomCards {
 public:
  explicit RandomCards(std::uint64_t seed)
      : random_(seed, "test.role_switch"), fleet_(shared_fleet()), turns_(fleet_), on_(4) {
    on_[kTrainer.value()].weights = true;  // Its optimizer.
  }

  /// What was found on the cards that must not be; empty: nothing.
  const std::string& broken() const { return broken_; }
  /// Times that training began again.
  int turns_taken() const { return turns_taken_; }

  void step() {
    const ActorId a(static_cast<std::uint32_t>(random_.below(4)));
    switch (random_.below(6)) {
      case 0:
        if (a != kTrainer && random_.chance(0.1))
          die_or_return(a);
        break;
      case 1:
        if (random_.chance(0.3))
          request();
        break;
      default:
        work(a);
    }
    drive();
    look();
  }

 private:
  using A = actors::SwitchAction;
  struct Memory {
    bool weights = false;  ///< Of an engine or a reference; the trainer's optimizer.
    bool kv = false;
    std::deque<A> inbox;
  };

  ActorState& state(ActorId a) { return fleet_.change(a); }

  void die_or_return(ActorId a) {
    if (state(a).life == Life::Ready) {
      state(a) = ActorState{};
      on_[a.value()] = Memory{};
    } else {
      state(a).life = Life::Ready;
    }
  }
  void request() {
    switch (turns_.phase()) {
      case SwitchPhase::Train:
        ++published_;
        return random_.chance(0.5) ? turns_.request_rollout() : turns_.request_scoring();
      case SwitchPhase::Rollout:
        return turns_.request_training(
            random_.chance(0.5) ? RoleSwitch::Scoring::Needed : RoleSwitch::Scoring::None,
            {kEngine, kOther});
      default:
        return turns_.scored();
    }
  }
  /// The actor carries out the oldest thing it was asked, and answers.
  void work(ActorId a) {
    Memory& memory = on_[a.value()];
    ActorState& s = state(a);
    if (!s.ready() || memory.inbox.empty())
      return publish(a);
    const A action = memory.inbox.front();
    memory.inbox.pop_front();
    if (action == A::OnloadOptimizer && random_.chance(0.2)) {
      s.switching.reset();
      return turns_.onload_refused("no room");
    }
    carry_out(action, memory);
    if (s.switching != action)
      return;  // It was asked for something else meanwhile.
    s.switching.reset();
    s.has_kv = memory.kv;
    s.onboard = a == kReference && memory.weights;
    if (action == A::FreeWeights)
      s.version.reset();
  }
  static void carry_out(A action, Memory& memory) {
    if (action == A::FreeKv || action == A::AllocateKv)
      memory.kv = action == A::AllocateKv;
    if (action == A::FreeWeights || action == A::OffloadOptimizer || action == A::OffloadReference)
      memory.weights = false;
    if (action == A::OnloadOptimizer || action == A::OnloadReference)
      memory.weights = true;
  }
  /// What the scheduler does in the phases that allow it: weights, then memory, then references.
  void publish(ActorId a) {
    ActorState& s = state(a);
    if (!s.ready() || s.switching)
      return;
    if (a == kReference && turns_.allows_reference() && !s.onboard)
      return ask(a, A::OnloadReference);
    if (a != kEngine && a != kOther)
      return;
    if (!s.staging && s.version != version() && turns_.allows_publication(a)) {
      s.staging = version();
      s.staged = true;
      on_[a.value()].weights = true;
    } else if (s.staging && turns_.phase() != SwitchPhase::Reshard) {
      s.version = std::exchange(s.staging, std::nullopt);
      s.staged = false;
    } else if (s.version && !s.has_kv && turns_.allows_kv(a)) {
      ask(a, A::AllocateKv);
    }
  }
  void ask(ActorId a, A action) {
    state(a).switching = action;
    on_[a.value()].inbox.push_back(action);
  }
  void drive() {
    const SwitchPhase before = turns_.phase();
    const Status status =
        turns_.advance(fleet_, version(), [this](ActorId a, A action) { ask(a, action); });
    if (!status)  // Refused too often: the run would end here; this world begins another one.
      *this = RandomCards(random_.next(), turns_taken_, std::move(broken_));
    else if (before != SwitchPhase::Train && turns_.phase() == SwitchPhase::Train)
      ++turns_taken_;
  }
  RandomCards(std::uint64_t seed, int turns_taken, std::string broken) : RandomCards(seed) {
    turns_taken_ = turns_taken;
    broken_ = std::move(broken);
  }
  void look() {
    const bool optimizer = on_[kTrainer.value()].weights,
               reference = on_[kReference.value()].weights;
    bool engines = false;
    for (const ActorId a : {kEngine, kOther})
      engines = engines || on_[a.value()].weights || on_[a.value()].kv;
    const auto note = [this](bool bad, const char* what) {
      if (bad && broken_.empty())
        broken_ = std::string(what) + " in " + std::string(name_of(turns_.phase()));
    };
    note(optimizer && engines, "optimizer and engines");
    note(optimizer && reference, "optimizer and reference");
    note(engines && reference, "engines and reference");
    note(turns_.allows_training() && !optimizer, "training without its optimizer");
    note(turns_.allows_rollout(kEngine) && (optimizer || reference), "rollout on cards in use");
  }
  PolicyVersion version() const { return PolicyVersion(published_); }

  Random random_;
  Fleet fleet_;
  RoleSwitch turns_;
  std::vector<Memory> on_;
  std::uint64_t published_ = 1;
  int turns_taken_ = 0;
  std::string broken_;
};

}  // namespace temper::orchestrator::testing
