// Dispatcher: which engine gets a group, and when; responses that continue elsewhere or move.
#include "orchestrator/scheduler/dispatch/dispatcher.hpp"

#include "core/random.hpp"
#include "tests/orchestrator/scheduler/run_state.hpp"

#include <algorithm>

namespace temper::orchestrator::testing {
namespace {

using std::nullopt;

/// The engines of new dispatches, in their order.
std::vector<ActorId> dispatched_to(const RunState& run) {
  std::vector<ActorId> engines;
  for (const auto& c : emitted<command::Dispatch>(run))
    engines.push_back(c.actor);
  return engines;
}

struct DispatchedRun {
  explicit DispatchedRun(const SchedulerConfig& config = small_config())
      : run(ready_run(config)), sharing(run), dispatcher(run.config) {}

  void dispatch_new() {
    run.out.clear();
    dispatcher.dispatch_new(run, sharing);
  }
  void dispatch_returned() {
    run.out.clear();
    dispatcher.dispatch_returned(run, sharing);
  }

  RunState run;
  CardSharing sharing;
  Dispatcher dispatcher;
};

// --- New groups

TEST(Dispatcher, FillsTheBoundAndTheEmptiestEngineFirst) {
  DispatchedRun d;
  d.dispatch_new();
  EXPECT_EQ(dispatched_to(d.run), (std::vector{kEngine, kOther, kEngine, kOther}));
  const auto first = emitted<command::Dispatch>(d.run).front();
  EXPECT_EQ(first.group, GroupId(0));
  EXPECT_EQ(first.version, version(0));
  EXPECT_EQ(first.responses, (std::vector{ResponseId(0), ResponseId(1)}));
  EXPECT_TRUE(first.cached_on.empty());
  EXPECT_EQ(d.run.saved.progress.groups_dispatched, 4U);
  EXPECT_EQ(d.run.saved.queue.find(first.lease)->deadline, at(120));
}

TEST(Dispatcher, PrefersTheNewestWeightsToTheEmptiestEngine) {
  DispatchedRun d;
  publish(d.run, 1);
  give_version(d.run, kEngine, 0);
  give_version(d.run, kOther, 1);
  generating_group(d.run, kOther, 1);
  d.dispatch_new();
  // The newer engine until its four slots are full, then the other one, whose weights the bound
  // still admits.
  EXPECT_EQ(dispatched_to(d.run), (std::vector{kOther, kEngine, kEngine}));
  EXPECT_EQ(d.run.saved.queue.group(GroupId(1))->dispatched, version(1));
  EXPECT_EQ(d.run.saved.queue.group(GroupId(2))->dispatched, version(0));
}

TEST(Dispatcher, GivesAnEmptyEngineAGroupThatIsLargerThanItsSlots) {
  SchedulerConfig config = small_config();
  config.responses_per_group = 6;
  DispatchedRun d(config);
  d.dispatch_new();
  EXPECT_EQ(dispatched_to(d.run), (std::vector{kEngine, kOther}));
}

TEST(Dispatcher, GivesNoEngineMoreThanAnEvenShare) {
  SchedulerConfig config = small_config();
  config.stragglers.even_load = true;
  config.groups_per_update = 1;
  DispatchedRun d(config);
  publish(d.run, 1);
  give_version(d.run, kOther, 1);
  d.dispatch_new();  // the second would be more than half of four responses
  EXPECT_EQ(dispatched_to(d.run), (std::vector{kOther, kEngine}));
  d.run.config.stragglers.even_load = false;
  DispatchedRun uneven(d.run.config);
  publish(uneven.run, 1);
  give_version(uneven.run, kOther, 1);
  uneven.dispatch_new();
  EXPECT_EQ(dispatched_to(uneven.run), (std::vector{kOther, kOther}));
}

TEST(Dispatcher, PassesOverEnginesThatCannotGenerate) {
  using Change = void (*)(ActorState&);
  for (const Change change :
       {Change([](ActorState& a) { a.life = Life::Launching; }),
        Change([](ActorState& a) { a.has_kv = false; }),
        Change([](ActorState& a) { a.version.reset(); }),
        Change([](ActorState& a) { a.switching = actors::SwitchAction::AllocateKv; })}) {
    DispatchedRun d;
    change(d.run.fleet.change(kEngine));
    d.dispatch_new();
    EXPECT_EQ(dispatched_to(d.run), (std::vector{kOther, kOther}));
  }
}

TEST(Dispatcher, SendsNothingWhileTheRunDrainsOrHasFinished) {
  for (const bool finished : {false, true}) {
    DispatchedRun d;
    (finished ? d.run.finished : d.run.stop_requested) = true;
    add_group(d.run);
    d.dispatch_new();
    d.dispatch_returned();
    EXPECT_TRUE(d.run.out.empty());
  }
}

TEST(Dispatcher, SendsNothingToSharedCardsThatAreTheTrainers) {
  DispatchedRun d(small_config(Shared::Engines));
  give_version(d.run, kEngine, 0);
  d.dispatch_new();
  EXPECT_TRUE(d.run.out.empty());
}

// --- Returned work

TEST(Dispatcher, ContinuesAGroupUnderWeightsThatAreNoOlderThanItsNewestToken) {
  struct Case {
    std::uint64_t token, engine, other;
    std::optional<ActorId> to;
  };
  for (const Case& c : {Case{1, 0, 0, nullopt},
                        Case{1, 0, 1, kOther},
                        Case{1, 1, 0, kEngine},
                        Case{1, 1, 1, kEngine},
                        Case{0, 0, 1, kOther},
                        Case{0, 1, 0, kEngine},
                        Case{2, 1, 0, nullopt}}) {
    DispatchedRun d;
    publish(d.run, 2);
    give_version(d.run, kEngine, c.engine);
    give_version(d.run, kOther, c.other);
    const GroupId group = add_group(d.run, 0);
    d.run.saved.queue.append_tokens(
        response(d.run, group, 1), Tokens(5), Tokens(3), {{version(c.token), Tokens(3)}});
    d.dispatch_returned();
    const auto sent = dispatched_to(d.run);
    EXPECT_EQ(sent.empty() ? nullopt : std::optional(sent.front()), c.to)
        << c.token << ' ' << c.engine << ' ' << c.other;
    if (c.to) {
      EXPECT_EQ(only<command::Dispatch>(d.run).version, d.run.fleet.state(*c.to).version);
    }
  }
}

TEST(Dispatcher, ContinuesNoGroupUnderOlderWeightsThanThoseItWasDispatchedUnder) {
  DispatchedRun d;
  publish(d.run, 1);
  add_group(d.run, 1);
  d.dispatch_returned();
  EXPECT_TRUE(d.run.out.empty());
  give_version(d.run, kOther, 1);
  d.dispatch_returned();
  EXPECT_EQ(dispatched_to(d.run), std::vector{kOther});
}

TEST(Dispatcher, SendsReturnedResponsesGroupByGroupOldestFirstAndTellsWhereTheyAreCached) {
  DispatchedRun d;
  for (int i = 0; i < 2; ++i) {
    const GroupId group = add_group(d.run);
    const ResponseId second = response(d.run, group, 1);
    d.run.saved.queue.append_tokens(second, Tokens(5), Tokens(3), {{version(0), Tokens(3)}});
    d.run.saved.queue.append_tokens(
        response(d.run, group, 0), Tokens(5), Tokens(3), {{version(0), Tokens(3)}});
    d.run.saved.queue.set_cached(second, kOther);
  }
  d.dispatch_returned();
  const auto sent = emitted<command::Dispatch>(d.run);
  ASSERT_EQ(sent.size(), 2U);
  EXPECT_EQ(sent[0].group, GroupId(0));
  EXPECT_EQ(sent[0].cached_on, (std::vector<std::optional<ActorId>>{nullopt, kOther}));
  EXPECT_EQ(sent[1].responses, (std::vector{ResponseId(2), ResponseId(3)}));
  EXPECT_EQ(d.run.saved.progress.groups_dispatched, 2U);
}

// --- The bound

/// No set of deadlines holds more groups than steps can train: every group can be trained no later
/// than eta versions after its dispatch.
void expect_within_the_bound(const RunState& run, std::uint64_t seed) {
  const std::uint64_t eta = run.config.staleness_bound, step = run.saved.progress.version.value();
  const auto batch = static_cast<std::uint64_t>(run.config.groups_per_update);
  std::uint64_t groups = 0;
  for (const auto& [v0, count] : run.saved.outstanding.outstanding) {
    groups += static_cast<std::uint64_t>(count);
    ASSERT_GE(v0.value() + eta, step) << "seed " << seed;
    ASSERT_LE(groups, (v0.value() + eta - step + 1) * batch) << "seed " << seed;
  }
}

TEST(Dispatcher, NeverExceedsTheBoundWhateverVersionsItsEnginesHave) {
  for (std::uint64_t seed = 1; seed <= 40; ++seed) {
    Random random(seed, "test.dispatcher");
    SchedulerConfig config = small_config();
    config.steps = 1000;
    config.staleness_bound = random.below(4);
    config.groups_per_update = static_cast<std::int32_t>(1 + random.below(3));
    config.actors[1].concurrency = config.actors[2].concurrency = 100;
    DispatchedRun d(config);
    for (int i = 0; i < 300; ++i) {
      d.dispatch_returned();
      d.dispatch_new();
      expect_within_the_bound(d.run, seed);
      if (::testing::Test::HasFatalFailure())
        return;
      const ActorId engine(static_cast<std::uint32_t>(1 + random.below(2)));
      const std::vector<ResponseId> theirs = d.run.saved.queue.generating(engine);
      if (random.chance(0.1)) {
        d.run.saved.queue.revoke_all(engine);
      } else if (!theirs.empty() && random.chance(0.8)) {
        const ResponseId r = theirs[random.below(theirs.size())];
        d.run.saved.queue.commit(d.run.saved.queue.row(r)->lease[0], r, Field::Response);
        do_task(d.run, Task::Reward, Field::Reward, kReward, {r});
        do_task(d.run, Task::Reference, Field::ReferenceLogprobs, kReference, {r});
      }
      if (const auto batch = d.run.select_batch()) {
        for (const GroupId group : *batch) {
          const std::uint64_t v0 = d.run.saved.queue.group(group)->dispatched.value();
          EXPECT_LE(d.run.saved.progress.version.value() - v0, config.staleness_bound);
          d.run.release(group, Outcome::Trained);
        }
        publish(d.run, d.run.saved.progress.version.value() + 1);
      }
      if (random.chance(0.3))
        give_version(d.run, engine, d.run.saved.progress.version.value());
    }
    EXPECT_GT(d.run.saved.progress.version, version(5)) << "seed " << seed;
  }
}

// --- Just in time

/// One group per step, which takes 100 s; a group takes 10 s. Both are known at 110 s, when the
/// step after the first one begins with the only group that is outstanding.
DispatchedRun paced(const SchedulerConfig& base = small_config()) {
  SchedulerConfig config = base;
  config.groups_per_update = 1;
  config.responses_per_group = 1;
  config.admission = Admission::JustInTime;
  DispatchedRun d(config);
  d.dispatch_new();
  EXPECT_EQ(d.run.saved.queue.groups().size(), 2U);  // at once: nothing is known
  d.run.now = at(10);
  const ResponseId r(0);
  d.run.saved.queue.commit(d.run.saved.queue.row(r)->lease[0], r, Field::Response);
  do_task(d.run, Task::Reward, Field::Reward, kReward, {r});
  do_task(d.run, Task::Reference, Field::ReferenceLogprobs, kReference, {r});
  d.dispatcher.group_changed(d.run, GroupId(0));
  d.dispatcher.step_begins(d.run.now);
  d.run.now = at(110);
  d.run.release(GroupId(0), Outcome::Trained);
  d.dispatcher.group_left(GroupId(0));
  publish(d.run, 1);
  d.dispatcher.step_ends(d.run.now);
  d.dispatcher.step_begins(d.run.now);
  d.run.saved.outstanding.updating = true;
  d.run.saved.outstanding.in_training[version(0)] = 1;
  give_version(d.run, kEngine, 1);
  give_version(d.run, kOther, 1);
  return d;
}

TEST(Dispatcher, HoldsAGroupBackUntilTheTrainerNeedsItAndSaysUntilWhen) {
  DispatchedRun d = paced();
  d.dispatch_new();
  // The step under way ends at 110 + 100 s; the group takes 10 s.
  EXPECT_TRUE(d.run.out.empty());
  EXPECT_EQ(d.run.held_until, at(200));
  d.run.now = at(198);  // less than a 64th of a period is not worth it
  d.dispatch_new();
  EXPECT_TRUE(d.run.out.empty());
  d.run.now = at(200);
  d.dispatch_new();
  EXPECT_EQ(emitted<command::Dispatch>(d.run).size(), 1U);
  EXPECT_EQ(d.run.held_until, nullopt);
}

TEST(Dispatcher, HoldsNothingBackWhereAdmissionIsEager) {
  DispatchedRun d = paced();
  d.run.config.admission = Admission::Eager;
  d.dispatch_new();
  EXPECT_EQ(emitted<command::Dispatch>(d.run).size(), 1U);
}

TEST(Dispatcher, HoldsNothingBackWhileAnEvaluationHoldsUpTraining) {
  SchedulerConfig config = small_config();
  config.evaluation = {.every = 1, .problems = 1, .samples = 1};
  DispatchedRun d = paced(config);
  d.run.evaluation.begin(version(1), at(110));
  d.dispatch_new();
  EXPECT_EQ(emitted<command::Dispatch>(d.run).size(), 1U);
}

// --- Migration

/// Engines that generate so many responses of one each, all of which the next step needs. `others`:
/// slots of the second engine; 0: as the first.
DispatchedRun loaded(int full, int empty, std::int32_t slots = 16, std::int32_t others = 0) {
  SchedulerConfig config = small_config();
  config.groups_per_update = 32;
  config.responses_per_group = 1;
  config.staleness_bound = 0;
  config.actors[1].concurrency = slots;
  config.actors[2].concurrency = others > 0 ? others : slots;
  DispatchedRun d(config);
  for (int i = 0; i < full; ++i)
    generating_group(d.run, kEngine);
  for (int i = 0; i < empty; ++i)
    generating_group(d.run, kOther);
  return d;
}

TEST(Dispatcher, MovesHalfOfTheDifferenceAndNothingWhereItIsSmall) {
  struct Case {
    int full, empty;
    std::int32_t slots;
    std::size_t moves;
  };
  for (const Case& c : {Case{8, 0, 16, 4},
                        Case{8, 3, 16, 2},
                        Case{12, 9, 16, 1},   // a quarter less
                        Case{12, 10, 16, 0},  // less than that
                        Case{12, 12, 16, 0},
                        Case{1, 0, 16, 0},  // one response is no difference
                        Case{2, 0, 16, 1},
                        Case{12, 0, 96, 6},
                        Case{12, 0, 97, 0}}) {  // fewer than one in eight slots are in use
    DispatchedRun d = loaded(c.full, c.empty, c.slots);
    d.dispatcher.migrate(d.run, d.sharing);
    std::size_t moves = 0;
    for (const auto& w : emitted<command::Withdraw>(d.run)) {
      EXPECT_EQ(w.actor, kEngine);
      moves += w.responses.size();
    }
    EXPECT_EQ(moves, c.moves) << c.full << ' ' << c.empty << ' ' << c.slots;
    EXPECT_EQ(d.run.withdrawn.size(), c.moves);
  }
}

TEST(Dispatcher, MovesNoMoreThanTheOtherEngineHasSlotsFor) {
  for (const std::int32_t slots : {16, 2, 1}) {
    DispatchedRun d = loaded(8, 0, 16, slots);
    d.dispatcher.migrate(d.run, d.sharing);
    EXPECT_EQ(std::ssize(only<command::Withdraw>(d.run).responses), std::min(4, slots)) << slots;
  }
  DispatchedRun d = loaded(8, 1, 16, 1);
  d.dispatcher.migrate(d.run, d.sharing);
  EXPECT_TRUE(d.run.out.empty()) << "they would come back";
}

TEST(Dispatcher, MovesTheOldestOrThoseThatAreExpectedToGetLongest) {
  for (const bool predicts : {false, true}) {
    SchedulerConfig config = small_config();
    config.responses_per_group = 3;
    config.staleness_bound = 0;
    config.groups_per_update = 3;
    config.actors[1].concurrency = 16;
    config.stragglers.predict_length = predicts;
    DispatchedRun d(config);
    // One response of each group has ended, with 10, 90 and 50 tokens; two of each generate.
    for (const std::int64_t length : {10, 90, 50}) {
      const GroupId group = add_group(d.run);
      const LeaseId lease = generate_on(d.run, group, kEngine);
      const ResponseId first = response(d.run, group, 0);
      d.run.saved.queue.append_tokens(
          first, Tokens(5), Tokens(length), {{version(0), Tokens(length)}});
      d.run.saved.queue.commit(lease, first, Field::Response);
      d.dispatcher.response_ended(Tokens(length));
    }
    d.dispatcher.migrate(d.run, d.sharing);
    const auto moved = only<command::Withdraw>(d.run).responses;
    EXPECT_EQ(moved,
              predicts ? (std::vector{ResponseId(4), ResponseId(5), ResponseId(7)})
                       : (std::vector{ResponseId(1), ResponseId(2), ResponseId(4)}));
  }
}

TEST(Dispatcher, MovesNothingThatNoStepWaitsForOrWhileMovesAreUnderWay) {
  using Change = void (*)(DispatchedRun&);
  for (const Change change :
       {Change([](DispatchedRun& d) { d.run.config.stragglers.migrate = false; }),
        Change([](DispatchedRun& d) { d.run.stop_requested = true; }),
        Change([](DispatchedRun& d) { d.run.withdrawn = {ResponseId(0)}; }),
        Change([](DispatchedRun& d) { add_group(d.run); }),
        Change([](DispatchedRun& d) { d.run.saved.outstanding.bound = 1; }),
        Change([](DispatchedRun& d) { d.run.fleet.change(kOther).life = Life::Launching; }),
        Change([](DispatchedRun& d) { d.run.fleet.change(kOther).version.reset(); })}) {
    DispatchedRun d = loaded(8, 0);
    change(d);
    d.dispatcher.migrate(d.run, d.sharing);
    EXPECT_TRUE(d.run.out.empty());
  }
}

}  // namespace
}  // namespace temper::orchestrator::testing
