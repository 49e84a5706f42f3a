// Whose turn it is where cards are lent, or change role engine by engine; and what holds of every
// mode, whatever its actors do.
#include "core/random.hpp"
#include "tests/orchestrator/scheduler/shared_run.hpp"

namespace temper::orchestrator::testing {
namespace {

using actors::SwitchAction;
using Phase = SwitchPhase;

// --- Lending

SchedulerConfig lending(LendingRule rule) {
  SchedulerConfig c = small_config(Shared::OneEngine);
  c.lending = rule;
  return c;
}

TEST(Lending, LendsWhileTheNextStepLacksResponsesThatCanBeGenerated) {
  SharedRun s(lending(LendingRule::Always));
  s.drive();
  EXPECT_EQ(s.phase(), Phase::Train);  // nothing to generate
  generating_group(s.run, kEngine);
  s.drive();
  EXPECT_EQ(s.phase(), Phase::OffloadOptimizer);
  EXPECT_TRUE(s.sharing.may_prepare());
}

TEST(Lending, LendsNothingWhileABatchIsThere) {
  SharedRun s(lending(LendingRule::Always));
  generating_group(s.run, kEngine);
  trainable_group(s.run);
  trainable_group(s.run);
  s.drive();
  EXPECT_EQ(s.phase(), Phase::Train);
}

TEST(Lending, SpreadsTheYoungestResponsesWhenALoanBegins) {
  SharedRun s(lending(LendingRule::Always));
  for (int i = 0; i < 4; ++i)
    generating_group(s.run, kEngine);
  s.drive();
  s.go_to(Phase::Rollout);
  // Eight responses on two engines: four move.
  const auto moved = only<command::Withdraw>(s.run);
  EXPECT_EQ(moved.actor, kEngine);
  EXPECT_EQ(moved.responses,
            (std::vector{ResponseId(4), ResponseId(5), ResponseId(6), ResponseId(7)}));
}

TEST(Lending, MovesNothingWhereNoEngineHasMoreThanItsShare) {
  SchedulerConfig config = lending(LendingRule::Always);
  config.responses_per_group = 1;
  SharedRun s(config);
  generating_group(s.run, kEngine);
  s.drive();
  s.go_to(Phase::Rollout);
  EXPECT_TRUE(emitted<command::Withdraw>(s.run).empty());
}

TEST(Lending, LendsNothingWhereTheLentEnginesWouldIdle) {
  SchedulerConfig config = lending(LendingRule::Always);
  config.responses_per_group = config.groups_per_update = 1;
  config.steps = 1;
  SharedRun s(config);
  generating_group(s.run, kEngine);  // The only response, for example in a tool call.
  s.drive();
  EXPECT_EQ(s.phase(), Phase::Train);
}

TEST(Lending, LendsNothingForGroupsThatDispatchHoldsBack) {
  SchedulerConfig config = lending(LendingRule::Always);
  config.responses_per_group = 1;
  SharedRun s(config);
  generating_group(s.run, kEngine);  // No more than an even share.
  s.run.held_until = at(9);
  s.drive();
  EXPECT_EQ(s.phase(), Phase::Train);
  s.run.held_until.reset();
  s.drive();
  EXPECT_EQ(s.phase(), Phase::OffloadOptimizer);
}

TEST(Lending, CallsTheCardsBackForABatchOrWhenTheyIdle) {
  for (const bool batch : {false, true}) {
    SharedRun s(lending(LendingRule::Always));
    generating_group(s.run, kEngine);
    generating_group(s.run, kEngine);
    s.drive();
    s.go_to(Phase::Rollout);
    s.drive();
    EXPECT_EQ(s.phase(), Phase::Rollout);  // responses are on the way to the lent cards
    s.hand_back();
    s.drive();
    EXPECT_EQ(s.phase(), Phase::Rollout);  // and wait for them
    s.continue_on(kOther);
    s.drive();
    EXPECT_EQ(s.phase(), Phase::Rollout);  // and are generated on them
    if (batch) {
      trainable_group(s.run);
      trainable_group(s.run);
    } else {
      s.run.saved.queue.revoke_all(kOther);
      s.continue_on(kEngine);
    }
    s.drive();
    EXPECT_EQ(s.phase(), Phase::Interrupt) << batch;
  }
}

TEST(Lending, LendsAgainOnlyWhereItGainsMoreThanTheLastLoansCost) {
  struct Case {
    double seconds;  ///< In which the four responses of a batch were generated.
    bool lends;
  };
  // The loan is 20 s in transit. Twice the engines save half the time of four more responses.
  for (const Case& c : {Case{40, false}, Case{44, true}}) {
    SharedRun s(lending(LendingRule::Auto));
    generating_group(s.run, kEngine);
    generating_group(s.run, kEngine);
    s.sharing.generated(1, at(0));
    s.drive();  // the first loan always pays; it leaves at 0 s
    s.go_to(Phase::KvAlloc);
    s.run.now = at(10);  // arrives
    s.go_to(Phase::Rollout);
    s.hand_back();
    s.continue_on(kEngine);
    s.run.now = at(20);  // is called back
    s.drive();
    s.go_to(Phase::Onload);
    s.run.now = at(30);  // and returns
    s.work();
    s.drive();
    EXPECT_EQ(s.phase(), Phase::Train);
    s.drive();
    EXPECT_EQ(s.phase(), Phase::Train);  // how fast the engines are is not known yet
    s.sharing.generated(4, at(c.seconds));
    s.drive();
    EXPECT_EQ(s.phase() != Phase::Train, c.lends) << c.seconds;
  }
}

// --- One by one

SchedulerConfig one_by_one(std::vector<std::int32_t> shares) {
  SchedulerConfig c = small_config(Shared::Engines);
  c.switching = Switching::OneByOne;
  c.shares = std::move(shares);
  return c;
}

/// All engines generate: two groups are ready to train, and each engine has another one.
void begin_rollout(SharedRun& s) {
  s.drive();
  s.go_to(Phase::Rollout);
  for (int i = 0; i < 2; ++i)
    trainable_group(s.run);
  generating_group(s.run, kEngine);
  generating_group(s.run, kOther);
}

TEST(OneByOneSharing, TakesTheCardsOfOneEngineWhileTheOtherGenerates) {
  SharedRun s(one_by_one({1}));
  begin_rollout(s);
  s.asked.clear();
  s.drive();
  s.go_to(Phase::Train);
  EXPECT_EQ(s.asked_in_words(),
            (std::vector<std::string>{"rollout-0 interrupt",
                                      "rollout-0 free_kv",
                                      "rollout-0 free_weights",
                                      "trainer onload_optimizer"}));
  EXPECT_EQ(s.asked.back().cards_of, std::vector{kEngine});
  EXPECT_TRUE(s.sharing.has_left(kEngine));
  EXPECT_FALSE(s.sharing.may_generate(s.run, kEngine));
  EXPECT_TRUE(s.sharing.may_generate(s.run, kOther));
  EXPECT_TRUE(s.sharing.may_get_weights(s.run, kOther));
  EXPECT_FALSE(s.sharing.may_get_weights(s.run, kEngine));
  EXPECT_TRUE(s.sharing.old_weights_may_continue());
  EXPECT_EQ(s.run.load_of(kOther).responses, 2);
}

TEST(OneByOneSharing, TakesTheCardsOfTheEmptiestEngine) {
  SharedRun s(one_by_one({1}));
  s.drive();
  s.go_to(Phase::Rollout);
  for (int i = 0; i < 2; ++i)
    trainable_group(s.run);
  for (int i = 0; i < 2; ++i)
    generating_group(s.run, kEngine);
  s.drive();
  EXPECT_TRUE(s.sharing.has_left(kOther));
  EXPECT_FALSE(s.sharing.has_left(kEngine));
}

TEST(OneByOneSharing, SpreadsTheTrainerOverMoreCardsBeforeItBegins) {
  SharedRun s(one_by_one({1, 2}));
  begin_rollout(s);
  s.drive();
  s.go_to(Phase::Onload);
  s.asked.clear();
  s.run.saved.queue.revoke_all(kEngine);
  for (const GroupId group : {GroupId(2), GroupId(3)})  // nothing is left to generate
    s.run.release(group, Outcome::Failed);
  s.run.config.steps = 1;  // and nothing new is needed
  s.answer(kTrainer);
  s.drive();
  EXPECT_EQ(s.phase(), Phase::Interrupt);
  EXPECT_FALSE(s.sharing.trainer_may_work());
  s.go_to(Phase::Train);
  EXPECT_EQ(s.asked_in_words(),
            (std::vector<std::string>{"rollout-1 interrupt",
                                      "rollout-1 free_kv",
                                      "rollout-1 free_weights",
                                      "trainer onload_optimizer"}));
  EXPECT_EQ(s.asked.back().cards_of, (std::vector{kEngine, kOther}));
}

TEST(OneByOneSharing, ReturnsAllCardsOnceTheOthersAreCrowdedAndNothingIsLeftToTrain) {
  SharedRun s(one_by_one({1}));
  begin_rollout(s);
  s.drive();
  s.go_to(Phase::Train);
  s.drive();
  EXPECT_EQ(s.phase(), Phase::Train);  // there is a batch
  s.run.trainer.training = LeaseId(1);
  s.run.release(GroupId(0), Outcome::Trained);
  s.run.release(GroupId(1), Outcome::Trained);
  s.drive();
  EXPECT_EQ(s.phase(), Phase::Train);  // a step is under way
  s.run.trainer.training.reset();
  s.drive();
  EXPECT_EQ(s.phase(), Phase::OffloadOptimizer);
  s.go_to(Phase::Rollout);
  EXPECT_FALSE(s.sharing.has_left(kEngine));
}

// --- Every mode

/// Actors that answer, refuse, die and come back in a random order.
class RandomTurns {
 public:
  RandomTurns(const SchedulerConfig& config, std::uint64_t seed)
      : s_(config), random_(seed, "test.card_sharing") {}

