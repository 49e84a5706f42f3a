#include "study/plan/config_plan_report.hpp"

#include "core/json.hpp"
#include "core/text/numbers.hpp"
#include "core/text/table.hpp"
#include "sim_hw/plan/plan_words.hpp"
#include "sim_hw/request/readable.hpp"
#include "study/plan/plan_tables.hpp"

#include <fmt/format.h>

#include <optional>

namespace temper::study {

void describe(auto& v, TrainerChoice& t) {
  v.field(1, "layout", t.layout);
  v.field(2, "dp", t.dp);
  v.field(3, "seconds", t.cost.total());
  v.field(4, "tokens_per_second", t.tokens_per_second);
  v.field(5, "device_memory", t.memory.device.total());
  v.field(6, "host_memory", t.memory.host.total());
}

void describe(auto& v, EngineChoice& e) {
  v.field(1, "layout", e.layout);
  v.field(2, "running", e.rate.running);
  v.field(3, "token_seconds", e.rate.token_seconds());
  v.field(4, "tokens_per_second", e.tokens_per_second);
  v.field(5, "device_memory", e.memory.device.total());
}

void describe(auto& v, RankedReference& r) {
  v.field(1, "layout", r.layout);
  v.field(2, "seconds", r.seconds);
  v.field(3, "device_memory", r.device_bytes);
}

void describe(auto& v, ConfigPlanReport& r) {
  v.field(1, "trainers", r.plan.trainers);
  v.field(2, "configured_trainer", r.plan.configured_trainer);
  v.field(3, "rollouts", r.plan.rollouts);
  v.field(4, "configured_rollout", r.plan.configured_rollout);
  v.field(5, "training_error_max", r.training.max);
  v.field(6, "rollout_error_max", r.rollout.max);
  v.field(7, "reference", r.plan.reference);
}

namespace {

/// "cm384"; "nvidia-h800 (trainer) and cm384 (engines)".
std::string hardware_text(const ConfigPlan& plan) {
  const actors::SimulationConfig& s = plan.config.simulation;
  if (s.clusters.size() < 2)
    return s.clusters.empty() ? s.cluster : s.clusters.front().hardware;
  return fmt::format(
      "{} (trainer) and {} (engines)", plan.trainer_hardware.name, plan.engine_hardware.name);
}

std::string trainer_text(const ConfigPlan& plan, const sim_hw::ErrorSpread& spread) {
  std::vector<std::vector<std::string>> rows{
      {"trainer", "layout", "micro-batch tokens", "optimizer", "update", "tokens/s", "memory"}};
  std::vector<PlanColumn> columns;
  const auto add = [&](std::string name, const TrainerChoice& c) {
    const actors::TrainerEngineConfig& l = c.layout;
    rows.push_back(
        {name,
         fmt::format("tp{} pp{} vpp{} ep{} cp{} dp{}", l.tp, l.pp, l.vpp, l.ep, l.cp, c.dp),
         std::to_string(l.micro_batch_tokens),
         l.optimizer_on_host ? "host" : "device",
         sim_hw::readable(c.cost.total(), "s"),
         significant_thousands(c.tokens_per_second),
         sim_hw::readable(c.memory.device.total(), "B")});
    const auto bytes = c.memory.device.entries();
    columns.push_back({std::move(name),
                       c.entries(),
                       {bytes.begin(), bytes.end()},
                       sim_hw::excess_text(c.memory, plan.device_memory, plan.host_memory)});
  };
  for (std::size_t i = 0; i < plan.trainers.size(); ++i)
    add(std::to_string(i + 1), plan.trainers[i]);
  if (plan.configured_trainer)
    add("configured", *plan.configured_trainer);
  std::string out =
      bar_table(rows) + "\n" +
      difference_table(columns, &PlanColumn::seconds, "s", "update, by term", "update") + "\n";
  for (std::size_t i = 1; i < columns.size(); ++i)
    out += why_text(columns.front(), columns[i], spread);
  return out + accuracy_text(spread,
                             plan.trainer_hardware.name,
                             "the update of plan 1",
                             plan.trainers.front().cost.total());
}

std::string rollout_text(const ConfigPlan& plan, const sim_hw::ErrorSpread& spread) {
  std::vector<std::vector<std::string>> rows{{"rollout",
                                              "tp",
                                              "ep",
                                              "kv_share",
                                              "running per engine",
                                              "time per token",
                                              "prefill part",
                                              "tokens/s",
                                              "memory"}};
  const auto add = [&](std::string name, const EngineChoice& c) {
    rows.push_back({std::move(name),
                    std::to_string(c.layout.tp),
                    std::to_string(c.layout.ep),
                    fmt::format("{:.2f}", c.layout.kv_share),
                    std::to_string(c.rate.running),
                    sim_hw::readable(c.rate.token_seconds(), "s"),
                    sim_hw::readable(c.rate.prefill, "s"),
                    significant_thousands(c.tokens_per_second),
                    sim_hw::readable(c.memory.device.total(), "B")});
  };
  for (std::size_t i = 0; i < plan.rollouts.size(); ++i)
    add(std::to_string(i + 1), plan.rollouts[i]);
  if (plan.configured_rollout)
    add("configured", *plan.configured_rollout);
  return bar_table(rows) + "\n" +
         accuracy_text(spread,
                       plan.engine_hardware.name,
                       "the time per token of plan 1",
                       plan.rollouts.front().rate.token_seconds());
}

/// Of a reference with a model of its own.
std::string reference_text(const ConfigPlan& plan) {
  if (!plan.reference)
    return "";
  const actors::ReferenceEngineConfig& l = plan.reference->layout;
  return fmt::format(
      "each reference: {} on {} cards, tp{} pp{} ep{} cp{}; scoring the batch takes "
      "{}, memory {}\n\n",
      l.model,
      plan.reference_cards,
      l.tp.value_or(1),
      l.pp.value_or(1),
      l.ep.value_or(1),
      l.cp.value_or(1),
      sim_hw::readable(plan.reference->seconds, "s"),
      sim_hw::readable(plan.reference->device_bytes, "B"));
}

}  // namespace

std::string config_plan_text(const ConfigPlanReport& report) {
  const ConfigPlan& plan = report.plan;
  return fmt::format(
             "{}: {} on {}; the trainer on {} cards ({} of its layouts fit), {} engines of {}\n"
             "responses of {:.0f} tokens on average; a running one has {:.0f} cached\n\n",
             plan.config.name,
             plan.config.simulation.model,
             hardware_text(plan),
             plan.trainer_cards,
             plan.scenarios,
             plan.engines,
             plan.engine_cards,
             plan.lengths.response,
             plan.lengths.context) +
         trainer_text(plan, report.training) + "\n" + rollout_text(plan, report.rollout) +
         reference_text(plan) +
         "Each side is planned by itself. `temper tune` includes the waits between them and the "
         "split of the cards.\n";
}

std::string config_plan_json(const ConfigPlanReport& report) {
  return to_json(report, JsonStyle::Pretty) + "\n";
}

}  // namespace temper::study
