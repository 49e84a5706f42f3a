// The causes of idle time of whole simulated runs, against those that an independent oracle derives
// from their records.
#include "tests/orchestrator/run/virtual/placed_runs.hpp"
#include "tests/orchestrator/run/virtual/wait_oracle.hpp"

namespace temper::orchestrator::testing {
namespace {

TEST(WaitCauses, OfEveryIdleIntervalAreWhatTheRecordsShow) {
  std::map<WaitKind, Duration> idle;
  int runs = 0;
  for (const auto& [name, config] : placed_runs()) {
    WaitOracle oracle;
    const SimulatedOutcome ran =
        run_simulated(config, [&](const Record& record) { oracle.feed(record); });
    ASSERT_TRUE(ran.outcome.finish.ok) << name << ": " << ran.outcome.finish.reason;
    EXPECT_EQ(ran.audit.violations, std::vector<std::string>()) << name;
    EXPECT_EQ(oracle.mismatches(), std::vector<std::string>()) << name;
    EXPECT_GT(oracle.intervals(), 100U) << name;
    for (const auto& [key, of] : oracle.idle()) {
      EXPECT_EQ(of.wrong, Duration{})
          << name << ": " << name_of(key.first) << " for " << name_of(key.second);
      idle[key.second] += of.all;
    }
    ++runs;
  }
  EXPECT_GE(runs, 20);
  using K = WaitKind;
  for (const K kind : {K::RoleSwitch,
                       K::EndOfRun,
                       K::Dispatch,
                       K::Groups,
                       K::Weights,
                       K::StalenessBound,
                       K::Responses,
                       K::SharedCards})
    EXPECT_GT(idle[kind], Duration{}) << name_of(kind);
}

}  // namespace
}  // namespace temper::orchestrator::testing
