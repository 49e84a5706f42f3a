// DistQueue: what a row needs for each task, what a lease grants and how it ends.
#include "orchestrator/scheduler/queue/dist_queue.hpp"

#include "core/msgpack.hpp"
#include "tests/orchestrator/scheduler/ready_responses.hpp"
#include "tests/support/times.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

constexpr ActorId kEngine(0), kOther(1), kScorer(2), kTrainer(3);
constexpr PolicyVersion kV0(0), kV1(1), kV2(2);

constexpr std::int64_t kNever = 1'000'000;

Responses ids(std::initializer_list<std::uint64_t> values) {
  Responses out;
  for (const std::uint64_t v : values)
    out.emplace_back(v);
  return out;
}

/// Room for three groups of two responses; group 0 holds responses 0 and 1.
DistQueue queue_of(References references, std::int32_t groups = 1) {
  DistQueue queue(references == References::Needed, 2, 6);
  for (std::int32_t g = 0; g < groups; ++g)
    queue.add_group(GroupId(static_cast<std::uint64_t>(g)), kV0);
  return queue;
}

void generate(DistQueue& queue, const Responses& responses) {
  const LeaseId lease = queue.lease(Task::Generate, kEngine, responses, at(kNever));
  for (const ResponseId r : responses)
    queue.commit(lease, r, Field::Response);
}

void score(DistQueue& queue, const Responses& responses) {
  const LeaseId lease = queue.lease(Task::Reference, kScorer, responses, at(kNever));
  for (const ResponseId r : responses)
    queue.commit(lease, r, Field::ReferenceLogprobs);
}

void judge(DistQueue& queue, const Responses& responses, double reward = 1) {
  const LeaseId lease = queue.lease(Task::Reward, kScorer, responses, at(kNever));
  for (const ResponseId r : responses)
    queue.commit_reward(lease, r, reward);
}

TEST(DistQueue, AGroupTakesACreditForEachOfItsResponses) {
  DistQueue queue(false, 2, 5);  // 5 credits: two groups of 2, and one credit over.
  queue.add_group(GroupId(0), kV0);
  EXPECT_TRUE(queue.has_credit());
  queue.add_group(GroupId(1), kV0);
  EXPECT_FALSE(queue.has_credit());
  queue.remove_group(GroupId(0));
  EXPECT_TRUE(queue.has_credit());
  EXPECT_EQ(queue.group(GroupId(0)), nullptr);
  EXPECT_EQ(queue.row(ResponseId(1)), nullptr);
  EXPECT_NE(queue.row(ResponseId(2)), nullptr);
}

TEST(DistQueue, ARowIsReadyForATaskOnceWhatTheTaskNeedsIsThere) {
  DistQueue queue = queue_of(References::Needed);
  EXPECT_EQ(ready(queue, Task::Generate), ids({0, 1}));
  EXPECT_TRUE(queue.ready(Task::Reference).empty());
  EXPECT_TRUE(queue.ready(Task::Reward).empty());
  generate(queue, ids({0}));
  EXPECT_EQ(ready(queue, Task::Generate), ids({1}));
  EXPECT_EQ(ready(queue, Task::Reference), ids({0}));
  EXPECT_EQ(ready(queue, Task::Reward), ids({0})) << "scores and rewards do not wait for another";
  judge(queue, ids({0}));
  EXPECT_EQ(ready(queue, Task::Reference), ids({0}));
  EXPECT_TRUE(queue.ready(Task::Reward).empty());
  EXPECT_EQ(queue.generated(), 1);
}

TEST(DistQueue, AGroupIsTrainableWhenAllItsResponsesAre) {
  DistQueue queue = queue_of(References::Needed);
  generate(queue, ids({0, 1}));
  judge(queue, ids({0, 1}));
  EXPECT_TRUE(queue.trainable().empty());
  EXPECT_EQ(queue.judged_by_version().at(kV0), 1) << "it lacks nothing but reference scores";
  score(queue, ids({0}));
  EXPECT_TRUE(queue.trainable().empty());
  score(queue, ids({1}));
  EXPECT_EQ(queue.trainable(), (std::set{std::pair(kV0, GroupId(0))}));
  EXPECT_EQ(queue.trainable_by_version().at(kV0), 1);
}

TEST(DistQueue, WithoutAReferenceNothingIsScoredAndNothingWaitsForIt) {
  DistQueue queue = queue_of(References::None);
  generate(queue, ids({0, 1}));
  EXPECT_TRUE(queue.ready(Task::Reference).empty());
  judge(queue, ids({0, 1}));
  EXPECT_EQ(queue.trainable().size(), 1U);
}