  void step() {
    act();
    s_.drive();
    for (const auto& c : emitted<command::Switch>(s_.run)) {
      if (c.action == SwitchAction::OnloadOptimizer)
        trains_on_ = c.cards_of.empty() ? s_.run.fleet.turning_engines() : c.cards_of;
    }
    look();
  }
  bool finished() const { return s_.run.finished; }
  int steps() const { return steps_; }
  const std::string& broken() const { return broken_; }

 private:
  void act() {
    RunState& run = s_.run;
    const ActorId a(static_cast<std::uint32_t>(random_.below(run.fleet.size())));
    const bool engine = run.fleet.spec(a).role == actors::RoleKind::Rollout;
    switch (random_.below(8)) {
      case 0:
        if (a != kTrainer && random_.chance(s_.state(a).ready() ? 0.02 : 0.5))
          return die_or_return(a);
        return;
      case 1:
        return train();
      case 2:
        return s_.hand_back();
      case 3:
        if (engine)
          s_.publish_to(a);
        return;
      case 4:
        if (engine)
          generate(a);
        return;
      case 5:
        return end_a_group();
      case 6:
        if (s_.sharing.may_score(run, kReference))
          s_.score_all();
        return;
      default:
        return answer(a);
    }
  }
  void answer(ActorId a) {
    const auto action = s_.state(a).switching;
    if (!s_.state(a).ready() || !action)
      return;
    const bool refused = *action == SwitchAction::OnloadOptimizer && random_.chance(0.1);
    s_.answer(a, refused ? "refused" : "");
    if (*action == SwitchAction::OffloadOptimizer)
      optimizer_ = false;
    if (*action == SwitchAction::OnloadOptimizer)
      optimizer_ = !refused;
  }
  void die_or_return(ActorId a) {
    const bool alive = s_.state(a).ready();
    if (alive) {
      s_.run.saved.queue.revoke_all(a);
      s_.hand_back();
    }
    s_.run.fleet.renew(a, alive ? Life::Launching : Life::Ready);
  }
  void generate(ActorId engine) {
    const ActorState& a = s_.state(engine);
    if (!a.ready() || !a.has_kv || a.switching || !s_.sharing.may_generate(s_.run, engine))
      return;
    if (s_.run.can_admit())
      add_group(s_.run, s_.run.saved.progress.version.value());
    s_.continue_on(engine);
  }
  /// The oldest group with responses at engines is generated and judged.
  void end_a_group() {
    DistQueue& queue = s_.run.saved.queue;
    for (const auto& [id, group] : queue.groups()) {
      std::vector<ResponseId> ended;
      for (const ResponseId r : queue.live_responses(id)) {
        if (const LeaseId lease = queue.row(r)->lease[0]; lease != LeaseId{}) {
          queue.commit(lease, r, Field::Response);
          s_.run.withdrawn.erase(r);
          ended.push_back(r);
        }
      }
      if (ended.empty())
        continue;
      do_task(s_.run, Task::Reward, Field::Reward, kReward, ended);
      if (s_.run.fleet.turning_references().empty())
        do_task(s_.run, Task::Reference, Field::ReferenceLogprobs, kReference, ended);
      return;
    }
  }
  void train() {
    const auto batch = s_.run.select_batch();
    if (!batch || !s_.sharing.trainer_may_work() || s_.state(kTrainer).switching)
      return;
    for (const GroupId group : *batch)
      s_.run.release(group, Outcome::Trained);
    publish(s_.run, s_.run.saved.progress.version.value() + 1);
    ++steps_;
  }

