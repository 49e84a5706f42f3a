#include "study/faults/checkpoint_interval.hpp"

#include "actors/simulation/role_layouts.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

namespace temper::study {
namespace {

/// Failures per second of `components` with this mean time between failures each.
double rate(Duration mtbf, double components) {
  return mtbf > Duration{} ? components / seconds(mtbf) : 0;
}

}  // namespace

CheckpointTerms checkpoint_terms(const orchestrator::ResolvedPipeline& pipeline) {
  const actors::SimulatedRun& run = *pipeline.simulation;
  const actors::FaultConfig& f = run.config.faults;
  const actors::CheckpointCostConfig& cost = run.config.checkpoint;
  CheckpointTerms terms;
  if (cost.bandwidth.count() > 0) {
    terms.save_s = static_cast<double>(actors::trained_parameters(run)) * cost.bytes_per_parameter /
                   cost.bandwidth.count();
  }
  std::set<std::int64_t> hosts, supernodes;
  for (const CardId card : pipeline.placement.trainer)
    hosts.insert(card.value() / run.cluster.cards_per_node);
  for (const std::int64_t host : hosts)
    supernodes.insert(host / run.cluster.nodes);
  double on_hosts = 0;  // Unused components do not fail.
  for (const std::int64_t host : hosts) {
    on_hosts += static_cast<double>(std::min<std::int64_t>(
        run.cluster.cards_per_node,
        pipeline.config.placement.cards - host * run.cluster.cards_per_node));
  }
  const double per_second =
      f.rate * (rate(f.card_mtbf, on_hosts) + rate(f.host_mtbf, static_cast<double>(hosts.size())) +
                rate(f.link_mtbf, static_cast<double>(pipeline.placement.trainer.size())) +
                rate(f.supernode_mtbf, static_cast<double>(supernodes.size())));
  terms.failures_s = per_second > 0 ? 1 / per_second : std::numeric_limits<double>::infinity();
  return terms;
}

double young_interval(const CheckpointTerms& terms) {
  return std::sqrt(2 * terms.save_s * terms.failures_s);
}

double daly_interval(const CheckpointTerms& terms) {
  const double share = terms.save_s / (2 * terms.failures_s);
  if (share >= 1)
    return terms.failures_s;
  return young_interval(terms) * (1 + std::sqrt(share) / 3 + share / 9) - terms.save_s;
}

}  // namespace temper::study
