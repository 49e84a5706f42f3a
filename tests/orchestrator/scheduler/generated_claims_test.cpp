// Claims of what an engine has generated: once as it may be, and once for each claim that it
// breaks.
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "tests/orchestrator/scheduler/busy_run.hpp"

#include <cstdint>

namespace temper::orchestrator::testing {
namespace {

using actors::Claim;
using actors::FinishReason;
using actors::SwitchAction;
using Item = event::Generated::Item;

template <class Change>
Event generated_but(const BusyRun& b, Change&& change) {
  Item item = b.item();
  change(item);
  return b.generated(item);
}

TEST(GeneratedClaims, ChecksWhatAnEngineHasGenerated) {
  using B = const BusyRun&;
  expect_claims({
      {"possible", [](B b) -> Event { return b.generated(b.item()); }},
      {"of a lease that was never granted",
       [](B b) { return generated_but(b, [](Item& i) { i.lease = LeaseId(99); }); },
       Claim::LeaseIsItsOwn},
      {"of another task",
       [](B b) { return generated_but(b, [&](Item& i) { i.lease = b.judging; }); },
       Claim::LeaseIsItsOwn},
      {"of another engine",
       [](B b) -> Event {
         return event::Generated{kOther, {b.item()}};
       },
       Claim::LeaseIsItsOwn},
      {"of another lease",
       [](B b) { return generated_but(b, [](Item& i) { i.response = ResponseId(7); }); },
       Claim::ResponseIsLeased},
      {"twice in a message",
       [](B b) -> Event {
         return event::Generated{kEngine, {b.item(), b.item()}};
       },
       Claim::ResponseIsLeased},
      {"two responses",
       [](B b) -> Event {
         return event::Generated{kEngine, {b.item(0), b.item(1)}};
       }},
      {"a negative prompt",
       [](B b) { return generated_but(b, [](Item& i) { i.prompt = Tokens(-1); }); },
       Claim::NothingNegative},
      {"too many tokens to count",
       [](B b) { return generated_but(b, [](Item& i) { i.tokens = Tokens(INT64_MAX); }); },
       Claim::NothingNegative},
      {"segments that do not add up",
       [](B b) { return generated_but(b, [](Item& i) { i.tokens = Tokens(9); }); },
       Claim::SegmentsAddUp},
      {"an end without a token",
       [](B b) {
         return generated_but(b, [](Item& i) {
           i.tokens = Tokens(0);
           i.segments.clear();
         });
       },
       Claim::HasTokens},
      {"a failure without a token",
       [](B b) {
         return generated_but(b, [](Item& i) {
           i.tokens = Tokens(0);
           i.segments.clear();
           i.finish = FinishReason::Failed;
         });
       }},
      {"a version that the engine does not have",
       [](B b) { return generated_but(b, [](Item& i) { i.segments[0].version = version(2); }); },
       Claim::VersionsGoForward},
      {"versions that go back",
       [](B b) {
         return generated_but(b, [](Item& i) {
           i.segments = {{version(1), Tokens(5)}, {version(0), Tokens(5)}};
         });
       },
       Claim::VersionsGoForward},
      {"versions that go on",
       [](B b) {
         return generated_but(b, [](Item& i) {
           i.segments = {{version(0), Tokens(5)}, {version(1), Tokens(5)}};
         });
       }},
      {"handed back unasked",
       [](B b) { return generated_but(b, [](Item& i) { i.finish = FinishReason::Interrupted; }); },
       Claim::HandedBackOnRequest},
  });
}

TEST(GeneratedClaims, LetsAnEngineHandBackWhatWasRequested) {
  for (const bool all : {false, true}) {
    BusyRun b;
    Item item = b.item();
    item.finish = FinishReason::Interrupted;
    if (all)
      b.run.fleet.change(kEngine).switching = SwitchAction::Interrupt;
    else
      b.run.withdrawn = {item.response};
    EXPECT_EQ(b.broken(b.generated(item)), std::nullopt);
  }
}

TEST(GeneratedClaims, KnowsTheTokensThatAResponseHadBefore) {
  BusyRun b;
  b.run.saved.queue.append_tokens(ResponseId(0), Tokens(5), Tokens(3), {{version(1), Tokens(3)}});
  Item item = b.item();
  item.segments = {{version(0), Tokens(10)}};
  EXPECT_EQ(b.broken(b.generated(item)), Claim::VersionsGoForward);
  item.tokens = Tokens(0);
  item.segments.clear();
  EXPECT_EQ(b.broken(b.generated(item)), std::nullopt);  // it ends with those
}

TEST(GeneratedClaims, HasOneVersionForEachResponseIfTheRunDemandsIt) {
  BusyRun b;
  Item item = b.item();
  item.segments = {{version(0), Tokens(5)}, {version(1), Tokens(5)}};
  EXPECT_EQ(b.broken(b.generated(item)), std::nullopt);
  b.run.config.one_version = true;
  EXPECT_EQ(b.broken(b.generated(item)), Claim::OneVersion);
  item.segments = {{version(0), Tokens(10)}};
  EXPECT_EQ(b.broken(b.generated(item)), std::nullopt);
  b.run.saved.queue.append_tokens(ResponseId(0), Tokens(5), Tokens(3), {{version(0), Tokens(3)}});
  EXPECT_EQ(b.broken(b.generated(item)), std::nullopt);
  item.segments = {{version(1), Tokens(10)}};
  EXPECT_EQ(b.broken(b.generated(item)), Claim::OneVersion);
}

TEST(GeneratedClaims, LetsAnEngineUseAVersionThatItCommits) {
  BusyRun b;
  ActorState& a = b.run.fleet.change(kEngine);
  a.staging = version(2);
  Item item = b.item();
  item.segments[0].version = version(2);
  EXPECT_EQ(b.broken(b.generated(item)), Claim::VersionsGoForward);
  a.committing = true;
  EXPECT_EQ(b.broken(b.generated(item)), std::nullopt);
}

TEST(GeneratedClaims, LooksForALeaseOfAnEvaluationInItsOwnTable) {
  BusyRun b;
  b.run.evaluation = Evaluation(EvaluationPlan{.every = 1, .problems = 1, .samples = 1});
  b.run.evaluation.begin(version(1), at(100));
  const ResponseId r(kFirstEvaluation);
  const LeaseId lease = b.run.evaluation.table().lease(Task::Generate, kEngine, {r}, at(200));
  Item item = b.item();
  item.lease = lease;
  EXPECT_EQ(b.broken(b.generated(item)), Claim::ResponseIsLeased);
  item.response = r;
  EXPECT_EQ(b.broken(b.generated(item)), std::nullopt);
  item.segments[0].version = version(0);
  EXPECT_EQ(b.broken(b.generated(item)), Claim::VersionsGoForward);  // all are of one version
}

}  // namespace
}  // namespace temper::orchestrator::testing