  void look() {
    for (const ActorId engine : s_.run.fleet.turning_engines()) {
      const ActorState& a = s_.state(engine);
      const bool empty = !a.has_kv && !a.version && !a.staging;
      const bool leased = std::ranges::count(trains_on_, engine) > 0;
      if (s_.sharing.trainer_may_work() && s_.sharing.has_left(engine)) {
        note(empty, "the trainer works, and an engine has memory on its cards");
        note(s_.run.load_of(engine).responses == 0, "an engine that has left generates");
      }
      if (s_.sharing.may_generate(s_.run, engine)) {
        note(!s_.sharing.has_left(engine), "an engine that has left may generate");
        note(!(optimizer_ && leased) || empty, "an engine generates on the trainer's cards");
      }
    }
    if (s_.sharing.trainer_may_work()) {
      note(optimizer_, "the trainer works without its optimizer");
      note(!s_.state(kReference).onboard, "the trainer works, and a reference is on its cards");
    }
    if (!s_.run.fleet.turning_references().empty() && s_.sharing.may_score(s_.run, kReference))
      note(!optimizer_, "a reference scores beside the optimizer");
  }
  void note(bool holds, const char* what) {
    if (!holds && broken_.empty())
      broken_ = what;
  }

  SharedRun s_;
  Random random_;
  bool optimizer_ = true;
  std::vector<ActorId> trains_on_{kEngine, kOther};
  int steps_ = 0;
  std::string broken_;
};

TEST(CardSharing, NeverLetsTwoRolesUseTheSameCards) {
  SchedulerConfig fused = small_config(Shared::EnginesAndReference), fused_one_by_one = fused;
  fused_one_by_one.switching = Switching::OneByOne;
  fused_one_by_one.shares = {1, 2};
  std::vector<SchedulerConfig> configs = {small_config(Shared::Engines),
                                          fused,
                                          lending(LendingRule::Always),
                                          lending(LendingRule::Auto),
                                          one_by_one({1}),
                                          one_by_one({1, 2}),
                                          fused_one_by_one};
  for (std::size_t i = 0; i < configs.size(); ++i) {
    configs[i].steps = 1000;
    int steps = 0;
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      RandomTurns turns(configs[i], seed);
      for (int k = 0; k < 3000 && turns.broken().empty() && !turns.finished(); ++k)
        turns.step();
      EXPECT_EQ(turns.broken(), "") << "configuration " << i << ", seed " << seed;
      steps += turns.steps();
    }
    EXPECT_GT(steps, 100) << "configuration " << i << " hardly trains";
  }
}

}  // namespace
}  // namespace temper::orchestrator::testing