TEST(DistQueue, AGroupGoesOnWithoutAResponseThatFailed) {
  DistQueue queue = queue_of(References::None);
  queue.fail(ResponseId(0));
  EXPECT_EQ(ready(queue, Task::Generate), ids({1}));
  generate(queue, ids({1}));
  judge(queue, ids({1}));
  EXPECT_EQ(queue.trainable().size(), 1U);
  EXPECT_EQ(queue.live_responses(GroupId(0)), ids({1}));
  EXPECT_TRUE(queue.live_responses(GroupId(7)).empty());
}

TEST(DistQueue, AResponseThatStartsOverNeedsEverythingAgain) {
  DistQueue queue = queue_of(References::Needed);
  queue.append_tokens(ResponseId(0), Tokens(3), Tokens(5), {{kV0, Tokens(5)}});
  generate(queue, ids({0, 1}));
  score(queue, ids({0, 1}));
  judge(queue, ids({0, 1}));
  EXPECT_EQ(queue.trainable().size(), 1U);
  queue.start_over(ResponseId(0));
  EXPECT_TRUE(queue.trainable().empty());
  EXPECT_EQ(queue.generated(), 1);
  EXPECT_EQ(ready(queue, Task::Generate), ids({0}));
  EXPECT_EQ(queue.row(ResponseId(0))->tokens, Tokens(0));
  EXPECT_TRUE(queue.row(ResponseId(0))->segments.empty());
  generate(queue, ids({0}));
  EXPECT_TRUE(queue.trainable().empty()) << "it has no score and no reward yet";
  score(queue, ids({0}));
  judge(queue, ids({0}));
  EXPECT_EQ(queue.trainable().size(), 1U);
}

TEST(DistQueue, AResponseIsHeldByOneLeaseOfATaskAtATime) {
  DistQueue queue = queue_of(References::Needed);
  generate(queue, ids({0, 1}));
  const LeaseId scores = queue.lease(Task::Reference, kScorer, ids({0}), at(kNever));
  EXPECT_EQ(ready(queue, Task::Reference), ids({1}));
  EXPECT_EQ(ready(queue, Task::Reward), ids({0, 1})) << "another task may hold it beside";
  const LeaseId rewards = queue.lease(Task::Reward, kScorer, ids({0}), at(kNever));
  EXPECT_TRUE(queue.holds(scores, ResponseId(0)));
  EXPECT_TRUE(queue.holds(rewards, ResponseId(0)));
  EXPECT_FALSE(queue.holds(scores, ResponseId(1)));
  EXPECT_FALSE(queue.holds(LeaseId{}, ResponseId(1))) << "no lease holds nothing";
}

TEST(DistQueue, ALateResultOfARevokedLeaseDoesNotCount) {
  DistQueue queue = queue_of(References::None);
  const LeaseId dead = queue.lease(Task::Generate, kEngine, ids({0, 1}), at(kNever));
  queue.commit(dead, ResponseId(0), Field::Response);
  queue.revoke(dead);
  EXPECT_EQ(ready(queue, Task::Generate), ids({1})) << "what it had answered stays answered";
  EXPECT_EQ(queue.find(dead), nullptr);
  const LeaseId again = queue.lease(Task::Generate, kOther, ids({1}), at(kNever));
  EXPECT_NE(again, dead) << "a lease is never used twice";
  EXPECT_FALSE(queue.holds(dead, ResponseId(1)));
  EXPECT_TRUE(queue.holds(again, ResponseId(1)));
}

TEST(DistQueue, ALeaseEndsWithItsLastResponse) {
  DistQueue queue = queue_of(References::None);
  const LeaseId lease = queue.lease(Task::Generate, kEngine, ids({0, 1}), at(5));
  EXPECT_EQ(queue.load(kEngine).leases, 1);
  EXPECT_EQ(queue.load(kEngine).responses, 2);
  EXPECT_EQ(queue.generating(kEngine), ids({0, 1}));
  queue.commit(lease, ResponseId(1), Field::Response);
  EXPECT_EQ(queue.find(lease)->open, 1);
  EXPECT_EQ(queue.generating(kEngine), ids({0}));
  queue.give_back(lease, ResponseId(0));
  EXPECT_EQ(queue.find(lease), nullptr);
  EXPECT_EQ(queue.load(kEngine).leases, 0);
  EXPECT_EQ(queue.load(kEngine).responses, 0);
  EXPECT_EQ(queue.next_deadline(), std::nullopt);
  EXPECT_EQ(ready(queue, Task::Generate), ids({0}));
}

