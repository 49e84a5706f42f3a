#include "orchestrator/scheduler/queue/response_set.hpp"

#include <gtest/gtest.h>

#include <random>
#include <set>

namespace temper::orchestrator {
namespace {

std::vector<ResponseId> listed(const ResponseSet& set) {
  std::vector<ResponseId> out;
  for (const ResponseId r : set)
    out.push_back(r);
  return out;
}

TEST(ResponseSet, ListsByIdWhateverTheOrderOfInsertion) {
  ResponseSet set;
  for (const std::uint64_t id : {200U, 3U, 64U, 63U, 200U})
    set.insert(ResponseId(id));
  EXPECT_EQ(set.size(), 4U);
  EXPECT_EQ(
      listed(set),
      (std::vector<ResponseId>{ResponseId(3), ResponseId(63), ResponseId(64), ResponseId(200)}));
  set.erase(ResponseId(3));
  set.erase(ResponseId(5));
  EXPECT_EQ(*set.begin(), ResponseId(63));
  EXPECT_FALSE(set.contains(ResponseId(3)));
}

TEST(ResponseSet, IsEmptyAgainAndStartsAnywhere) {
  ResponseSet set;
  EXPECT_TRUE(listed(set).empty());
  set.insert(ResponseId(1'000'000));
  set.erase(ResponseId(1'000'000));
  EXPECT_TRUE(set.empty());
  EXPECT_TRUE(listed(set).empty());
  set.insert(ResponseId(7));
  EXPECT_EQ(listed(set), std::vector<ResponseId>{ResponseId(7)});
  set.clear();
  EXPECT_TRUE(set.empty());
  EXPECT_FALSE(set.contains(ResponseId(7)));
}

TEST(ResponseSet, AgreesWithAnOrderedSetAsIdsGrow) {
  std::mt19937 random(5);
  ResponseSet set;
  std::set<ResponseId> model;
  for (std::uint64_t i = 0; i < 30000; ++i) {
    // Mostly young ids; now and then one that had left long ago.
    const std::uint64_t back = random() % (random() % 100 == 0 ? 5000 : 300);
    const ResponseId r(i > back ? i - back : 0);
    if (random() % 2 == 0) {
      set.insert(r);
      model.insert(r);
    } else {
      set.erase(r);
      model.erase(r);
    }
    while (model.size() > 100) {
      set.erase(*model.begin());
      model.erase(model.begin());
    }
    ASSERT_EQ(set.size(), model.size());
    ASSERT_EQ(set.contains(r), model.contains(r));
    if (i % 16 == 0) {
      ASSERT_EQ(listed(set), std::vector<ResponseId>(model.begin(), model.end()));
    }
  }
}

}  // namespace
}  // namespace temper::orchestrator
