#include "study/plan/rollout_plan_report.hpp"

#include "core/json.hpp"
#include "core/text/numbers.hpp"
#include "core/text/scatter.hpp"
#include "core/text/table.hpp"
#include "sim_hw/plan/plan_words.hpp"
#include "sim_hw/request/readable.hpp"
#include "study/plan/plan_tables.hpp"

#include <fmt/format.h>

#include <vector>

namespace temper::study {
namespace {

using sim_hw::RolloutPlan;

constexpr const char* kTokenAxis = "time per token, ms";
constexpr const char* kRateAxis = "tokens/s";

std::vector<std::pair<std::string, const RolloutPlan*>> plans_of(const RolloutPlanReport& report) {
  return named_plans(report.search.best, report.compared);
}

/// A plan of a report, for JSON. Borrows.
struct RolloutPlanJson {
  std::string name;
  const RolloutPlan& plan;
};
void describe(auto& v, RolloutPlanJson& p) {
  const sim_hw::RolloutScenario& s = p.plan.scenario;
  v.field(1, "name", p.name);
  v.field(2, "tp", s.tp);
  v.field(3, "ep", s.ep);
  v.field(4, "engine_devices", s.engine_devices);
  v.field(5, "slots", s.slots);
  v.field(6, "engines", p.plan.engines);
  v.field(7, "tokens_per_second", p.plan.tokens_per_second());
  v.field(8, "token_seconds", p.plan.token_seconds());
  v.field(9, "kv_share", p.plan.kv_share);
  v.field(10, "device_memory", p.plan.memory.device.total());
  v.field(11, "host_memory", p.plan.memory.host.total());  // A device's share.
  v.field(12, "time", shares_of(p.plan.entries()));
  v.field(13, "memory", shares_of(p.plan.memory.device.entries()));
}

}  // namespace

void describe(auto& v, RolloutPlanReport& r) {
  v.field(1, "model", r.problem.model.name);
  v.field(2, "hardware", r.problem.hardware.name);
  v.field(3, "cards", r.cards);
  v.field(4, "devices", r.problem.devices);
  v.field(5, "scenarios", r.search.scenarios);
  describe_error(v, 6, r.spread);
  std::vector<RolloutPlanJson> plans, front;
  for (const auto& [name, plan] : plans_of(r))
    plans.push_back({name, *plan});
  for (const RolloutPlan& plan : r.search.front)
    front.push_back({"", plan});
  v.field(10, "plans", plans);
  v.field(11, "front", front);
}

namespace {

std::string plans_table(const RolloutPlanReport& report) {
  std::vector<std::vector<std::string>> rows{{"",
                                              "tp",
                                              "ep",
                                              "engines",
                                              "cards each",
                                              "slots per replica",
                                              "per engine",
                                              "kv_share",
                                              "time per token",
                                              "tokens/s",
                                              "per card",
                                              "memory"}};
  for (const auto& [name, plan] : plans_of(report)) {
    const sim_hw::RolloutScenario& s = plan->scenario;
    rows.push_back(
        {name,
         std::to_string(s.tp),
         std::to_string(s.ep),
         std::to_string(plan->engines),
         std::to_string(s.engine_devices / report.problem.hardware.dies_per_card),
         std::to_string(s.slots),
         std::to_string(s.slots * s.replicas()),
         fmt::format("{:.2f}", plan->kv_share),
         sim_hw::readable(plan->token_seconds(), "s"),
         significant_thousands(plan->tokens_per_second()),
         fmt::format("{:.4g}", plan->tokens_per_second() / static_cast<double>(report.cards)),
         sim_hw::readable(plan->memory.device.total(), "B")});
  }
  return bar_table(rows);
}

std::pair<double, double> token_point(const RolloutPlan& plan) {
  return {1e3 * plan.token_seconds(), plan.tokens_per_second()};
}

std::vector<PlanColumn> columns_of(const RolloutPlanReport& report) {
  std::vector<PlanColumn> out;
  for (const auto& [name, plan] : plans_of(report)) {
    out.push_back(plan_column(
        name, plan->device_entries(report.problem.devices), plan->memory, report.problem));
  }
  return out;
}

}  // namespace

std::string rollout_plan_text(const RolloutPlanReport& report) {
  const sim_hw::RolloutProblem& p = report.problem;
  const sim_hw::RolloutSearch& search = report.search;
  const RolloutPlan& best = search.best.front();
  std::string out = fmt::format(
      "rollout of {} on {} cards of {} ({} devices, at most {} each): prompts of {:.0f}, "
      "responses of {:.0f} tokens; a running one has {:.0f} cached on average\n"
      "{} scenarios\n\n",
      p.model.name,
      report.cards,
      p.hardware.name,
      p.devices,
      sim_hw::readable(p.device_memory, "B"),
      p.lengths.prompt,
      p.lengths.response,
      p.lengths.context,
      search.scenarios);
  const std::vector<PlanColumn> columns = columns_of(report);
  out += plans_table(report) + "\n";
  out += comparison_text(columns,
                         {"device time per token, by term", "whole cluster", "memory per device"},
                         report.spread);
  out += accuracy_text(
      report.spread, p.hardware.name, "the time per token of plan 1", best.token_seconds());
  const auto points = scatter_points(search.front, plans_of(report), token_point);
  return out + "\n" + scatter_text(points, {kTokenAxis, kRateAxis});
}

std::string rollout_plan_json(const RolloutPlanReport& report) {
  return to_json(report, JsonStyle::Pretty) + "\n";
}

std::string rollout_plan_svg(const RolloutPlanReport& report) {
  return front_svg(fmt::format("{} on {} cards of {}: most tokens/s for the time per token",
                               report.problem.model.name,
                               report.cards,
                               report.problem.hardware.name),
                   {kTokenAxis, kRateAxis},
                   scatter_points(report.search.front, {}, token_point));
}

}  // namespace temper::study