TEST(DistQueue, AnActorThatDiesLosesItsLeasesAndNoOtherDoes) {
  DistQueue queue = queue_of(References::None, 3);
  const LeaseId first = queue.lease(Task::Generate, kEngine, ids({0, 1}), at(kNever));
  const LeaseId second = queue.lease(Task::Generate, kEngine, ids({4}), at(kNever));
  const LeaseId others = queue.lease(Task::Generate, kOther, ids({2, 3}), at(kNever));
  queue.revoke_all(kEngine);
  EXPECT_EQ(queue.find(first), nullptr);
  EXPECT_EQ(queue.find(second), nullptr);
  EXPECT_NE(queue.find(others), nullptr);
  EXPECT_EQ(ready(queue, Task::Generate), ids({0, 1, 4, 5}));
  EXPECT_EQ(queue.load(kOther).responses, 2);
  queue.revoke_all(kTrainer);  // One that never had work.
  EXPECT_EQ(queue.load(kTrainer).leases, 0);
}

TEST(DistQueue, TheEarliestDeadlineIsFoundAlsoAfterDeadlinesMoved) {
  DistQueue queue = queue_of(References::None, 3);
  const LeaseId a = queue.lease(Task::Generate, kEngine, ids({0, 1}), at(10));
  const LeaseId b = queue.lease(Task::Generate, kEngine, ids({2, 3}), at(20));
  const LeaseId c = queue.lease(Task::Generate, kEngine, ids({4, 5}), at(30));
  EXPECT_EQ(queue.next_deadline(), at(10));
  EXPECT_EQ(queue.expired(at(9)), std::nullopt);
  EXPECT_EQ(queue.expired(at(10)), a) << "at its deadline a lease is over";
  queue.extend(a, at(40));
  EXPECT_EQ(queue.next_deadline(), at(20));
  queue.extend(b, at(50));
  EXPECT_EQ(queue.expired(at(60)), c);
  queue.extend(b, at(5));
  EXPECT_EQ(queue.expired(at(60)), b);
  queue.revoke(b);
  EXPECT_EQ(queue.next_deadline(), at(30));
  queue.extend(b, at(1));  // It is over.
  EXPECT_EQ(queue.next_deadline(), at(30));
}

TEST(DistQueue, AGroupThatLeavesTakesItsShareOfALeaseAlong) {
  DistQueue queue = queue_of(References::None, 2);
  generate(queue, ids({0, 1, 2}));
  const LeaseId lease = queue.lease(Task::Reward, kScorer, ids({0, 1, 2}), at(kNever));
  queue.remove_group(GroupId(0));
  EXPECT_EQ(queue.find(lease)->open, 1);
  EXPECT_FALSE(queue.holds(lease, ResponseId(0)));
  EXPECT_EQ(queue.generated(), 1);
  EXPECT_EQ(queue.load(kScorer).responses, 1);
  queue.remove_group(GroupId(1));
  EXPECT_EQ(queue.find(lease), nullptr);
  EXPECT_EQ(queue.generated(), 0);
  EXPECT_TRUE(queue.ready(Task::Generate).empty());
}

TEST(DistQueue, AGroupInTrainingIsNoLongerTrainableAndComesBackIfTheTrainerDies) {
  DistQueue queue = queue_of(References::None);
  generate(queue, ids({0, 1}));
  judge(queue, ids({0, 1}));
  EXPECT_FALSE(queue.in_training(GroupId(0)));
  const LeaseId update = queue.lease(Task::Train, kTrainer, ids({0, 1}), at(kNever));
  EXPECT_TRUE(queue.in_training(GroupId(0)));
  EXPECT_TRUE(queue.trainable().empty());
  EXPECT_TRUE(queue.judged_by_version().empty());
  queue.revoke_all(kTrainer);
  EXPECT_EQ(queue.trainable().size(), 1U);
  const LeaseId second = queue.lease(Task::Train, kTrainer, ids({0, 1}), at(kNever));
  EXPECT_FALSE(queue.holds(update, ResponseId(0)));
  for (const ResponseId r : ids({0, 1}))
    queue.commit(second, r);
  EXPECT_FALSE(queue.in_training(GroupId(0)));
  EXPECT_TRUE(queue.trainable().empty()) << "it is trained on once";
}

