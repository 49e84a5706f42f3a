#include "study/search/deployments_report.hpp"

#include "core/statistics.hpp"
#include "core/text/numbers.hpp"
#include "core/text/table.hpp"
#include "orchestrator/pipeline/placement.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <functional>

namespace temper::study {
namespace {

/// Deployments whose id matches a pattern such as "fusion-eta*" share a published figure.
bool is_meant(const std::string& pattern, const std::string& deployment) {
  return pattern.ends_with('*') ? deployment.starts_with(pattern.substr(0, pattern.size() - 1))
                                : deployment == pattern;
}

/// The second baseline: rollout and trainer time-share the cards, bound 0.
constexpr std::string_view kColocated = "colocated";
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
  row.groups_per_update = cell.groups;
  row.responses_per_group = comparison.responses_per_group;
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

std::string batch_text(std::int32_t groups, std::int32_t responses_per_group) {
  return fmt::format("{} x {}", groups, responses_per_group);
}

std::string batches_text(const DeploymentComparison& comparison) {
  std::vector<std::string> texts;
  for (const std::int32_t groups : comparison.batches)
    texts.push_back(batch_text(groups, comparison.responses_per_group));
  return fmt::format("{}", fmt::join(texts, ", "));
}

/// Names a batch and a distribution; the batch only if several are compared.
std::string workload_text(const DeploymentComparison& comparison, const DeploymentRow& row) {
  if (comparison.batches.size() < 2)
    return row.lengths;
  return fmt::format(
      "{}, {}", batch_text(row.groups_per_update, row.responses_per_group), row.lengths);
}

/// Deployments in rows, batches and distributions in columns.
std::string over_workloads(const DeploymentComparison& comparison,
                           const std::vector<DeploymentRow>& rows,
                           const Show& show) {
  std::vector<std::vector<std::string>> table{{"deployment"}};
  const std::size_t deployments = comparison.deployments.size();
  for (std::size_t first = 0; first < rows.size(); first += deployments)
    table.front().push_back(workload_text(comparison, rows[first]));
  for (std::size_t deployment = 0; deployment < deployments; ++deployment) {
    std::vector<std::string>& line = table.emplace_back();
    line.push_back(comparison.deployments[deployment].text);
    for (std::size_t at = deployment; at < rows.size(); at += deployments)
      line.push_back(rows[at].tokens_per_s > 0 ? show(rows[at]) : "-");
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

std::string reasons_text(const DeploymentComparison& comparison,
                         const std::vector<DeploymentRow>& rows) {
  std::string out;
  for (const DeploymentRow& row : rows) {
    const std::string where =
        fmt::format("{} at {}", row.deployment, workload_text(comparison, row));
    if (!row.reason.empty())
      out += fmt::format("  {}: {}\n", where, row.reason);
    if (!row.mechanisms_reason.empty() && row.mechanisms_reason != row.reason)
      out += fmt::format("  {}, mechanisms on: {}\n", where, row.mechanisms_reason);
  }
  return out.empty() ? out : "\nnot run\n" + out;
}

}  // namespace

std::vector<DeploymentRow> deployment_rows(const DeploymentComparison& comparison) {
  std::vector<DeploymentRow> rows;
  const auto of = [](const DeploymentRow& row, const DeploymentRow& baseline) {
    return baseline.tokens_per_s > 0 ? rounded(row.tokens_per_s / baseline.tokens_per_s, 1e3) : 0;
  };
  for (std::size_t i = 0; i < comparison.cells.size(); ++i)
    rows.push_back(row_of(comparison, comparison.cells[i], comparison.deployment_of(i)));
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const std::size_t first = i - i % comparison.deployments.size();
    rows[i].of_separate = of(rows[i], rows[first]);
    for (std::size_t at = first; at < rows.size() && at < first + comparison.deployments.size();
         ++at) {
      if (rows[at].deployment == kColocated)
        rows[i].of_colocated = of(rows[i], rows[at]);
    }
  }
  return rows;
}

std::string split_text(const DeploymentRow& r) {
  const auto mode = from_name<orchestrator::PlacementMode>(r.mode);
  const std::int64_t rollout = r.engines * r.engine_cards;
  if (mode && traits_of(*mode).alternates() && traits_of(*mode).shares_reference)
    return fmt::format("{} shared", rollout);
  if (mode && traits_of(*mode).alternates())
    return fmt::format("{} shared + {}", rollout, r.reference_cards);
  return fmt::format("{} + {} + {}", rollout, r.reference_cards, r.trainer_cards);
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
      "{} cards, batch {}, {} tuning runs per cell; lengths are mean:cap:p99/median\n\n"
      "trained tokens/s, sustained\n",
      comparison.cards,
      batches_text(comparison),
      comparison.runs);
  out += over_workloads(
      comparison, rows, [](const DeploymentRow& r) { return thousands_text(r.tokens_per_s, 1); });
  out += "\ntuned with gradients during generation, and time-shared cards that switch one by one\n";
  out += over_workloads(comparison, rows, [](const DeploymentRow& r) {
    return r.mechanisms_per_s > 0 ? thousands_text(r.mechanisms_per_s, 1) : "-";
  });
  out += fmt::format("\nrelative to `{}`\n", comparison.deployments.front().text);
  out += over_workloads(comparison, rows, [](const DeploymentRow& r) {
    return fmt::format("{:.2f}", r.of_separate);
  });
  const auto colocated = std::ranges::find(comparison.deployments, kColocated, &Deployment::id);
  if (colocated != comparison.deployments.end()) {
    out += fmt::format("\nrelative to `{}`\n", colocated->text);
    out += over_workloads(comparison, rows, [](const DeploymentRow& r) {
      return r.of_colocated > 0 ? fmt::format("{:.2f}", r.of_colocated) : "-";
    });
  }
  out += "\ncards: rollout + reference + trainer\n";
  out += over_workloads(comparison, rows, split_text);
  out += "\ncards busy\n";
  out += over_workloads(comparison, rows, [](const DeploymentRow& r) {
    return fmt::format("{:.0f} %", 100 * r.busy);
  });
  out += "\nmean staleness\n";
  out += over_workloads(comparison, rows, [](const DeploymentRow& r) {
    return fmt::format("{:.2f}", r.staleness_mean);
  });
  out += "\nchosen\n";
  for (const DeploymentRow& row : rows) {
    if (row.tokens_per_s > 0)
      out += fmt::format(
          "  {:<16}{:<16}{}\n", workload_text(comparison, row), row.deployment, layout_text(row));
  }
  return out + reasons_text(comparison, rows) + published_text(comparison);
}

}  // namespace temper::study
