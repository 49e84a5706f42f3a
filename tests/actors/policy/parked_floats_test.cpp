#include "actors/policy/parked_floats.hpp"

#include "core/files.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <vector>

namespace temper::actors {
namespace {

std::int64_t resident_bytes() {
  long total = 0, resident = 0;
  const std::string statm = read_file("/proc/self/statm").value_or("");
  EXPECT_EQ(std::sscanf(statm.c_str(), "%ld %ld", &total, &resident), 2);
  return resident * ::sysconf(_SC_PAGESIZE);
}

FloatBuffer counting(std::int64_t floats) {
  FloatBuffer buffer(floats);
  std::iota(buffer.span().begin(), buffer.span().end(), 1.0f);
  return buffer;
}

std::vector<float> values(const FloatBuffer& buffer) {
  return {buffer.span().begin(), buffer.span().end()};
}

TEST(ParkedFloats, RoundTripExactly) {
  for (const std::int64_t floats : {0, 1, 1000}) {
    const FloatBuffer before = counting(floats);
    const ParkedFloats parked = ParkedFloats::park(before).value();
    EXPECT_EQ(parked.bytes(), before.bytes());
    const FloatBuffer after = parked.map().value();
    EXPECT_TRUE(std::ranges::equal(before.span(), after.span()));
  }
}

TEST(ParkedFloats, KeepWhatWasWrittenAfterTheyWereMapped) {
  const FloatBuffer copy = counting(3);
  FloatBuffer floats = ParkedFloats::park(copy).value().map().value();
  floats.data()[1] = 7;
  const ParkedFloats again = ParkedFloats::park(floats).value();
  floats.release();
  const FloatBuffer after = again.map().value();
  EXPECT_EQ(values(after), (std::vector<float>{1, 7, 3}));
  EXPECT_EQ(values(copy), (std::vector<float>{1, 2, 3})) << "the first parking copies";
}

TEST(ParkedFloats, ACloneOfMappedFloatsHasMemoryOfItsOwn) {
  FloatBuffer floats = ParkedFloats::park(counting(2)).value().map().value();
  const FloatBuffer clone = floats.clone();
  floats.data()[0] = 9;
  EXPECT_EQ(values(clone), (std::vector<float>{1, 2}));
  EXPECT_FALSE(clone.file().is_open());
}

TEST(ParkedFloats, UseNoMemoryOfTheProcess) {
  constexpr std::int64_t kFloats = 16 << 20;
  FloatBuffer floats = counting(kFloats);
  const auto bytes = static_cast<double>(floats.bytes().count());
  const std::int64_t with = resident_bytes();
  const ParkedFloats parked = ParkedFloats::park(floats).value();
  floats.release();
  const std::int64_t without = resident_bytes();
  EXPECT_NEAR(static_cast<double>(with - without), bytes, 0.05 * bytes);
  const FloatBuffer back = parked.map().value();
  EXPECT_NEAR(static_cast<double>(resident_bytes() - without), bytes, 0.05 * bytes);
}

}  // namespace
}  // namespace temper::actors
