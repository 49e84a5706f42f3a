#include "core/parallel.hpp"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace temper {
namespace {

TEST(ForEachIndex, RunsEveryTaskOnceOnAnyNumberOfThreads) {
  for (const int threads : {0, 1, 3, 50}) {
    std::vector<int> done(17, 0);
    for_each_index(done.size(), threads, [&](std::size_t i) { done[i] += 1; });
    EXPECT_EQ(done, std::vector<int>(17, 1)) << threads;
  }
}

TEST(ForEachIndex, RunsInOrderOnOneThread) {
  std::vector<std::size_t> order, expected(5);
  std::iota(expected.begin(), expected.end(), 0);
  for_each_index(5, 1, [&](std::size_t i) { order.push_back(i); });
  EXPECT_EQ(order, expected);
}

TEST(ForEachIndex, AcceptsZeroTasks) {
  for_each_index(0, 4, [](std::size_t) { FAIL(); });
}

TEST(WorkerThreads, DefaultToOnePerCore) {
  EXPECT_EQ(worker_threads(3), 3);
  EXPECT_GE(worker_threads(0), 1);
}

}  // namespace
}  // namespace temper
