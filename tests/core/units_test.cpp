#include "core/units.hpp"

#include <gtest/gtest.h>

namespace temper {
namespace {

using namespace std::chrono_literals;

TEST(Units, DurationsReadBackAsWritten) {
  for (const Duration d :
       std::initializer_list<Duration>{0ns, 1ns, 250ms, 2s, 90s, 3600s, 1001ms}) {
    EXPECT_EQ(parse_duration(to_text(d)).value(), d) << to_text(d);
  }
}

TEST(Units, AMissingUnitIsAnErrorThatNamesTheAcceptedOnes) {
  const auto r = parse_duration("500");
  ASSERT_FALSE(r);
  EXPECT_NE(r.error().context.find("missing unit"), std::string::npos);
  EXPECT_NE(r.error().context.find("ms"), std::string::npos);
}

TEST(Units, BytesAcceptDecimalAndBinaryUnits) {
  EXPECT_EQ(parse_bytes("1.5kB").value(), Bytes(1500));
  EXPECT_EQ(parse_bytes("2 MiB").value(), Bytes(2 << 20));
  EXPECT_FALSE(parse_bytes("3 parsecs"));
  EXPECT_FALSE(parse_bytes("1e30GB"));
}

TEST(Units, BytesOverBandwidthRoundsUp) {
  // 10 B at 3 B/s take 3.33.. s, which must not be under-stated.
  EXPECT_EQ(Bytes(10) / BytesPerSecond(3), 3333333334ns);
}

}  // namespace
}  // namespace temper
