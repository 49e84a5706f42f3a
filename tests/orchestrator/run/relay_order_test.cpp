#include "orchestrator/run/relay_order.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using Feed = RelayOrder::Feed;
using Sources = std::vector<std::string>;

constexpr PolicyVersion kFirstVersion(1);
constexpr PolicyVersion kSecond(2);

/// Workers listen at tcp://HOST:ID with the key kID.
class RelayOrderTest : public testing::Test {
 protected:
  void join(std::uint32_t id, const std::string& host) {
    order_.join(ActorId(id),
                {"tcp://" + host + ":" + std::to_string(id), "k" + std::to_string(id)});
  }
  /// Ports of those that it asks.
  Sources sources(std::uint32_t id, PolicyVersion version = kFirstVersion) {
    Sources out;
    const auto plan = order_.plan(ActorId(id), version);
    for (const auto& address : plan->sources)
      out.push_back(address.endpoint.substr(address.endpoint.rfind(':') + 1));
    return out;
  }
  static Feed feed(std::uint32_t feeder, const std::string& key, bool admitted = true) {
    return {ActorId(feeder), key, admitted};
  }
  RelayOrder order_;
};

TEST_F(RelayOrderTest, TheFirstIsFedByTheOrchestratorAndEveryHostByTheOneBefore) {
  join(0, "a");
  join(1, "b");
  join(2, "c");
  EXPECT_EQ(sources(0), Sources{});
  EXPECT_EQ(sources(1), Sources{"0"});
  EXPECT_EQ(sources(2), (Sources{"1", "0"}));
}

TEST_F(RelayOrderTest, WorkersOfAHostFeedEachOtherSoThatItsLinkCarriesOneCopyEachWay) {
  join(0, "a");
  join(1, "a");
  join(2, "b");
  join(3, "b");
  EXPECT_EQ(sources(0), Sources{});
  EXPECT_EQ(sources(1), Sources{"0"});
  EXPECT_EQ(sources(2), Sources{"0"}) << "the first of its host, not the last";
  EXPECT_EQ(sources(3), (Sources{"2", "0"}));
}

TEST_F(RelayOrderTest, FeedersAreToldOfAWorkerOnce) {
  join(0, "a");
  join(1, "b");
  EXPECT_TRUE(order_.plan(ActorId(0), kFirstVersion)->feeds.empty());
  EXPECT_EQ(order_.plan(ActorId(1), kFirstVersion)->feeds, std::vector{feed(0, "k1")});
  order_.plan(ActorId(0), kSecond);
  EXPECT_TRUE(order_.plan(ActorId(1), kSecond)->feeds.empty());
}

TEST_F(RelayOrderTest, EachVersionHasAnOrderOfItsOwn) {
  join(0, "a");
  join(1, "b");
  EXPECT_EQ(sources(0), Sources{});
  EXPECT_EQ(sources(1), Sources{"0"});
  EXPECT_EQ(sources(1, kSecond), Sources{});
  EXPECT_EQ(sources(0, kSecond), Sources{"1"});
}

TEST_F(RelayOrderTest, AVersionThatIsPublishedAnewHasANewOrder) {
  join(0, "a");
  join(1, "b");
  sources(0);
  sources(1);
  order_.forget_versions();
  EXPECT_EQ(sources(1), Sources{});
}

TEST_F(RelayOrderTest, NobodyIsSentToOneThatIsGone) {
  join(0, "a");
  join(1, "b");
  join(2, "c");
  sources(0);
  sources(1);
  EXPECT_EQ(order_.leave(ActorId(1)), std::vector{feed(0, "k1", false)});
  EXPECT_EQ(sources(2), Sources{"0"});
}

TEST_F(RelayOrderTest, WhoeverComesInAPlaceIsToldItsWorkersAnew) {
  join(0, "a");
  join(1, "b");
  sources(0);
  sources(1);
  order_.leave(ActorId(0));
  join(0, "a");
  EXPECT_EQ(sources(1, kSecond), Sources{});
  EXPECT_EQ(order_.plan(ActorId(0), kSecond)->feeds, std::vector{feed(1, "k0")});
  order_.plan(ActorId(0), PolicyVersion(3));
  EXPECT_EQ(order_.plan(ActorId(1), PolicyVersion(3))->feeds, std::vector{feed(0, "k1")});
}

TEST_F(RelayOrderTest, OneThatCameAgainIsFedByThoseThatWereThere) {
  join(0, "a");
  join(1, "b");
  sources(0);
  sources(1);
  order_.leave(ActorId(0));
  join(0, "a");
  EXPECT_EQ(sources(0), Sources{"1"}) << "and not by itself after that";
}

TEST_F(RelayOrderTest, ATrainerThatHasTheWeightsFeedsTheFirstOfEachVersion) {
  join(9, "t");
  join(0, "a");
  join(1, "b");
  join(2, "c");
  join(3, "c");
  order_.begin_with(ActorId(9));
  EXPECT_EQ(sources(0), Sources{"9"});
  EXPECT_EQ(sources(1), (Sources{"0", "9"}));
  EXPECT_EQ(sources(2), (Sources{"1", "0", "9"})) << "the trainer last, not the orchestrator";
  EXPECT_EQ(sources(3), (Sources{"2", "1", "9"}));
  EXPECT_EQ(sources(3, kSecond), Sources{"9"});
  EXPECT_EQ(sources(2, kSecond), (Sources{"3", "9"}));
}

TEST_F(RelayOrderTest, TheTrainersHostIsTheFirstOfTheChain) {
  join(9, "t");
  join(0, "t");
  join(1, "b");
  order_.begin_with(ActorId(9));
  EXPECT_EQ(sources(0), Sources{"9"});
  EXPECT_EQ(sources(1), Sources{"9"}) << "the first of its host";
}

TEST_F(RelayOrderTest, TheTrainerIsToldOfEachWorkerOnce) {
  join(9, "t");
  join(0, "a");
  join(1, "b");
  order_.begin_with(ActorId(9));
  EXPECT_EQ(order_.plan(ActorId(0), kFirstVersion)->feeds, std::vector{feed(9, "k0")});
  EXPECT_EQ(order_.plan(ActorId(1), kFirstVersion)->feeds,
            (std::vector{feed(0, "k1"), feed(9, "k1")}));
  EXPECT_TRUE(order_.plan(ActorId(0), kSecond)->feeds.empty());
  EXPECT_EQ(order_.leave(ActorId(1)), (std::vector{feed(0, "k1", false), feed(9, "k1", false)}));
}

TEST_F(RelayOrderTest, ATrainerThatIsGoneFeedsNobody) {
  join(9, "t");
  join(0, "a");
  order_.begin_with(ActorId(9));
  EXPECT_EQ(sources(0), Sources{"9"});
  EXPECT_TRUE(order_.leave(ActorId(9)).empty());
  EXPECT_EQ(sources(0), Sources{});
  EXPECT_EQ(sources(0, kSecond), Sources{}) << "fed by the orchestrator until a trainer publishes";
  join(9, "t");
  order_.begin_with(ActorId(9));
  order_.join(ActorId(9), {});
  EXPECT_EQ(sources(0, PolicyVersion(3)), Sources{}) << "its next worker has published nothing";
}

TEST_F(RelayOrderTest, AWorkerWithoutAnAddressTakesNoPart) {
  order_.join(ActorId(0), {});
  join(1, "b");
  EXPECT_FALSE(order_.plan(ActorId(0), kFirstVersion).has_value());
  EXPECT_EQ(sources(1), Sources{});
}

}  // namespace
}  // namespace temper::orchestrator
