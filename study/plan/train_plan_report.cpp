#include "study/plan/train_plan_report.hpp"

#include "core/json.hpp"
#include "core/text/numbers.hpp"
#include "core/text/scatter.hpp"
#include "core/text/table.hpp"
#include "sim_hw/plan/plan_words.hpp"
#include "sim_hw/plan/train_request.hpp"
#include "sim_hw/request/readable.hpp"
#include "study/plan/plan_tables.hpp"

#include <fmt/format.h>

#include <vector>

namespace temper::study {
namespace {

using sim_hw::TrainPlan;

constexpr double kGigabyte = 1e9;
constexpr const char* kMemoryAxis = "memory of the fullest device, GB";
constexpr const char* kStepAxis = "step, s";

std::string zero_text(sim_hw::Zero zero) {
  return std::to_string(static_cast<int>(zero));
}

std::string place_text(sim_hw::TrainerState state) {
  return state == sim_hw::TrainerState::Active ? "device" : "host";
}

/// "none", "full", or "chosen" if single tensors are recomputed or swapped.
std::string dropped_text(const sim_hw::TrainShape& shape) {
  const auto& [dense, experts] = shape.activations;
  return (dense.recomputed | dense.swapped | experts.recomputed | experts.swapped) != 0
             ? "chosen"
             : std::string(name_of(shape.recompute));
}

std::vector<std::pair<std::string, const TrainPlan*>> plans_of(const TrainPlanReport& report) {
  return named_plans(report.search.best, report.compared);
}

/// A plan of a report, for JSON. Borrows.
struct TrainPlanJson {
  const TrainPlanReport& report;
  std::string name;
  const TrainPlan& plan;
};
void describe(auto& v, TrainPlanJson& p) {
  const sim_hw::TrainScenario& s = p.plan.scenario;
  const sim_hw::Layout& layout = s.layout;
  v.field(1, "name", p.name);
  v.field(2, "tp", layout.tp);
  v.field(3, "pp", layout.pp);
  v.field(4, "vpp", layout.vpp);
  v.field(5, "ep", layout.ep);
  v.field(6, "expert_tp", layout.expert_tp);
  v.field(7, "cp", layout.cp);
  v.field(8, "dp", layout.dp);
  v.field(9, "micro_batch", s.shape.micro_batch);
  v.field(10, "zero", static_cast<std::int64_t>(layout.zero));
  v.field(11, "sequence_parallel", layout.sequence_parallel == sim_hw::SequenceParallel::On);
  v.field(12, "recompute", dropped_text(s.shape));
  v.field(13, "optimizer", place_text(s.state));
  v.field(14, "devices", layout.devices());
  v.field(15, "seconds", p.plan.total());
  v.field(16, "tokens_per_second", p.plan.tokens_per_second());
  v.field(17, "mfu", sim_hw::plan_mfu(p.report.problem, p.plan));
  v.field(18, "device_memory", p.plan.memory.device.total());
  v.field(19, "host_memory", p.plan.memory.host.total());  // A device's share.
  v.field(20, "fits", p.report.problem.fits(p.plan.memory));
  v.field(21, "time", shares_of(p.plan.entries()));
  v.field(22, "memory", shares_of(p.plan.memory.device.entries()));
}

}  // namespace

void describe(auto& v, TrainPlanReport& r) {
  const sim_hw::TrainShape& shape = r.search.best.front().scenario.shape;
  const sim_hw::SearchCounts& counts = r.search.counts;
  v.field(1, "model", r.problem.model.name);
  v.field(2, "hardware", r.hardware);
  v.field(3, "cards", r.cards);
  v.field(4, "devices", r.problem.devices);
  v.field(5, "batch", shape.global_batch);
  v.field(6, "seq", shape.seq);
  v.field(7, "nodes", counts.nodes);
  v.field(8, "scenarios", counts.scenarios);
  v.field(9, "fitting", counts.fitting);
  v.field(10, "timed", counts.timed);
  describe_error(v, 11, r.spread);
  std::vector<TrainPlanJson> plans, front;
  for (const auto& [name, plan] : plans_of(r))
    plans.push_back({r, name, *plan});
  for (const TrainPlan& plan : r.search.front)
    front.push_back({r, "", plan});
  v.field(15, "plans", plans);
  v.field(16, "front", front);
}

namespace {

std::string plans_table(const TrainPlanReport& report) {
  std::vector<std::vector<std::string>> rows{{"",
                                              "layout",
                                              "micro-batch",
                                              "zero",
                                              "sequence parallel",
                                              "schedule",
                                              "recompute",
                                              "optimizer",
                                              "devices",
                                              "step",
                                              "tokens/s",
                                              "MFU",
                                              "memory"}};
  for (const auto& [name, plan] : plans_of(report)) {
    const sim_hw::TrainScenario& s = plan->scenario;
    rows.push_back({name,
                    sim_hw::layout_text(s.layout),
                    std::to_string(s.shape.micro_batch),
                    zero_text(s.layout.zero),
                    s.layout.sequence_parallel == sim_hw::SequenceParallel::On ? "on" : "off",
                    std::string(name_of(s.shape.mechanisms.schedule)),
                    dropped_text(s.shape),
                    place_text(s.state),
                    std::to_string(s.layout.devices()),
                    sim_hw::readable(plan->total(), "s"),
                    significant_thousands(plan->tokens_per_second()),
                    percent_text(sim_hw::plan_mfu(report.problem, *plan), 1),
                    sim_hw::readable(plan->memory.device.total(), "B")});
  }
  return bar_table(rows);
}

std::pair<double, double> step_point(const TrainPlan& plan) {
  return {plan.memory.device.total() / kGigabyte, plan.total()};
}

std::vector<PlanColumn> columns_of(const TrainPlanReport& report) {
  std::vector<PlanColumn> out;
  for (const auto& [name, plan] : plans_of(report)) {
    out.push_back(plan_column(name, plan->entries(), plan->memory, report.problem));
  }
  return out;
}

}  // namespace

std::string train_plan_text(const TrainPlanReport& report) {
  const sim_hw::TrainProblem& p = report.problem;
  const sim_hw::TrainSearch& search = report.search;
  const sim_hw::TrainShape& shape = search.best.front().scenario.shape;
  std::string out = fmt::format(
      "training {} on {} cards of {} ({} devices, at most {} each): {} sequences of {} "
      "tokens a step\n",
      p.model.name,
      report.cards,
      report.hardware,
      p.devices,
      sim_hw::readable(p.device_memory, "B"),
      shape.global_batch,
      shape.seq);
  const sim_hw::SearchCounts& c = search.counts;
  out += fmt::format(
      "{} splits with pp and dp: {} exceed the memory, {} cannot be among the answers; of the "
      "others {} scenarios, {} fit, {} timed\n\n",
      c.nodes,
      c.unfit,
      c.slower,
      c.scenarios,
      c.fitting,
      c.timed);
  const std::vector<PlanColumn> columns = columns_of(report);
  out += plans_table(report) + "\n";
  out += comparison_text(
      columns, {"step, by term", "whole step", "memory of the fullest device"}, report.spread);
  out += accuracy_text(
      report.spread, report.hardware, "the step of plan 1", search.best.front().total());
  out += "\n";
  const auto points = scatter_points(search.front, plans_of(report), step_point);
  return out + scatter_text(points, {kMemoryAxis, kStepAxis});
}

std::string train_plan_json(const TrainPlanReport& report) {
  return to_json(report, JsonStyle::Pretty) + "\n";
}

std::string train_plan_svg(const TrainPlanReport& report) {
  return front_svg(fmt::format("{} on {} cards of {}: fastest step for its memory",
                               report.problem.model.name,
                               report.cards,
                               report.hardware),
                   {kMemoryAxis, kStepAxis},
                   scatter_points(report.search.front, {}, step_point));
}

}  // namespace temper::study
