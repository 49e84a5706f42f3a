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

struct TrainPlanJson {
  std::string name;
  sim_hw::Layout layout;
  std::int64_t micro_batch = 0;
  std::string recompute;
  std::string optimizer;
  std::int64_t devices = 0;
  double seconds = 0;
  double tokens_per_second = 0;
  double mfu = 0;
  double device_memory = 0;
  double host_memory = 0;  ///< A device's share.
  bool fits = true;
  std::vector<ShareJson> time;
  std::vector<ShareJson> memory;
};
void describe(auto& v, TrainPlanJson& p) {
  v.field(1, "name", p.name);
  v.field(2, "tp", p.layout.tp);
  v.field(3, "pp", p.layout.pp);
  v.field(4, "vpp", p.layout.vpp);
  v.field(5, "ep", p.layout.ep);
  v.field(6, "expert_tp", p.layout.expert_tp);
  v.field(7, "cp", p.layout.cp);
  v.field(8, "dp", p.layout.dp);
  v.field(9, "micro_batch", p.micro_batch);
  auto zero = static_cast<std::int64_t>(p.layout.zero);
  v.field(10, "zero", zero);
  bool sequence = p.layout.sequence_parallel == sim_hw::SequenceParallel::On;
  v.field(11, "sequence_parallel", sequence);
  v.field(12, "recompute", p.recompute);
  v.field(13, "optimizer", p.optimizer);
  v.field(14, "devices", p.devices);
  v.field(15, "seconds", p.seconds);
  v.field(16, "tokens_per_second", p.tokens_per_second);
  v.field(17, "mfu", p.mfu);
  v.field(18, "device_memory", p.device_memory);
  v.field(19, "host_memory", p.host_memory);
  v.field(20, "fits", p.fits);
  v.field(21, "time", p.time);
  v.field(22, "memory", p.memory);
}

struct TrainSearchJson {
  std::string model;
  std::string hardware;
  std::int64_t cards = 0;
  std::int64_t devices = 0;
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  sim_hw::SearchCounts counts;
  sim_hw::ErrorSpread spread;
  std::vector<TrainPlanJson> plans;
  std::vector<TrainPlanJson> front;
};
void describe(auto& v, TrainSearchJson& s) {
  v.field(1, "model", s.model);
  v.field(2, "hardware", s.hardware);
  v.field(3, "cards", s.cards);
  v.field(4, "devices", s.devices);
  v.field(5, "batch", s.batch);
  v.field(6, "seq", s.seq);
  v.field(7, "nodes", s.counts.nodes);
  v.field(8, "scenarios", s.counts.scenarios);
  v.field(9, "fitting", s.counts.fitting);
  v.field(10, "timed", s.counts.timed);
  describe_error(v, 11, s.spread);
  v.field(15, "plans", s.plans);
  v.field(16, "front", s.front);
}

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

TrainPlanJson to_document(const TrainPlanReport& report, std::string name, const TrainPlan& plan) {
  const sim_hw::TrainScenario& s = plan.scenario;
  return {std::move(name),
          s.layout,
          s.shape.micro_batch,
          dropped_text(s.shape),
          place_text(s.state),
          s.layout.devices(),
          plan.total(),
          plan.tokens_per_second(),
          sim_hw::plan_mfu(report.problem, plan),
          plan.memory.device.total(),
          plan.memory.host.total(),
          report.problem.fits(plan.memory),
          shares_of(plan.entries()),
          shares_of(plan.memory.device.entries())};
}

std::vector<std::pair<std::string, const TrainPlan*>> plans_of(const TrainPlanReport& report) {
  return named_plans(report.search.best, report.compared);
}

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
  const sim_hw::TrainProblem& p = report.problem;
  const sim_hw::TrainSearch& search = report.search;
  const sim_hw::TrainShape& shape = search.best.front().scenario.shape;
  TrainSearchJson document{p.model.name,
                           report.hardware,
                           report.cards,
                           p.devices,
                           shape.global_batch,
                           shape.seq,
                           search.counts,
                           report.spread,
                           {},
                           {}};
  for (const auto& [name, plan] : plans_of(report))
    document.plans.push_back(to_document(report, name, *plan));
  for (const TrainPlan& plan : search.front)
    document.front.push_back(to_document(report, "", plan));
  return to_json(document, JsonStyle::Pretty) + "\n";
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
