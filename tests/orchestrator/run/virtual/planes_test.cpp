// Bytes by network plane of whole simulated runs.
#include "tests/orchestrator/run/virtual/placed_runs.hpp"

namespace temper::orchestrator::testing {
namespace {

std::map<std::string, std::int64_t> bytes_of(const SimulatedOutcome& ran) {
  std::map<std::string, std::int64_t> bytes;
  for (const PlaneSummary& plane : ran.summary.network.value().planes)
    bytes[plane.plane] = plane.bytes;
  return bytes;
}

TEST(Planes, NoByteOfARunInsideOneSupernodeIsOnRdma) {
  for (const auto& [name, config] : placed_runs()) {
    ASSERT_EQ(validate(config).size(), 0U) << name;
    const SimulatedOutcome ran = run_simulated(config);
    ASSERT_TRUE(ran.outcome.finish.ok) << name << ": " << ran.outcome.finish.reason;
    const auto bytes = bytes_of(ran);
    EXPECT_EQ(bytes.at("rdma"), 0) << name;
    EXPECT_GT(bytes.at("supernode"), 0) << name;
  }
}

}  // namespace
}  // namespace temper::orchestrator::testing