TEST(DistQueue, AttemptsAddTheirTokensUpAndTheMeanVersionIsOfThemAll) {
  DistQueue queue = queue_of(References::None);
  const ResponseId r(0);
  queue.append_tokens(r, Tokens(9), Tokens(3), {{kV0, Tokens(1)}, {kV1, Tokens(2)}});
  queue.append_tokens(r, Tokens(9), Tokens(4), {{kV1, Tokens(1)}, {kV2, Tokens(3)}});
  EXPECT_EQ(queue.row(r)->prompt, Tokens(9));
  EXPECT_EQ(queue.row(r)->tokens, Tokens(7));
  EXPECT_EQ(queue.row(r)->segments,
            (std::vector<actors::Segment>{{kV0, Tokens(1)}, {kV1, Tokens(3)}, {kV2, Tokens(3)}}))
      << "neighbours of one version are one segment";
  generate(queue, ids({0}));
  EXPECT_EQ(queue.mean_version(GroupId(0)), std::nullopt) << "response 1 is not there yet";
  queue.append_tokens(ResponseId(1), Tokens(9), Tokens(3), {{kV2, Tokens(3)}});
  generate(queue, ids({1}));
  // (1 * 0 + 3 * 1 + 3 * 2 + 3 * 2) / 10 = 1.5
  EXPECT_EQ(queue.mean_version(GroupId(0)), kV1);
}

TEST(DistQueue, TheAgeOfAGroupIsCountedFromItsDispatchUntilAnotherVersionIsNamed) {
  DistQueue queue = queue_of(References::None);
  generate(queue, ids({0, 1}));
  judge(queue, ids({0, 1}));
  queue.count_age(GroupId(0), kV2);
  EXPECT_EQ(queue.group(GroupId(0))->age_from(), kV2);
  EXPECT_EQ(queue.trainable(), (std::set{std::pair(kV2, GroupId(0))}));
  EXPECT_EQ(queue.trainable_by_version(), (std::map<PolicyVersion, std::int64_t>{{kV2, 1}}));
  EXPECT_EQ(queue.judged_by_version(), (std::map<PolicyVersion, std::int64_t>{{kV2, 1}}));
}

TEST(DistQueue, RewardsAreEqualOnlyWhenAllLiveResponsesAreJudgedAlike) {
  DistQueue queue = queue_of(References::None, 2);
  generate(queue, ids({0, 1, 2, 3}));
  EXPECT_FALSE(queue.rewards_equal(GroupId(0)));
  judge(queue, ids({0}), 0.5);
  EXPECT_FALSE(queue.rewards_equal(GroupId(0))) << "one is missing";
  judge(queue, ids({1, 2}), 0.5);
  EXPECT_TRUE(queue.rewards_equal(GroupId(0)));
  judge(queue, ids({3}), 1);
  EXPECT_FALSE(queue.rewards_equal(GroupId(1)));
  queue.fail(ResponseId(3));
  EXPECT_TRUE(queue.rewards_equal(GroupId(1))) << "a failed one has no say";
  queue.fail(ResponseId(2));
  EXPECT_FALSE(queue.rewards_equal(GroupId(1))) << "nobody is left";
}

TEST(DistQueue, AResponseThatWasPutIsGenerated) {
  DistQueue queue = queue_of(References::None);
  queue.put(ResponseId(0), Field::Response);
  queue.put(ResponseId(0), Field::Response);
  EXPECT_EQ(queue.generated(), 1);
  queue.remove_group(GroupId(0));
  EXPECT_EQ(queue.generated(), 0);
}

TEST(DistQueue, AStoredTableIsReadBackWithoutItsLeases) {
  DistQueue queue = queue_of(References::Needed, 2);
  generate(queue, ids({0, 1}));
  judge(queue, ids({0}), 0.25);
  queue.fail(ResponseId(3));
  const LeaseId lost = queue.lease(Task::Generate, kEngine, ids({2}), at(5));
  queue.lease(Task::Reference, kScorer, ids({0, 1}), at(6));
  queue.set_cached(ResponseId(2), kEngine);

  DistQueue back = decode<DistQueue>(encode(queue)).value();
  back.rebuild();
  back.rebuild();  // Twice is as once.
  EXPECT_EQ(ready(back, Task::Generate), ids({2}));
  EXPECT_EQ(ready(back, Task::Reference), ids({0, 1}));
  EXPECT_EQ(ready(back, Task::Reward), ids({1}));
  EXPECT_EQ(back.generated(), 2);
  EXPECT_EQ(back.row(ResponseId(0))->reward, 0.25);
  EXPECT_EQ(back.row(ResponseId(2))->cached_on, std::nullopt) << "no engine outlives a restart";
  EXPECT_EQ(back.next_deadline(), std::nullopt);
  EXPECT_EQ(back.load(kEngine).leases, 0);
  EXPECT_FALSE(back.holds(lost, ResponseId(2)));
  EXPECT_GT(back.lease(Task::Generate, kEngine, ids({2}), at(7)), lost);
}

}  // namespace
}  // namespace temper::orchestrator
