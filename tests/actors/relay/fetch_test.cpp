// The transitions of the state machine in fetch.hpp.
#include "actors/relay/fetch.hpp"

#include <gtest/gtest.h>

namespace temper::actors {
namespace {

using namespace std::chrono_literals;
using Ask = Fetch::Request;
using Refusal = Fetch::Refusal;

constexpr PolicyVersion kFetched(7);
constexpr std::uint64_t kFetchedSize = 1 << 20;
constexpr Duration kPatience = 3s;

class FetchTest : public testing::Test {
 protected:
  FetchTest() : image_(2 * kFetchedSize + 100) {
    for (std::size_t i = 0; i < image_.size(); ++i)
      image_[i] = static_cast<std::byte>(i * 31 + i / kFetchedSize);
    EXPECT_TRUE(for_each_chunk(kFetched, image_, [this](WeightsChunk chunk) -> Status {
      chunks_.push_back(std::move(chunk));
      return {};
    }));
  }
  Fetch start(std::size_t sources) {
    return Fetch::start(chunked_handle(kFetched, image_), sources, kPatience, now_).value();
  }
  static Ask of(std::size_t source, std::uint64_t offset) { return {source, offset}; }
  static Ask of_orchestrator(std::uint64_t offset) { return {std::nullopt, offset}; }
  bool add(Fetch& fetch, std::size_t chunk) { return fetch.add(chunks_[chunk], now_).value(); }

  std::vector<std::byte> image_;
  std::vector<WeightsChunk> chunks_;
  Time now_{};
};

TEST_F(FetchTest, AsksTheFirstSourceOnceAndCompletesWithTheLastChunk) {
  Fetch fetch = start(2);
  EXPECT_EQ(fetch.next(now_), of(0, 0));
  EXPECT_EQ(fetch.next(now_), std::nullopt);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_FALSE(fetch.is_whole());
    EXPECT_TRUE(add(fetch, i));
  }
  EXPECT_TRUE(fetch.is_whole());
  EXPECT_EQ(fetch.deadline(), std::nullopt);
  EXPECT_EQ(fetch.take(now_).value(), image_);
}

TEST_F(FetchTest, SendsNoRequestIfTheOrchestratorSendsTheImage) {
  Fetch fetch = start(0);
  EXPECT_EQ(fetch.next(now_), std::nullopt);
  EXPECT_EQ(fetch.deadline(), std::nullopt);
  EXPECT_EQ(fetch.source(), std::nullopt);
}

TEST_F(FetchTest, AsksTheNextSourceForTheRestAfterSilence) {
  Fetch fetch = start(2);
  fetch.next(now_);
  add(fetch, 0);
  EXPECT_EQ(fetch.deadline(), now_ + kPatience);
  now_ += kPatience - 1ns;
  EXPECT_EQ(fetch.next(now_), std::nullopt);
  now_ += 1ns;
  EXPECT_EQ(fetch.next(now_), of(1, kFetchedSize));
  now_ += kPatience;
  EXPECT_EQ(fetch.next(now_), of_orchestrator(kFetchedSize));
  EXPECT_EQ(fetch.deadline(), std::nullopt);
}

TEST_F(FetchTest, HeartbeatsKeepAWaitingSource) {
  Fetch fetch = start(1);
  fetch.next(now_);
  for (int i = 0; i < 10; ++i) {
    now_ += kPatience - 1ms;
    fetch.heard(now_);
    EXPECT_EQ(fetch.next(now_), std::nullopt);
  }
}

TEST_F(FetchTest, RepeatsTheRequestWhileTheSourceIsNotReady) {
  Fetch fetch = start(1);
  fetch.next(now_);
  const Time begin = now_;
  for (int asked = 1; now_ - begin < kPatience; ++asked) {
    fetch.refused(Refusal::NotYet, now_);
    EXPECT_EQ(fetch.next(now_), std::nullopt);
    now_ += Fetch::kAgain;
    ASSERT_EQ(fetch.next(now_), of(0, 0)) << "time " << asked;
  }
  fetch.refused(Refusal::NotYet, now_);
  EXPECT_EQ(fetch.next(now_), of_orchestrator(0));
}

TEST_F(FetchTest, SwitchesAtOnceIfTheSourceWillNotHaveTheImage) {
  Fetch fetch = start(2);
  fetch.next(now_);
  fetch.refused(Refusal::Never, now_);
  EXPECT_EQ(fetch.next(now_), of(1, 0));
}

TEST_F(FetchTest, DropsASourceThatSendsAWrongChecksum) {
  Fetch fetch = start(1);
  fetch.next(now_);
  add(fetch, 0);
  chunks_[1].data[5] ^= std::byte{1};
  EXPECT_FALSE(add(fetch, 1));
  EXPECT_EQ(fetch.have(), kFetchedSize);
  EXPECT_EQ(fetch.next(now_), of_orchestrator(kFetchedSize));
  EXPECT_FALSE(fetch.add(chunks_[1], now_).has_value())
      << "a wrong chunk of the orchestrator is an error";
}

TEST_F(FetchTest, DropsASourceThatSkipsAChunk) {
  Fetch fetch = start(1);
  fetch.next(now_);
  EXPECT_FALSE(add(fetch, 1));
  EXPECT_EQ(fetch.next(now_), of_orchestrator(0));
}

TEST_F(FetchTest, IgnoresRepeatedChunksAndOtherVersions) {
  Fetch fetch = start(1);
  fetch.next(now_);
  add(fetch, 0);
  EXPECT_FALSE(add(fetch, 0));
  WeightsChunk other = chunks_[1];
  other.version = PolicyVersion(6);
  EXPECT_FALSE(fetch.add(other, now_).value());
  EXPECT_EQ(fetch.have(), kFetchedSize);
  EXPECT_EQ(fetch.source(), 0U);
}

TEST_F(FetchTest, RefetchesACorruptImageFromTheOrchestratorOnce) {
  WeightsHandle wrong = chunked_handle(kFetched, image_);
  wrong.checksum += 1;
  Fetch fetch = Fetch::start(wrong, 1, kPatience, now_).value();
  fetch.next(now_);
  for (std::size_t i = 0; i < 3; ++i)
    add(fetch, i);
  EXPECT_EQ(fetch.take(now_).value(), std::nullopt);
  EXPECT_EQ(fetch.next(now_), of_orchestrator(0));
  for (std::size_t i = 0; i < 3; ++i)
    EXPECT_TRUE(add(fetch, i));
  const auto taken = fetch.take(now_);
  ASSERT_FALSE(taken.has_value());
  EXPECT_EQ(taken.error().code, ErrorCode::Corrupt);
}

}  // namespace
}  // namespace temper::actors
