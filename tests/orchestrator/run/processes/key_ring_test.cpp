// KeyRing: what workers attach to a run with.
#include "orchestrator/run/processes/key_ring.hpp"

#include "core/temporary_folder.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

class Ring : public testing::Test {
 protected:
  fs::path run() const { return folder_.path() / "run"; }
  KeyRing open() const { return KeyRing::open(run(), KeyRing::Make::Missing).value(); }

 private:
  TemporaryFolder folder_ = TemporaryFolder::create("temperring-").value();
};

TEST_F(Ring, IsMadeOnceAndIsTheSameForAllWhoOpenIt) {
  EXPECT_EQ(KeyRing::open(run(), KeyRing::Make::No).error().code, ErrorCode::NotFound);
  const KeyRing first = open();
  const KeyRing second = open();
  EXPECT_EQ(first.head().run.size(), 32U);
  EXPECT_EQ(second.head().run, first.head().run);
  EXPECT_EQ(second.head().key.secret, first.head().key.secret);
}

TEST_F(Ring, AKeySaysWhichRunItIsOfAndIsItsUsersAlone) {
  KeyRing ring = open();
  const fs::path path = ring.make("mine", "rollout").value();
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600U);
  const actors::Credentials key = actors::read_credentials(path).value();
  EXPECT_EQ(key.run, ring.head().run);
  EXPECT_EQ(key.name, "mine");
  EXPECT_EQ(key.orchestrator_key, ring.head().key.open);
  ASSERT_EQ(ring.keys().size(), 1U);
  EXPECT_EQ(ring.keys().front().open, key.own.open);
  EXPECT_EQ(ring.keys().front().place, "rollout");
}

TEST_F(Ring, KeysWithoutNamesAreNumbered) {
  KeyRing ring = open();
  EXPECT_EQ(ring.make("", "any")->filename().string(), "key-1.key");
  EXPECT_EQ(ring.make("", "any")->filename().string(), "key-2.key");
}

TEST_F(Ring, ANameIsGivenOnceAlsoAfterItsKeyWasRevoked) {
  KeyRing ring = open();
  ASSERT_TRUE(ring.make("mine", "any"));
  ASSERT_TRUE(ring.revoke("mine"));
  EXPECT_EQ(ring.make("mine", "any").error().context, "there is a key mine already");
  EXPECT_FALSE(ring.make("../mine", "any"));
}

TEST_F(Ring, ARevokedKeyIsGoneAndSaysSince) {
  KeyRing ring = open();
  const fs::path path = ring.make("mine", "any").value();
  ASSERT_TRUE(ring.revoke("mine"));
  EXPECT_FALSE(fs::exists(path));
  EXPECT_FALSE(ring.keys().front().revoked.empty());
  EXPECT_FALSE(ring.revoke("mine"));
  EXPECT_EQ(ring.revoke("theirs").error().code, ErrorCode::NotFound);
}

TEST_F(Ring, WhatOthersChangedIsSeen) {
  KeyRing here = open();
  KeyRing there = open();
  EXPECT_FALSE(here.refresh().value());
  ASSERT_TRUE(there.make("mine", "any"));
  EXPECT_TRUE(here.refresh().value());
  EXPECT_EQ(here.keys().size(), 1U);
  EXPECT_FALSE(here.refresh().value());
}

TEST_F(Ring, CountsOrchestratorsFromOne) {
  KeyRing ring = open();
  EXPECT_EQ(ring.incarnation().value(), 0U);
  EXPECT_EQ(ring.begin_incarnation().value(), 1U);
  EXPECT_EQ(open().begin_incarnation().value(), 2U);
  EXPECT_EQ(ring.incarnation().value(), 2U);
}

TEST(Place, OfAKeyTakesInASlotItsRoleOrAny) {
  EXPECT_TRUE(covers("any", "trainer"));
  EXPECT_TRUE(covers("trainer", "trainer"));
  EXPECT_TRUE(covers("rollout", "rollout-12"));
  EXPECT_TRUE(covers("rollout-1", "rollout-1"));
  EXPECT_FALSE(covers("rollout-1", "rollout-12"));
  EXPECT_FALSE(covers("reward", "rollout-1"));
}

}  // namespace
}  // namespace temper::orchestrator
