// A driver of virtual time over fake actors, its log in a folder of its own.
#pragma once

#include "orchestrator/metrics/recorder.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/pipeline/simulation.hpp"
#include "orchestrator/record/audit.hpp"
#include "orchestrator/run/virtual/in_process_host.hpp"
#include "orchestrator/run/virtual/virtual_driver.hpp"
#include "tests/support/simulated_fakes.hpp"
#include "tests/support/temporary_folder.hpp"

#include <gtest/gtest.h>

#include <filesystem>

namespace temper::orchestrator::testing {

inline PipelineConfig small() {
  PipelineConfig c;
  c.hardware = HardwareKind::Simulated;
  c.policy = actors::PolicyKind::Synthetic;
  c.steps = 6;
  c.algorithm.groups_per_update = 4;
  c.algorithm.responses_per_group = 4;
  c.staleness.bound = 1;
  c.placement.cards = 8;
  c.placement.rollout_cards = 6;
  c.rollout.replicas = 3;
  c.rollout.concurrency = 16;
  set_simulated_defaults(c, [](const std::string&) { return false; });
  return c;
}

class VirtualRun : public ::testing::Test {
 protected:
  /// Runs `config` on fakes; `spoil` may change one when it is made.
  RunOutcome run(const PipelineConfig& config,
                 const std::function<void(const std::string&, FakeActor&)>& spoil = nullptr) {
    VirtualOptions options;
    options.pipeline = resolve_cards(config);
    options.log = log(++runs_);
    options.stops = stops;
    std::vector<std::string> names;
    for (const ActorSpec& spec : options.pipeline.slots)
      names.push_back(spec.name);
    std::size_t made = 0;
    auto host = std::make_unique<InProcessHost>(
        names,
        [&,
         names](const actors::RoleConfig& role) -> Result<std::unique_ptr<actors::SimulatedActor>> {
          auto actor = std::make_unique<FakeActor>(role.kind);
          if (spoil)
            spoil(names[made], *actor);
          ++made;
          return std::unique_ptr<actors::SimulatedActor>(std::move(actor));
        });
    RunObserver observer;
    observer.on_record = [&](const Record& record) { metrics.feed(record); };
    const RealClock clock;
    auto driver = VirtualDriver::create(std::move(options),
                                        std::move(host),
                                        std::move(observer),
                                        Log::to_stderr(clock),
                                        std::move(content));
    EXPECT_TRUE(driver) << driver.error().context;
    return (*driver)->run();
  }
  std::filesystem::path log(int run) const { return folder_ / ("events-" + std::to_string(run)); }
  std::vector<Record> records(int run) const {
    std::vector<Record> all;
    EXPECT_TRUE(read_event_log(log(run), [&](const Record& r) {
      all.push_back(r);
      return Status();
    }));
    return all;
  }
  AuditReport audit(int run) const {
    Auditor auditor;
    EXPECT_TRUE(read_event_log(log(run), [&](const Record& r) {
      auditor.feed(r);
      return Status();
    }));
    return auditor.report();
  }

  int runs() const { return runs_; }

  std::function<int()> stops;
  std::unique_ptr<ContentSource> content;  ///< Of the next run.
  RunMetrics metrics;

 private:
  const test::TemporaryFolder folder_;
  int runs_ = 0;
};

}  // namespace temper::orchestrator::testing
