#include "core/deflate.hpp"

#include "core/random.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace temper {
namespace {

constexpr std::size_t kMost = std::size_t{1} << 20;

std::vector<std::string> pieces() {
  Random random(1, "pieces");
  std::vector<std::string> all;
  for (int i = 0; i < 300; ++i) {
    std::string piece = "a record that resembles the others " + std::to_string(i);
    const std::uint64_t more = random.below(i % 50 == 0 ? 70000 : 30);
    for (std::uint64_t n = 0; n < more; ++n)
      piece += static_cast<char>(random.below(256));
    all.push_back(piece);
  }
  return all;
}

TEST(Deflate, UnpacksRecordsInOrder) {
  Packer packer;
  Unpacker unpacker;
  std::string packed, unpacked;
  for (const std::string& piece : pieces()) {
    packed.clear();
    packer.pack(piece, packed);
    ASSERT_TRUE(unpacker.unpack(packed, kMost, unpacked));
    EXPECT_TRUE(unpacked == piece);
  }
}

TEST(Deflate, MakesSimilarRecordsSmall) {
  Packer packer;
  std::string first, second;
  packer.pack("rollout-7 generated response 1234 under lease 55", first);
  packer.pack("rollout-7 generated response 1235 under lease 55", second);
  EXPECT_LT(second.size() * 3, first.size());
}

TEST(Deflate, BeginDropsEarlierRecords) {
  Packer packer;
  std::string before, packed, unpacked;
  packer.pack("something that came before", before);
  packer.begin();
  packer.pack("something that came before it", packed);
  Unpacker unpacker;
  ASSERT_TRUE(unpacker.unpack(packed, kMost, unpacked));
  EXPECT_EQ(unpacked, "something that came before it");
}

TEST(Deflate, RejectsNoise) {
  Random random(2, "noise");
  std::string unpacked;
  for (int i = 0; i < 2000; ++i) {
    std::string noise;
    for (int n = 0; n < 40; ++n)
      noise += static_cast<char>(random.below(256));
    Unpacker unpacker;
    std::ignore = unpacker.unpack(noise, kMost, unpacked);  // may be valid by chance; never crashes
  }
  Unpacker unpacker;
  EXPECT_FALSE(unpacker.unpack("\xff\xff\xff", kMost, unpacked));
}

TEST(Deflate, StopsAtTheSizeLimit) {
  Packer packer;
  std::string packed, unpacked;
  packer.pack(std::string(std::size_t{1} << 22, 'x'), packed);
  Unpacker unpacker;
  EXPECT_FALSE(unpacker.unpack(packed, 1000, unpacked));
  EXPECT_LT(unpacked.size(), 10000U);
}

}  // namespace
}  // namespace temper
