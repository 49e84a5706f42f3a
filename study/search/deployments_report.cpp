#include "study/search/deployments_report.hpp"

#include "core/statistics.hpp"
#include "core/text/numbers.hpp"
#include "core/text/table.hpp"
#include "orchestrator/pipeline/placement.hpp"

#include <fmt/format.h>

#include <cmath>
#include <functional>

namespace temper::study {
namespace {

/// Deployments whose id matches a pattern such as "fusion-eta*" share a published figure.
bool is_meant(const std::string& pattern, const std::string& deployment) {
  return pattern.ends_with('*') ? deployment.starts_with(pattern.substr(0, pattern.size() - 1))
                                : deployment == pattern;
}

/// Model of the published figures.
constexpr std::string_view kPublishedModel = "pangu-ultra-moe-718b";

/// 0: no figure is published for this model and number of cards.
double published_for(const DeploymentComparison& comparison, const std::string& deployment) {
  if (comparison.model != kPublishedModel)
    return 0;
  for (const PublishedDeployment& p : published_deployments()) {
    if (p.cards == comparison.cards && is_meant(p.deployment, deployment))
      return p.tokens_per_s;
  }
  return 0;
}

/// Rounds to 1 / `parts`, to print short.
void fill_layout(DeploymentRow& row, const orchestrator::PipelineConfig& c) {
  const orchestrator::PlacementConfig cards = orchestrator::resolve_placement(c);
  const actors::TrainerEngineConfig& trainer = c.simulation.trainer;
  row.mode = name_of(c.placement.mode);
  row.engines = c.rollout.replicas;
  row.engine_cards = std::ssize(cards.rollout) / c.rollout.replicas;
  row.reference_cards = c.reference.replicas > 0 ? std::ssize(cards.reference) : 0;
  row.trainer_cards = std::ssize(cards.trainer);
  row.rollout_tp = c.simulation.rollout.tp;
  row.rollout_ep = c.simulation.rollout.ep;
  row.concurrency = c.rollout.concurrency;
  row.kv_share = c.simulation.rollout.kv_share;
  row.tp = trainer.tp;
  row.pp = trainer.pp;
  row.cp = trainer.cp;
  row.ep = trainer.ep;
  row.micro_batch_tokens = trainer.micro_batch_tokens;
}

DeploymentRow row_of(const DeploymentComparison& comparison,
                     const DeploymentCell& cell,
                     const Deployment& deployment) {
  DeploymentRow row;
  row.deployment = cell.deployment;
  row.lengths = cell.spread.text();
  row.bound = deployment.bound;
  row.published = published_for(comparison, cell.deployment);
  row.reason = cell.reason;
  row.mechanisms_reason = cell.mechanisms_reason;
  if (cell.with_mechanisms) {
    const Rates& r = cell.with_mechanisms->figures.steady;
    row.mechanisms_per_s = rounded(r.sustained_per_s, 10);
    row.mechanisms_busy = rounded(r.busy, 1e4);
    row.mechanisms_staleness = rounded(r.staleness_mean, 1e3);
    DeploymentRow layout;
    fill_layout(layout, cell.with_mechanisms->config);
    row.mechanisms_layout = layout_text(layout);
  }
  if (!cell.tuned)
    return row;
  const Rates& r = cell.tuned->figures.steady;
  row.tokens_per_s = rounded(r.sustained_per_s, 10);
  row.trained_per_s = rounded(r.trained_per_s, 10);
  row.generated_per_s = rounded(r.generated_per_s, 10);
  row.busy = rounded(r.busy, 1e4);
  row.staleness_mean = rounded(r.staleness_mean, 1e3);
  row.seconds_per_update = rounded(r.seconds_per_update, 10);
  row.runs = static_cast<std::int64_t>(cell.tuned->runs);
  fill_layout(row, cell.tuned->config);
  return row;
}

using Show = std::function<std::string(const DeploymentRow&)>;

/// Deployments in rows, distributions in columns.
std::string over_lengths(const DeploymentComparison& comparison,
                         const std::vector<DeploymentRow>& rows,
                         const Show& show) {
  std::vector<std::vector<std::string>> table{{"deployment"}};
  for (const LengthSpread& spread : comparison.spreads)
    table.front().push_back(spread.text());
  for (std::size_t deployment = 0; deployment < comparison.deployments.size(); ++deployment) {
    std::vector<std::string>& line = table.emplace_back();
    line.push_back(comparison.deployments[deployment].text);
    for (std::size_t spread = 0; spread < comparison.spreads.size(); ++spread) {
      const DeploymentRow& row = rows[spread * comparison.deployments.size() + deployment];
      line.push_back(row.tokens_per_s > 0 ? show(row) : "-");
    }
  }
  return bar_table(table);
}

std::string published_text(const DeploymentComparison& comparison) {
  std::string out;
  for (const Deployment& deployment : comparison.deployments) {
    if (const double p = published_for(comparison, deployment.id); p > 0)
      out += fmt::format("  {:<34}{:>6.1f}k\n", deployment.text, p / 1e3);
  }
  if (out.empty())
    return "";
  return fmt::format(
      "\npublished for {} on {} cards, trained tokens/s (lengths, batch and split are "
      "not published)\n{}  claimed: RL Fusion doubles utilization; StaleSync adds up "
      "to 50 %\n",
      comparison.model,
      comparison.cards,
      out);
}

std::string reasons_text(const std::vector<DeploymentRow>& rows) {
  std::string out;
  for (const DeploymentRow& row : rows) {
    if (!row.reason.empty())
      out += fmt::format("  {} at {}: {}\n", row.deployment, row.lengths, row.reason);
    if (!row.mechanisms_reason.empty() && row.mechanisms_reason != row.reason)
      out += fmt::format(
          "  {} at {}, mechanisms on: {}\n", row.deployment, row.lengths, row.mechanisms_reason);
  }
  return out.empty() ? out : "\nnot run\n" + out;
}

}  // namespace

std::vector<DeploymentRow> deployment_rows(const DeploymentComparison& comparison) {
  std::vector<DeploymentRow> rows;
  for (std::size_t i = 0; i < comparison.cells.size(); ++i) {
    rows.push_back(row_of(comparison, comparison.cells[i], comparison.deployment_of(i)));
    const DeploymentRow& first = rows[i - i % comparison.deployments.size()];
    if (first.tokens_per_s > 0)
      rows.back().of_separate = rounded(rows.back().tokens_per_s / first.tokens_per_s, 1e3);
  }
  return rows;
}

std::string layout_text(const DeploymentRow& r) {
  return fmt::format(
      "{}: {} x {} cards, tp {}, {} in flight each, KV {:.2f}; reference {}; trainer "
      "{}: tp {} pp {} cp {} ep {}, {} tokens",
      r.mode,
      r.engines,
      r.engine_cards,
      r.rollout_tp,
      r.concurrency,
      r.kv_share,
      r.reference_cards,
      r.trainer_cards,
      r.tp,
      r.pp,
      r.cp,
      r.ep,
      r.micro_batch_tokens);
}

std::string deployments_text(const DeploymentComparison& comparison) {
  const std::vector<DeploymentRow> rows = deployment_rows(comparison);
  std::string out = fmt::format(
      "{} cards, {} tuning runs per cell; lengths are mean:cap:p99/median\n\n"
      "trained tokens/s, sustained\n",
      comparison.cards,
      comparison.runs);
  out += over_lengths(
      comparison, rows, [](const DeploymentRow& r) { return thousands_text(r.tokens_per_s, 1); });
  out += "\ntuned with gradients during generation, and time-shared cards that switch one by one\n";
  out += over_lengths(comparison, rows, [](const DeploymentRow& r) {
    return r.mechanisms_per_s > 0 ? thousands_text(r.mechanisms_per_s, 1) : "-";
  });
  out += fmt::format("\nrelative to `{}`\n", comparison.deployments.front().text);
  out += over_lengths(comparison, rows, [](const DeploymentRow& r) {
    return fmt::format("{:.2f}", r.of_separate);
  });
  out += "\ncards busy\n";
  out += over_lengths(comparison, rows, [](const DeploymentRow& r) {
    return fmt::format("{:.0f} %", 100 * r.busy);
  });
  out += "\nmean staleness\n";
  out += over_lengths(comparison, rows, [](const DeploymentRow& r) {
    return fmt::format("{:.2f}", r.staleness_mean);
  });
  out += "\nchosen\n";
  for (const DeploymentRow& row : rows) {
    if (row.tokens_per_s > 0)
      out += fmt::format("  {:<16}{:<16}{}\n", row.lengths, row.deployment, layout_text(row));
  }
  return out + reasons_text(rows) + published_text(comparison);
}

}  // namespace temper::study
