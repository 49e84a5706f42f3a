#include "sim_hw/events/event_queue.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace temper::sim_hw {
namespace {

Time at_ns(std::int64_t ns) {
  return Time(Duration(ns));
}

std::vector<EventQueue::Source> due(const EventQueue& queue) {
  std::vector<EventQueue::Source> out;
  queue.for_each_next([&](EventQueue::Source source) { out.push_back(source); });
  return out;
}

TEST(EventQueue, IsEmptyUntilAnEventIsSetAndAfterTheLastIsCleared) {
  EventQueue queue(3);
  EXPECT_TRUE(queue.empty());
  EXPECT_FALSE(queue.time());
  EXPECT_TRUE(due(queue).empty());
  queue.set(2, at_ns(5));
  EXPECT_EQ(queue.time(), at_ns(5));
  EXPECT_EQ(queue.next(), 2U);
  queue.set(2, std::nullopt);
  EXPECT_TRUE(queue.empty());
}

TEST(EventQueue, KeepsTheOrderOfSourcesAtEqualTimes) {
  EventQueue queue(6);
  for (const EventQueue::Source source : {5U, 1U, 3U})
    queue.set(source, at_ns(7));
  queue.set(0, at_ns(8));
  EXPECT_EQ(due(queue), (std::vector<EventQueue::Source>{1, 3, 5}));
  EXPECT_EQ(queue.next(), 1U);
}

TEST(EventQueue, ReplacesAnEventWithAnEarlierOrLaterOne) {
  EventQueue queue(2);
  queue.set(0, at_ns(10));
  queue.set(1, at_ns(20));
  queue.set(1, at_ns(5));
  EXPECT_EQ(queue.next(), 1U);
  queue.set(1, at_ns(30));
  EXPECT_EQ(queue.next(), 0U);
  EXPECT_EQ(queue.time(), at_ns(10));
}

TEST(EventQueue, WorksWithOneSource) {
  EventQueue queue(1);
  queue.set(0, at_ns(-3));
  EXPECT_EQ(queue.next(), 0U);
  queue.clear(0);
  EXPECT_TRUE(queue.empty());
}

/// Random sets and clears compared with an ordered set of (time, source), for one distribution of
/// times.
void agrees_with_an_ordered_set(std::size_t sources, std::int64_t spread, std::uint32_t seed) {
  std::mt19937 random(seed);
  EventQueue queue(sources);
  std::set<std::pair<Time, EventQueue::Source>> model;
  std::vector<std::optional<Time>> pending(sources);
  Time now{};
  for (int i = 0; i < 20000; ++i) {
    auto source = static_cast<EventQueue::Source>(random() % sources);
    if (random() % 2 == 0 && !queue.empty())  // like a simulation: handle the next event
      source = queue.next();
    if (pending[source])
      model.erase({*pending[source], source});
    pending[source].reset();
    if (random() % 8 != 0) {
      pending[source] = now + Duration(static_cast<std::int64_t>(random()) % spread);
      model.insert({*pending[source], source});
    }
    queue.set(source, pending[source]);
    ASSERT_EQ(queue.empty(), model.empty());
    if (model.empty())
      continue;
    ASSERT_EQ(queue.time(), model.begin()->first);
    ASSERT_EQ(queue.next(), model.begin()->second);
    now = *queue.time();
    std::vector<EventQueue::Source> expected;
    for (auto it = model.begin(); it != model.end() && it->first == now; ++it)
      expected.push_back(it->second);
    ASSERT_EQ(due(queue), expected);
  }
}

TEST(EventQueue, AgreesWithAnOrderedSetForFewAndManySourcesAndAnySpreadOfTimes) {
  for (const std::size_t sources : {1U, 2U, 7U, 64U, 1000U}) {
    agrees_with_an_ordered_set(sources, 1, 1);  // all equal
    agrees_with_an_ordered_set(sources, 4, 2);
    agrees_with_an_ordered_set(sources, 4'000'000'000, 3);
  }
}

}  // namespace
}  // namespace temper::sim_hw
