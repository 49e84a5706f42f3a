#include "sim_hw/ablation/ablation.hpp"

#include "core/yaml_file.hpp"
#include "sim_hw/ablation/rows.hpp"
#include "sim_hw/parallel/activation_choice.hpp"
#include "sim_hw/parallel/recorded_traces.hpp"

#include <fmt/format.h>

#include <cmath>

namespace temper::sim_hw {

MoeSystem with_chosen_activations(MoeSystem system) {
  system.shape.recompute = Recompute::None;
  const StepInputs in{*system.model, system.device, system.fabric, system.layout, system.shape};
  if (const auto plan = choose_activations(in, memory_limits(*system.hardware)))
    system.shape.activations = *plan;
  return system;
}

namespace {

Result<TraceInput> recorded(const MoeSystem& system, const AblationTraces& traces) {
  TraceInput out;
  if (!traces.expert_loads.empty()) {
    TEMPER_TRY(out.loads, read_expert_loads(traces.expert_loads, system.model->moe->experts));
  }
  if (!traces.samples.empty()) {
    TEMPER_TRY(out.samples, read_samples(traces.samples, system.shape.seq));
    const std::int64_t least = system.layout.dp * system.shape.micro_batch;
    if (std::ssize(out.samples) < least) {
      return invalid_input(
          fmt::format("{}: found {} samples, expected at least {} replicas x {} each; nearest: {}",
                      traces.samples,
                      out.samples.size(),
                      system.layout.dp,
                      system.shape.micro_batch,
                      least));
    }
  }
  return out;
}

}  // namespace

std::string rate_text(double tokens_per_second) {
  return fmt::format("{:.0f} k tokens/s", tokens_per_second / 1e3);
}

AblationRow rate_row(std::string mechanism, std::string_view conditions, double off, double on) {
  AblationRow row;
  row.mechanism = std::move(mechanism);
  row.conditions = conditions;
  row.figure = "throughput";
  row.off = rate_text(off);
  row.on = rate_text(on);
  row.predicted = on / off - 1;
  return row;
}

AblationRow throughput_row(std::string mechanism,
                           std::string_view conditions,
                           const MoeSystem& off,
                           const MoeSystem& on,
                           std::optional<double> published) {
  AblationRow row =
      rate_row(std::move(mechanism), conditions, off.tokens_per_second(), on.tokens_per_second());
  row.published = published;
  return row;
}

Agreement AblationRow::agreement() const {
  constexpr double kTolerance = 0.1;
  if (!published)
    return Agreement::NothingPublished;
  if (input == AblationInput::Assumed)
    return Agreement::Open;
  if (std::abs(predicted - *published) <= kTolerance * std::abs(*published))
    return Agreement::Agrees;
  return std::abs(predicted) < std::abs(*published) ? Agreement::PredictsLess
                                                    : Agreement::PredictsMore;
}

Result<std::vector<AblationRow>> moe_ablation(Catalog& catalog, const AblationTraces& traces) {
  AblationSystems systems;
  TEMPER_TRY(systems.pangu, pangu_ultra_moe(catalog));
  TEMPER_TRY(systems.deepseek, deepseek_v3_ep16(catalog));
  TEMPER_TRY(systems.recorded, recorded(systems.pangu, traces));
  TEMPER_TRY(
      systems.published,
      read_yaml_file<PublishedGains>(catalog.configs() / "validation" / "moe_mechanisms.yaml"));
  AblationRows rows;
  add_exchange_rows(systems, rows);
  add_schedule_rows(systems, rows);
  add_balance_rows(systems, rows);
  add_activation_rows(systems, rows);
  add_host_rows(systems, rows);
  add_operator_rows(systems, rows);
  add_total_rows(systems, rows);
  return rows;
}

std::string effect_text(double effect) {
  return fmt::format("{:+.1f} %", effect * 100);
}

std::string_view agreement_text(Agreement agreement) {
  switch (agreement) {
    case Agreement::Agrees:
      return "agrees";
    case Agreement::PredictsLess:
      return "less";
    case Agreement::PredictsMore:
      return "more";
    case Agreement::Open:
      return "open";
    case Agreement::NothingPublished:
      break;
  }
  return "-";
}

std::string ablation_markdown(std::span<const AblationRow> rows) {
  std::string out =
      "| mechanism | figure | off | on | predicted | published | prediction |\n"
      "|---|---|---:|---:|---:|---:|---|\n";
  for (const AblationRow& row : rows) {
    out += fmt::format("| {} | {} | {} | {} | {} | {} | {} |\n",
                       row.mechanism,
                       row.figure,
                       row.off,
                       row.on,
                       effect_text(row.predicted),
                       row.published ? effect_text(*row.published) : "-",
                       agreement_text(row.agreement()));
  }
  out += "\n";
  std::string_view conditions;
  for (const AblationRow& row : rows) {
    const bool same = row.conditions == conditions;
    conditions = row.conditions;
    out += fmt::format("- **{}**{}. {}\n",
                       row.mechanism,
                       same ? std::string() : fmt::format(" ({})", conditions),
                       row.why);
  }
  return out;
}

}  // namespace temper::sim_hw
