#include "actors/runtime/process.hpp"

#include <gtest/gtest.h>
#include <sched.h>
#include <unistd.h>

#include <array>
#include <thread>

namespace temper::actors {
namespace {

TEST(Process, PinsTheCallingThreadToOneCore) {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  ASSERT_EQ(::sched_getaffinity(0, sizeof(allowed), &allowed), 0);
  std::uint32_t core = 0;
  while (!CPU_ISSET(core, &allowed))
    ++core;
  std::thread([&] {
    const Status pinned = pin_to_cores(std::array{core});
    ASSERT_TRUE(pinned) << pinned.error().context;
    EXPECT_EQ(::sched_getcpu(), static_cast<int>(core));
  }).join();
}

TEST(Process, NamesAMissingCore) {
  const Status pinned = pin_to_cores(std::array<std::uint32_t, 2>{1'000'000, 0});
  ASSERT_FALSE(pinned);
  EXPECT_TRUE(pinned.error().context.starts_with("cannot pin to core 1000000"))
      << pinned.error().context;
}

TEST(Process, MapsCardsToUsableCoresInOrder) {
  const std::uint32_t last = usable_cores().back();
  std::thread([&] {
    const Status pinned = pin_to_cards(std::array<std::uint32_t, 1>{0}, std::array{last});
    ASSERT_TRUE(pinned) << pinned.error().context;
    EXPECT_EQ(usable_cores(), std::vector{last});
  }).join();
  const Status more = pin_to_cards(std::array<std::uint32_t, 2>{0, 1}, std::array{last});
  ASSERT_FALSE(more);
  EXPECT_TRUE(more.error().context.starts_with("card 1 needs a core that this process may not use"))
      << more.error().context;
}

TEST(Process, NoCoresMeansNoPinning) {
  EXPECT_TRUE(pin_to_cores({}));
}

TEST(Process, ReportsItsMemory) {
  EXPECT_GT(resident_memory(), Bytes(0));
  EXPECT_GT(peak_resident_memory(), Bytes(0));
}

TEST(Process, RejectsAnUnexpectedParent) {
  EXPECT_EQ(die_with_parent(1'999'999'999).error().code, ErrorCode::Unavailable);
}

}  // namespace
}  // namespace temper::actors
