// WeightStore: when an announced version counts as published, and which versions are kept.
#include "orchestrator/run/weight_store.hpp"

#include <gtest/gtest.h>

namespace temper::orchestrator {
namespace {

using actors::WeightsChunk;
using actors::WeightsHandle;
using Image = std::vector<std::byte>;

constexpr ActorId kSender(4);

Image image_of(std::size_t bytes, int seed = 1) {
  Image image(bytes);
  for (std::size_t i = 0; i < bytes; ++i)
    image[i] = static_cast<std::byte>(i * 31 + static_cast<std::size_t>(seed));
  return image;
}

std::vector<WeightsChunk> chunks_of(PolicyVersion version, const Image& image) {
  std::vector<WeightsChunk> chunks;
  EXPECT_TRUE(actors::for_each_chunk(version, image, [&](WeightsChunk chunk) -> Status {
    chunks.push_back(std::move(chunk));
    return {};
  }));
  return chunks;
}

WeightsHandle in_memory(std::uint64_t version, std::int32_t fd = 5) {
  return {
      .version = PolicyVersion(version), .bytes = Bytes(100), .checksum = 1, .pid = 77, .fd = fd};
}

Event ready(std::uint64_t version) {
  return event::ActorReady{kSender, PolicyVersion(version)};
}

/// The version that the scheduler would hear of; none: nothing yet.
std::optional<PolicyVersion> heard(const Result<std::optional<Event>>& result) {
  EXPECT_TRUE(result);
  if (!result || !*result)
    return std::nullopt;
  return std::get<event::ActorReady>(**result).weights;
}

TEST(WeightStore, WeightsInSharedMemoryArePublishedAtOnce) {
  WeightStore store;
  EXPECT_EQ(heard(store.announce(in_memory(3, 9), ready(3))), PolicyVersion(3));
  ASSERT_NE(store.handle(PolicyVersion(3)), nullptr);
  EXPECT_EQ(store.handle(PolicyVersion(3))->fd, 9);
  EXPECT_EQ(store.handle(PolicyVersion(3))->pid, 77);
  EXPECT_EQ(store.image(PolicyVersion(3)), nullptr) << "the trainer's process has them";
  EXPECT_EQ(store.handle(PolicyVersion(4)), nullptr);
  EXPECT_EQ(store.image(PolicyVersion(4)), nullptr);
}

TEST(WeightStore, WeightsInChunksArePublishedWithTheLastOne) {
  WeightStore store;
  const PolicyVersion v(2);
  const Image image = image_of((2 << 20) + 5);
  auto chunks = chunks_of(v, image);
  ASSERT_EQ(chunks.size(), 3U);
  EXPECT_EQ(heard(store.announce(actors::chunked_handle(v, image), ready(2))), std::nullopt);
  EXPECT_EQ(heard(store.add(chunks[2])), std::nullopt) << "in any order";
  EXPECT_EQ(heard(store.add(chunks[0])), std::nullopt);
  EXPECT_EQ(heard(store.add(chunks[0])), std::nullopt) << "a repeat changes nothing";
  EXPECT_EQ(store.handle(v), nullptr) << "not before it is whole";
  EXPECT_EQ(heard(store.add(chunks[1])), v);
  ASSERT_NE(store.image(v), nullptr);
  EXPECT_EQ(*store.image(v), image);
  EXPECT_LT(store.handle(v)->fd, 0);
}

TEST(WeightStore, OnlyWhoIsStagingAVersionIsSentTheRestOfItFromAChunksBeginning) {
  WeightStore store;
  const PolicyVersion v(2);
  const Image image = image_of((2 << 20) + 5);
  EXPECT_EQ(heard(store.announce(actors::chunked_handle(v, image), ready(2))), std::nullopt);
  for (const auto& chunk : chunks_of(v, image))
    static_cast<void>(store.add(chunk));
  const std::uint64_t checksum = store.handle(v)->checksum, chunk = 1 << 20;
  for (const std::size_t first : {0U, 1U, 2U}) {
    EXPECT_TRUE(store.check({v, checksum, first * chunk}, v));
    EXPECT_EQ(store.chunks(v, first * chunk).size(), 3 - first);
  }
  EXPECT_FALSE(store.check({v, checksum, 0}, std::nullopt)) << "it was asked for nothing";
  EXPECT_FALSE(store.check({v, checksum, 0}, PolicyVersion(1))) << "it was asked for another";
  EXPECT_FALSE(store.check({v, checksum + 1, 0}, v)) << "of another image";
  EXPECT_FALSE(store.check({v, checksum, 7}, v)) << "in the middle of a chunk";
  EXPECT_FALSE(store.check({v, checksum, 3 * chunk}, v)) << "behind its end";
}

TEST(WeightStore, AnImageOnRequestIsPublishedAtOnceAndHereOnceItWasRequested) {
  WeightStore store;
  const PolicyVersion v(2);
  const Image image = image_of((2 << 20) + 5);
  WeightsHandle handle = actors::chunked_handle(v, image);
  handle.on_request = true;
  EXPECT_EQ(heard(store.announce(handle, ready(2))), v);
  EXPECT_EQ(store.image(v), nullptr);
  EXPECT_TRUE(store.chunks(v).empty());
  const auto chunks = chunks_of(v, image);
  EXPECT_FALSE(store.add(chunks[0])) << "nobody requested it";
  const auto request = store.request(v);
  ASSERT_TRUE(request && *request);
  EXPECT_EQ((*request)->version, v);
  EXPECT_EQ((*request)->checksum, handle.checksum);
  EXPECT_EQ((*request)->offset, 0U);
  EXPECT_FALSE(store.request(v)->has_value()) << "once";
  for (const WeightsChunk& chunk : chunks) {
    EXPECT_EQ(store.image(v), nullptr);
    EXPECT_EQ(heard(store.add(chunk)), std::nullopt) << "the version is published already";
  }
  ASSERT_NE(store.image(v), nullptr);
  EXPECT_EQ(*store.image(v), image);
  EXPECT_FALSE(store.request(v)->has_value()) << "it is here";
  EXPECT_EQ(store.chunks(v, 1 << 20).size(), 2U);
}

TEST(WeightStore, ARequestedImageOfAnotherChecksumIsRefused) {
  WeightStore store;
  const PolicyVersion v(2);
  const Image image = image_of(64);
  WeightsHandle handle = actors::chunked_handle(v, image);
  handle.on_request = true;
  handle.checksum ^= 1;
  ASSERT_TRUE(store.announce(handle, ready(2)));
  ASSERT_TRUE(store.request(v));
  const auto whole = store.add(chunks_of(v, image).front());
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, ErrorCode::Corrupt);
  EXPECT_EQ(store.image(v), nullptr);
}

TEST(WeightStore, TheTwoNewestImagesOnRequestAreKnownAsTheTrainerKeepsNoMore) {
  WeightStore store;
  for (std::uint64_t v = 1; v <= 4; ++v) {
    WeightsHandle handle = actors::chunked_handle(PolicyVersion(v), image_of(8));
    handle.on_request = true;
    ASSERT_TRUE(store.announce(handle, ready(v)));
  }
  for (std::uint64_t v = 1; v <= 4; ++v)
    EXPECT_EQ(store.handle(PolicyVersion(v)) != nullptr, v > 2) << v;
  EXPECT_FALSE(store.request(PolicyVersion(1))->has_value());
}

TEST(WeightStore, ImagesThatAreNotOnRequestAreNotRequested) {
  WeightStore store;
  ASSERT_TRUE(store.announce(in_memory(1), ready(1)));
  EXPECT_FALSE(store.request(PolicyVersion(1))->has_value());
}

TEST(WeightStore, WhoeverIsSentChunksSharesTheirBytes) {
  WeightStore store;
  const PolicyVersion v(2);
  const Image image = image_of((2 << 20) + 5);
  EXPECT_EQ(heard(store.announce(actors::chunked_handle(v, image), ready(2))), std::nullopt);
  for (const WeightsChunk& chunk : chunks_of(v, image))
    EXPECT_TRUE(store.add(chunk));
  auto one = store.chunks(v);
  auto other = store.chunks(v);
  ASSERT_EQ(one.size(), 3U);
  EXPECT_EQ(one[1].take_body().data(), other[1].take_body().data());
  EXPECT_TRUE(store.chunks(PolicyVersion(9)).empty());
}

TEST(WeightStore, AnImageWithoutAByteIsWholeWhenItIsAnnounced) {
  WeightStore store;
  const PolicyVersion v(1);
  EXPECT_EQ(heard(store.announce(actors::chunked_handle(v, {}), ready(1))), v)
      << "no chunk will come that could publish it";
  ASSERT_NE(store.image(v), nullptr);
  EXPECT_TRUE(store.image(v)->empty());
}

TEST(WeightStore, AChunkThatNobodyAnnouncedIsRefused) {
  WeightStore store;
  const PolicyVersion v(6);
  const Image image = image_of(10);
  const WeightsChunk chunk = chunks_of(v, image).front();
  const auto early = store.add(chunk);
  ASSERT_FALSE(early);
  EXPECT_EQ(early.error().context, "a chunk of version 6 without announcement");
  ASSERT_TRUE(store.announce(actors::chunked_handle(v, image), ready(6)));
  EXPECT_EQ(heard(store.add(chunk)), v);
  EXPECT_FALSE(store.add(chunk)) << "the version is whole: it is not announced any more";
  EXPECT_EQ(*store.image(v), image);
}

TEST(WeightStore, ADamagedChunkIsRefusedAndTheRightOneStillCounts) {
  WeightStore store;
  const PolicyVersion v(1);
  const Image image = image_of(1000);
  const WeightsChunk chunk = chunks_of(v, image).front();
  ASSERT_TRUE(store.announce(actors::chunked_handle(v, image), ready(1)));
  WeightsChunk damaged = chunk;
  damaged.data[3] ^= std::byte{1};
  EXPECT_FALSE(store.add(damaged));
  WeightsChunk foreign = chunk;
  foreign.version = PolicyVersion(2);
  EXPECT_FALSE(store.add(foreign));
  EXPECT_EQ(heard(store.add(chunk)), v);
}

TEST(WeightStore, AnImageOfAnotherChecksumIsNeverPublished) {
  WeightStore store;
  const PolicyVersion v(1);
  const Image image = image_of(64);
  WeightsHandle handle = actors::chunked_handle(v, image);
  handle.checksum ^= 1;
  ASSERT_TRUE(store.announce(handle, ready(1)));
  const auto whole = store.add(chunks_of(v, image).front());
  ASSERT_FALSE(whole);
  EXPECT_EQ(whole.error().code, ErrorCode::Corrupt);
  EXPECT_EQ(store.handle(v), nullptr);
  EXPECT_EQ(store.image(v), nullptr);
}

TEST(WeightStore, AnImageThatIsTooLargeIsRefusedWhenItIsAnnounced) {
  WeightStore store;
  WeightsHandle huge{.version = PolicyVersion(1),
                     .bytes = actors::kLargestImage + Bytes(1),
                     .checksum = 0,
                     .pid = 0,
                     .fd = -1};
  for (const bool on_request : {false, true}) {
    huge.on_request = on_request;
    const auto announced = store.announce(huge, ready(1));
    ASSERT_FALSE(announced);
    EXPECT_EQ(announced.error().code, ErrorCode::OutOfMemory);
  }
}

TEST(WeightStore, ANewAnnouncementTakesThePlaceOfOneThatIsNotWhole) {
  WeightStore store;
  const Image first = image_of((1 << 20) + 1, 1), second = image_of(50, 2);
  ASSERT_TRUE(store.announce(actors::chunked_handle(PolicyVersion(1), first), ready(1)));
  ASSERT_TRUE(store.add(chunks_of(PolicyVersion(1), first)[0]));
  ASSERT_TRUE(store.announce(actors::chunked_handle(PolicyVersion(2), second), ready(2)));
  EXPECT_FALSE(store.add(chunks_of(PolicyVersion(1), first)[1])) << "that trainer is gone";
  EXPECT_EQ(heard(store.add(chunks_of(PolicyVersion(2), second)[0])), PolicyVersion(2));
  EXPECT_EQ(store.handle(PolicyVersion(1)), nullptr);
}

TEST(WeightStore, TheFourNewestVersionsAreKept) {
  WeightStore store;
  for (std::uint64_t v = 1; v <= 6; ++v)
    ASSERT_TRUE(store.announce(in_memory(v), ready(v)));
  for (std::uint64_t v = 1; v <= 6; ++v)
    EXPECT_EQ(store.handle(PolicyVersion(v)) != nullptr, v > 2) << v;
}

TEST(WeightStore, AnImageInUseOutlivesItsPlaceInTheStore) {
  WeightStore store;
  const Image image = image_of(20);
  ASSERT_TRUE(store.announce(actors::chunked_handle(PolicyVersion(1), image), ready(1)));
  ASSERT_TRUE(store.add(chunks_of(PolicyVersion(1), image).front()));
  const auto in_use = store.image(PolicyVersion(1));
  for (std::uint64_t v = 2; v <= 5; ++v)
    ASSERT_TRUE(store.announce(in_memory(v), ready(v)));
  EXPECT_EQ(store.image(PolicyVersion(1)), nullptr);
  EXPECT_EQ(*in_use, image);
}

TEST(WeightStore, AVersionThatIsAnnouncedAgainIsTheLaterOne) {
  WeightStore store;
  ASSERT_TRUE(store.announce(in_memory(2, 5), ready(2)));
  ASSERT_TRUE(store.announce(in_memory(2, 8), ready(2)));
  EXPECT_EQ(store.handle(PolicyVersion(2))->fd, 8);
}

TEST(WeightStore, AResumedRunStartsWithoutWeights) {
  WeightStore store;
  const Image image = image_of(20);
  ASSERT_TRUE(store.announce(in_memory(4), ready(4)));
  ASSERT_TRUE(store.announce(actors::chunked_handle(PolicyVersion(5), image), ready(5)));
  store.clear();
  EXPECT_EQ(store.handle(PolicyVersion(4)), nullptr);
  EXPECT_FALSE(store.add(chunks_of(PolicyVersion(5), image).front()))
      << "what was under way belongs to a trainer that is gone";
}

}  // namespace
}  // namespace temper::orchestrator
