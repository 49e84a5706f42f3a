// A whole run on simulated hardware in this process, with the shipped actors.
#pragma once

#include "orchestrator/metrics/summary.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/record/audit.hpp"
#include "orchestrator/run/virtual/in_process_host.hpp"
#include "orchestrator/run/virtual/simulated_actors.hpp"
#include "orchestrator/run/virtual/virtual_driver.hpp"

#include <gtest/gtest.h>

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

namespace temper::orchestrator::testing {

struct SimulatedOutcome {
  RunOutcome outcome;
  Summary summary;
  AuditReport audit;
};

/// Requires: validate(config) is empty. `on_record` gets each record; `stops` is that of
/// VirtualOptions.
inline SimulatedOutcome run_simulated(const PipelineConfig& config,
                                      const std::function<void(const Record&)>& on_record = nullptr,
                                      const std::function<int()>& stops = nullptr) {
  VirtualOptions options;
  options.stops = stops;
  options.pipeline = *resolve(config);
  std::vector<std::string> names;
  for (const ActorSpec& spec : options.pipeline.slots)
    names.push_back(spec.name);
  RunMetrics metrics;
  Auditor auditor;
  RunObserver observer;
  observer.on_record = [&](const Record& record) {
    metrics.feed(record);
    auditor.feed(record);
    if (on_record)
      on_record(record);
  };
  const auto driver =
      VirtualDriver::create(std::move(options),
                            std::make_unique<InProcessHost>(names, SimulatedActors()),
                            std::move(observer),
                            Log::discard());
  EXPECT_TRUE(driver) << driver.error().context;
  SimulatedOutcome ran;
  ran.outcome = (*driver)->run();
  ran.summary = summarize(metrics, {config.name, config.seed, 0});
  ran.audit = auditor.report();
  EXPECT_EQ(ran.summary.tail.s, seconds(ran.audit.tail));
  return ran;
}

}  // namespace temper::orchestrator::testing
