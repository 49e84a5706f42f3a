#include "orchestrator/explore/train_plan_report.hpp"

#include "core/json.hpp"
#include "orchestrator/explore/scatter.hpp"
#include "orchestrator/explore/svg_plot.hpp"
#include "orchestrator/explore/table.hpp"
#include "sim_hw/plan/train_request.hpp"
#include "sim_hw/predict/readable.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <vector>

namespace temper::orchestrator {
namespace {

using sim_hw::TrainPlan;

constexpr double kGigabyte = 1e9;
constexpr const char* kMemoryAxis = "memory of the fullest device, GB";
constexpr const char* kTimeAxis = "step, s";

struct ShareJson {
  std::string name;
  double value = 0;  ///< Seconds or bytes.
};
template <class V>
void describe(V& v, ShareJson& s) {
  v.field(1, "name", s.name);
  v.field(2, "value", s.value);
}

struct PlanJson {
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
template <class V>
void describe(V& v, PlanJson& p) {
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

struct SearchJson {
  std::string model;
  std::string hardware;
  std::int64_t cards = 0;
  std::int64_t devices = 0;
  std::int64_t batch = 0;
  std::int64_t seq = 0;
  sim_hw::SearchCounts counts;
  sim_hw::ErrorSpread spread;
  std::vector<PlanJson> plans;
  std::vector<PlanJson> front;
};
template <class V>
void describe(V& v, SearchJson& s) {
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
  v.field(11, "error_measured_on", s.spread.hardware);
  v.field(12, "error_rows", s.spread.rows);
  v.field(13, "error_mean", s.spread.mean);
  v.field(14, "error_max", s.spread.max);
  v.field(15, "plans", s.plans);
  v.field(16, "front", s.front);
}

std::string zero_text(sim_hw::Zero zero) {
  return std::to_string(static_cast<int>(zero));
}

std::string place_text(sim_hw::TrainerState state) {
  return state == sim_hw::TrainerState::Active ? "device" : "host";
}

PlanJson to_document(const TrainPlanReport& report, std::string name, const TrainPlan& plan) {
  const sim_hw::TrainScenario& s = plan.scenario;
  PlanJson out{std::move(name),
               s.layout,
               s.shape.micro_batch,
               std::string(name_of(s.shape.recompute)),
               place_text(s.state),
               s.layout.devices(),
               plan.total(),
               plan.tokens_per_second(),
               sim_hw::plan_mfu(report.problem, plan),
               plan.memory.device.total(),
               plan.memory.host.total(),
               report.problem.fits(plan.memory),
               {},
               {}};
  for (const auto& [entry, value] : plan.entries())
    out.time.push_back({std::string(entry), value});
  for (const auto& [entry, value] : plan.memory.device.entries())
    out.memory.push_back({std::string(entry), value});
  return out;
}

/// The plans with their names, the compared one last.
std::vector<std::pair<std::string, const TrainPlan*>> named_plans(const TrainPlanReport& report) {
  std::vector<std::pair<std::string, const TrainPlan*>> out;
  for (std::size_t i = 0; i < report.search.best.size(); ++i)
    out.emplace_back(std::to_string(i + 1), &report.search.best[i]);
  if (report.compared)
    out.emplace_back("yours", &*report.compared);
  return out;
}

std::string plans_table(const TrainPlanReport& report) {
  std::vector<std::vector<std::string>> rows{{"",
                                              "layout",
                                              "micro-batch",
                                              "zero",
                                              "sequence parallel",
                                              "recompute",
                                              "optimizer",
                                              "devices",
                                              "step",
                                              "tokens/s",
                                              "MFU",
                                              "memory"}};
  for (const auto& [name, plan] : named_plans(report)) {
    const sim_hw::TrainScenario& s = plan->scenario;
    rows.push_back({name,
                    sim_hw::layout_text(s.layout),
                    std::to_string(s.shape.micro_batch),
                    zero_text(s.layout.zero),
                    s.layout.sequence_parallel == sim_hw::SequenceParallel::On ? "on" : "off",
                    std::string(name_of(s.shape.recompute)),
                    place_text(s.state),
                    std::to_string(s.layout.devices()),
                    sim_hw::readable(plan->total(), "s"),
                    fmt::format("{:.4g}k", plan->tokens_per_second() / 1e3),
                    sim_hw::percent(sim_hw::plan_mfu(report.problem, *plan)),
                    sim_hw::readable(plan->memory.device.total(), "B")});
  }
  return bar_table(rows);
}

/// The first plan's value of each entry, and what the others differ by; entries that none has are
/// left out.
template <class Entries>
void add_entries(std::vector<std::vector<std::string>>& rows,
                 const std::vector<std::pair<std::string, const TrainPlan*>>& plans,
                 const Entries& entries_of,
                 std::string_view unit) {
  const auto first = entries_of(*plans.front().second);
  for (std::size_t i = 0; i < first.size(); ++i) {
    std::vector<std::string> row{std::string(first[i].first)};
    bool any = false;
    for (std::size_t p = 0; p < plans.size(); ++p) {
      const double value = entries_of(*plans[p].second)[i].second;
      const double shown = p == 0 ? value : value - first[i].second;
      any = any || value != 0;
      row.push_back(
          p == 0 ? sim_hw::readable(shown, unit)
                 : fmt::format("{}{}", shown >= 0 ? "+" : "", sim_hw::readable(shown, unit)));
    }
    if (any)
      rows.push_back(std::move(row));
  }
}

std::string terms_table(const TrainPlanReport& report) {
  const auto plans = named_plans(report);
  std::vector<std::string> head{"step, term by term"};
  std::vector<std::string> total{"whole step"}, bytes{"whole device"};
  const TrainPlan& best = *plans.front().second;
  for (const auto& [name, plan] : plans) {
    const bool first = plan == &best;
    head.push_back(first ? name : fmt::format("{} - 1", name));
    const double seconds = plan->total() - (first ? 0 : best.total());
    const double device = plan->memory.device.total() - (first ? 0 : best.memory.device.total());
    total.push_back((first || seconds < 0 ? "" : "+") + sim_hw::readable(seconds, "s"));
    bytes.push_back((first || device < 0 ? "" : "+") + sim_hw::readable(device, "B"));
  }
  std::vector<std::vector<std::string>> rows{head};
  add_entries(
      rows, plans, [](const TrainPlan& p) { return p.entries(); }, "s");
  rows.push_back(total);
  std::string out = bar_table(rows) + "\n";
  head.front() = "memory of the fullest device";
  rows = {head};
  add_entries(
      rows, plans, [](const TrainPlan& p) { return p.memory.device.entries(); }, "B");
  rows.push_back(bytes);
  return out + bar_table(rows);
}

/// "expert-parallel communication +0.31 s, pipeline bubble +0.02 s"
std::string largest(std::vector<std::pair<std::string_view, double>> terms, double sign) {
  constexpr std::size_t kMost = 3;
  std::erase_if(terms, [&](const auto& term) { return sign * term.second <= 0; });
  std::ranges::stable_sort(
      terms, std::ranges::greater(), [&](const auto& term) { return sign * term.second; });
  std::string out;
  for (std::size_t i = 0; i < std::min(kMost, terms.size()); ++i) {
    out += fmt::format("{}{} {}{}",
                       out.empty() ? "" : ", ",
                       terms[i].first,
                       sign > 0 ? "+" : "",
                       sim_hw::readable(terms[i].second, "s"));
  }
  return out;
}

/// Why a plan loses to the first, or wins where it does not fit.
std::string why(const TrainPlanReport& report, const std::string& name, const TrainPlan& plan) {
  const TrainPlan& best = report.search.best.front();
  auto terms = plan.entries();
  const auto of_best = best.entries();
  for (std::size_t i = 0; i < terms.size(); ++i)
    terms[i].second -= of_best[i].second;
  const double difference = plan.total() - best.total();
  const double share = difference / best.total();
  std::string out = fmt::format("{}: {}{} ({}{}) against 1",
                                name,
                                difference >= 0 ? "+" : "",
                                sim_hw::readable(difference, "s"),
                                difference >= 0 ? "+" : "",
                                sim_hw::percent(share));
  if (const std::string lost = largest(terms, 1); !lost.empty())
    out += "; loses by " + lost;
  if (const std::string won = largest(terms, -1); !won.empty())
    out += "; gains by " + won;
  if (const double over = plan.memory.device.total() - report.problem.device_memory; over > 0)
    out += fmt::format("; does not fit: {} too much on its fullest device",
                       sim_hw::readable(over, "B"));
  if (const double over = plan.memory.host.total() - report.problem.host_memory; over > 0)
    out += fmt::format("; does not fit: {} too much in the host's share of a device",
                       sim_hw::readable(over, "B"));
  if (std::abs(share) < report.spread.max)
    out += "; nearer than the model's error";
  return out + "\n";
}

std::string sureness(const TrainPlanReport& report) {
  const sim_hw::ErrorSpread& s = report.spread;
  const TrainPlan& best = report.search.best.front();
  return fmt::format(
      "how sure: {}the model is off by {}; the step of 1 is then {} to {}. Plans of one hardware "
      "share most of that error; an order among plans nearer to each other than it is not "
      "certain.\n",
      s.elsewhere ? fmt::format("no training step was measured on {}; elsewhere ", report.hardware)
                  : "",
      s.text(),
      sim_hw::readable(best.total() / (1 + s.max), "s"),
      sim_hw::readable(best.total() / (1 - s.max), "s"));
}

std::vector<ScatterPoint> points(const TrainPlanReport& report) {
  std::vector<ScatterPoint> out;
  const auto add = [&](const TrainPlan& plan, char mark) {
    out.push_back({plan.memory.device.total() / kGigabyte, plan.total(), mark});
  };
  for (const TrainPlan& plan : report.search.front)
    add(plan, '.');
  const auto plans = named_plans(report);
  for (auto plan = plans.rbegin(); plan != plans.rend(); ++plan)
    add(*plan->second, plan->first.front());
  return out;
}

}  // namespace

std::string train_plan_text(const TrainPlanReport& report) {
  const sim_hw::TrainProblem& p = report.problem;
  const sim_hw::TrainSearch& search = report.search;
  const sim_hw::TrainShape& shape = search.best.front().scenario.shape;
  std::string out = fmt::format(
      "training {} on {} cards of {} ({} devices, at most {} of each): {} sequences of {} "
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
      "{} cuts with pp and dp: {} exceed the memory, {} cannot be among the answers; of the rest "
      "{} scenarios, {} fit, {} timed\n\n",
      c.nodes,
      c.unfit,
      c.slower,
      c.scenarios,
      c.fitting,
      c.timed);
  out += plans_table(report) + "\n" + terms_table(report) + "\n";
  for (const auto& [name, plan] : named_plans(report)) {
    if (plan != &search.best.front())
      out += why(report, name, *plan);
  }
  out += sureness(report) + "\n";
  const auto all = points(report);
  out += scatter_text(all, {kMemoryAxis, kTimeAxis});
  return out;
}

std::string train_plan_json(const TrainPlanReport& report) {
  const sim_hw::TrainProblem& p = report.problem;
  const sim_hw::TrainSearch& search = report.search;
  const sim_hw::TrainShape& shape = search.best.front().scenario.shape;
  SearchJson document{p.model.name,
                      report.hardware,
                      report.cards,
                      p.devices,
                      shape.global_batch,
                      shape.seq,
                      search.counts,
                      report.spread,
                      {},
                      {}};
  for (const auto& [name, plan] : named_plans(report))
    document.plans.push_back(to_document(report, name, *plan));
  for (const TrainPlan& plan : search.front)
    document.front.push_back(to_document(report, "", plan));
  return to_json(document, JsonStyle::Pretty) + "\n";
}

std::string train_plan_svg(const TrainPlanReport& report) {
  Plot plot;
  plot.title = fmt::format("{} on {} cards of {}: fastest step for its memory",
                           report.problem.model.name,
                           report.cards,
                           report.hardware);
  plot.x_label = kMemoryAxis;
  Plot::Panel panel{kTimeAxis, {{"front", {}}}, {}};
  for (const TrainPlan& plan : report.search.front) {
    plot.x.push_back(plan.memory.device.total() / kGigabyte);
    panel.lines.front().values.emplace_back(plan.total());
  }
  plot.panels.push_back(std::move(panel));
  return to_svg(plot);
}

}  // namespace temper::orchestrator
