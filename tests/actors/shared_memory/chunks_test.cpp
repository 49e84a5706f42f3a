#include "actors/shared_memory/chunks.hpp"

#include "core/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>

namespace temper::actors {
namespace {

constexpr PolicyVersion kChunked(3);
constexpr Bytes kLimit(64 << 20);

std::vector<std::byte> image_of(std::size_t bytes) {
  std::vector<std::byte> image(bytes);
  Random rng(1, "test.image");
  for (std::size_t i = 0; i + 8 <= bytes; i += 8) {
    const std::uint64_t eight = rng.next();
    std::memcpy(image.data() + i, &eight, 8);
  }
  return image;
}

std::vector<WeightsChunk> chunks_of(const std::vector<std::byte>& image) {
  std::vector<WeightsChunk> chunks;
  EXPECT_TRUE(for_each_chunk(kChunked, image, [&](WeightsChunk chunk) -> Status {
    chunks.push_back(std::move(chunk));
    return {};
  }));
  return chunks;
}

ChunkAssembler start(const std::vector<std::byte>& image) {
  return ChunkAssembler::start(chunked_handle(kChunked, image), kLimit).value();
}

TEST(Chunks, ReassembleInAnyOrderWithRepeats) {
  const auto image = image_of((3 << 20) + 17);
  auto chunks = chunks_of(image);
  ASSERT_EQ(chunks.size(), 4U);
  EXPECT_EQ(chunks[3].data.size(), 17U);
  std::reverse(chunks.begin(), chunks.end());
  ChunkAssembler assembler = start(image);
  for (const WeightsChunk& chunk : chunks) {
    EXPECT_FALSE(assembler.complete());
    EXPECT_TRUE(assembler.add(chunk));
    EXPECT_TRUE(assembler.add(chunk)) << "a repeated chunk has no effect";
  }
  EXPECT_TRUE(assembler.complete());
  EXPECT_EQ(std::move(assembler).take().value(), image);
}

TEST(Chunks, AnEmptyImageHasNoChunks) {
  EXPECT_TRUE(chunks_of({}).empty());
  ChunkAssembler assembler = start({});
  EXPECT_TRUE(assembler.complete());
  EXPECT_TRUE(std::move(assembler).take().value().empty());
}

TEST(Chunks, NamesMissingChunks) {
  const auto image = image_of(3 << 20);
  const auto chunks = chunks_of(image);
  ChunkAssembler assembler = start(image);
  ASSERT_TRUE(assembler.add(chunks[1]));
  const auto taken = std::move(assembler).take();
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().context,
            "weights of version 3: 2 of 3 chunks are missing, at offset 0, 2097152");
}

TEST(Chunks, RejectsForeignAndCorruptChunks) {
  const auto image = image_of((2 << 20) + 5);
  const auto chunks = chunks_of(image);
  struct Case {
    const char* expected;
    WeightsChunk chunk;
  };
  std::vector<Case> cases;
  const auto broken = [&](const char* expected, auto change) {
    WeightsChunk chunk = chunks[1];
    change(chunk);
    cases.push_back({expected, chunk});
  };
  broken("expected version 3", [](WeightsChunk& c) { c.version = PolicyVersion(4); });
  broken("not a chunk boundary", [](WeightsChunk& c) { c.offset += 1; });
  broken("not a chunk boundary", [](WeightsChunk& c) { c.offset = 1ULL << 40; });
  broken("not a chunk boundary", [](WeightsChunk& c) { c.offset = 3 << 20; });
  broken("expected 1048576 bytes, found 1048577", [](WeightsChunk& c) { c.data.push_back({}); });
  broken("found 0", [](WeightsChunk& c) { c.data.clear(); });
  broken("checksum", [](WeightsChunk& c) { c.data[9] ^= std::byte{1}; });
  broken("checksum", [](WeightsChunk& c) { c.checksum ^= 1; });
  ChunkAssembler assembler = start(image);
  for (const Case& c : cases) {
    const Status added = assembler.add(c.chunk);
    ASSERT_FALSE(added) << c.expected;
    EXPECT_NE(added.error().context.find(c.expected), std::string::npos) << added.error().context;
    EXPECT_TRUE(added.error().context.starts_with("chunk at offset")) << added.error().context;
  }
  for (const WeightsChunk& chunk : chunks)
    EXPECT_TRUE(assembler.add(chunk)) << "rejected chunks must have no effect";
  EXPECT_EQ(std::move(assembler).take().value(), image);
}

TEST(Chunks, RejectsAnOversizedImageBeforeAllocating) {
  WeightsHandle huge{.version = kChunked, .bytes = Bytes(1LL << 50)};
  const auto assembler = ChunkAssembler::start(huge, kLimit);
  ASSERT_FALSE(assembler);
  EXPECT_EQ(assembler.error().code, ErrorCode::OutOfMemory);
  huge.bytes = Bytes(-1);
  EXPECT_FALSE(ChunkAssembler::start(huge, kLimit));
}

TEST(Chunks, RejectsAnImageWithAWrongChecksum) {
  const auto image = image_of(100);
  WeightsHandle handle = chunked_handle(kChunked, image);
  handle.checksum ^= 1;
  auto assembler = ChunkAssembler::start(handle, kLimit).value();
  for (const WeightsChunk& chunk : chunks_of(image))
    ASSERT_TRUE(assembler.add(chunk));
  EXPECT_EQ(std::move(assembler).take().error().code, ErrorCode::Corrupt);
}

TEST(Chunks, StopsAtTheFirstSendError) {
  int calls = 0;
  const Status sent = for_each_chunk(kChunked, image_of(4 << 20), [&](WeightsChunk) -> Status {
    return ++calls == 2 ? Status(Error{ErrorCode::Unavailable, "peer gone"}) : Status();
  });
  EXPECT_FALSE(sent);
  EXPECT_EQ(calls, 2);
}

}  // namespace
}  // namespace temper::actors
