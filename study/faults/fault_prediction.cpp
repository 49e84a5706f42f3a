#include "study/faults/fault_prediction.hpp"

#include "core/text/table.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/record/audit.hpp"
#include "orchestrator/run/fault_plan.hpp"
#include "orchestrator/run/virtual/in_process_host.hpp"
#include "orchestrator/run/virtual/virtual_driver.hpp"
#include "study/faults/timed_actor.hpp"

#include <fmt/format.h>

namespace temper::study {
namespace {

using orchestrator::Record;
using orchestrator::TimeLost;

/// The run's event log.
struct MeasuredRun {
  TimeLost time;
  RunTimes times;
  std::uint64_t updates = 0;
};

Result<MeasuredRun> measure(const std::filesystem::path& log, Time first) {
  orchestrator::Goodput goodput;
  RunTimesReader times;
  MeasuredRun out;
  bool finished = false, by_hand = false;
  TEMPER_TRY(std::ignore, orchestrator::read_event_log(log, [&](const Record& record) {
               goodput.feed(record);
               if (record.time < first)
                 times.feed(record);
               if (const auto* trained = std::get_if<orchestrator::event::Trained>(&record.event))
                 out.updates = trained->version.value();
               if (const auto* resumed = std::get_if<orchestrator::event::Resumed>(&record.event))
                 by_hand = by_hand || resumed->rollbacks == 0;
               for (const orchestrator::Command& c : record.commands) {
                 if (const auto* finish = std::get_if<orchestrator::command::Finish>(&c))
                   finished = finish->ok;
               }
               return Status();
             }));
  if (!finished)
    return invalid_input(log.string() +
                         ": the run did not complete all of its updates; resume it first");
  if (by_hand)
    return invalid_input(log.string() +
                         ": the run was resumed by hand; expected a run that recovered by itself");
  out.time = goodput.lost(Time{});
  out.times = times.times();
  return out;
}

Result<TimeLost> predict(orchestrator::ResolvedPipeline pipeline, const RunTimes& times) {
  const auto shared = std::make_shared<const RunTimes>(times);
  std::vector<std::string> names;
  for (const orchestrator::ActorSpec& spec : pipeline.slots)
    names.push_back(spec.name);
  orchestrator::VirtualOptions options;
  options.pipeline = std::move(pipeline);
  orchestrator::Goodput goodput;
  orchestrator::Auditor auditor;
  orchestrator::RunObserver observer;
  observer.on_record = [&](const Record& record) {
    goodput.feed(record);
    auditor.feed(record);
  };
  const auto make =
      [shared](const actors::RoleConfig& role) -> Result<std::unique_ptr<actors::SimulatedActor>> {
    return std::unique_ptr<actors::SimulatedActor>(std::make_unique<TimedActor>(role, shared));
  };
  TEMPER_TRY(const auto driver,
             orchestrator::VirtualDriver::create(
                 std::move(options),
                 std::make_unique<orchestrator::InProcessHost>(std::move(names), make),
                 std::move(observer),
                 Log::discard()));
  const orchestrator::RunOutcome outcome = driver->run();
  if (!outcome.finish.ok)
    return Error{ErrorCode::Internal, "the predicted run failed: " + outcome.finish.reason};
  if (const auto audit = auditor.report(); !audit.violations.empty()) {
    return Error{ErrorCode::Internal,
                 "the audit of the predicted run found violations: " + audit.violations.front()};
  }
  return goodput.lost(Time{});
}

}  // namespace

Result<FaultPrediction> predict_faults(const std::filesystem::path& run) {
  TEMPER_TRY(auto config, orchestrator::load_config(run / "config.yaml", {}));
  if (config.hardware != orchestrator::HardwareKind::Local)
    return invalid_input(run.string() +
                         ": found simulated hardware, expected a run on local hardware");
  auto pipeline = orchestrator::resolve_cards(config);
  TEMPER_TRY(auto plan, orchestrator::FaultPlan::of(pipeline));
  if (!plan || !plan->next())
    return invalid_input(run.string() + ": the run had no fault plan; run it with --faults PLAN");
  FaultPrediction out;
  const Time first = *plan->next();
  out.first_s = seconds(first.time_since_epoch());
  TEMPER_TRY(const MeasuredRun measured, measure(run / "events.log", first));
  if (measured.times.update == 0) {
    return invalid_input(fmt::format(
        "{}: no update completed before the first failure, at {:.1f} s, so nothing is known to "
        "predict from; plan the first failure later",
        run.string(),
        out.first_s));
  }
  out.measured = measured.time;
  while (plan->next() && plan->next()->time_since_epoch() <= out.measured.wall) {
    plan->take();
    ++out.planned;
  }
  pipeline.config.steps = measured.updates;
  TEMPER_TRY(out.predicted, predict(std::move(pipeline), measured.times));
  return out;
}

std::string fault_prediction_text(const FaultPrediction& run) {
  const TimeLost& p = run.predicted;
  const TimeLost& m = run.measured;
  std::vector<std::vector<std::string>> rows{{"", "predicted", "measured", "difference"}};
  const auto share = [&](const char* name, double predicted, double measured) {
    rows.push_back({name,
                    fmt::format("{:.2f} %", 100 * predicted),
                    fmt::format("{:.2f} %", 100 * measured),
                    fmt::format("{:+.2f}", 100 * (predicted - measured))});
  };
  const auto part = [&](const char* name, Duration TimeLost::*of) {
    share(name, seconds(p.*of) / seconds(p.wall), seconds(m.*of) / seconds(m.wall));
  };
  const auto count = [&](const char* name, std::uint64_t predicted, std::uint64_t measured) {
    rows.push_back({name, std::to_string(predicted), std::to_string(measured), ""});
  };
  share("goodput", p.goodput(), m.goodput());
  part("start", &TimeLost::start);
  part("down", &TimeLost::down);
  part("checkpoint", &TimeLost::checkpoint);
  part("missing", &TimeLost::missing);
  part("again", &TimeLost::again);
  rows.push_back({"time",
                  fmt::format("{:.1f} s", seconds(p.wall)),
                  fmt::format("{:.1f} s", seconds(m.wall)),
                  fmt::format("{:+.1f} %", 100 * (seconds(p.wall) / seconds(m.wall) - 1))});
  count("rollbacks", p.rollbacks, m.rollbacks);
  count("losses", p.losses, m.losses);
  count("updates", p.updates, m.updates);
  return bar_table(rows) +
         fmt::format("\n{} failures were planned; times were measured in the first {:.1f} s\n",
                     run.planned,
                     run.first_s);
}

}  // namespace temper::study
