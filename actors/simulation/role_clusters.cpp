#include "actors/simulation/role_clusters.hpp"

#include "core/check.hpp"

#include <utility>

namespace temper::actors {
namespace {

constexpr double kPerToken = 4;      ///< Bytes of a token id or a log-prob.
constexpr double kPerResponse = 64;  ///< Bytes of ids, lengths and reward.

const RoleCluster& place_of(const SimulatedRun& run, RoleKind role) {
  TEMPER_CHECK(run.clusters.has_value(), "the run must have several clusters");
  switch (role) {
    case RoleKind::Rollout:
      return run.clusters->rollout;
    case RoleKind::Reference:
      return run.clusters->reference;
    case RoleKind::Trainer:
    case RoleKind::Reward:
      break;
  }
  return run.clusters->trainer;
}

double in_count(Tokens tokens) {
  return static_cast<double>(tokens.count());
}

/// Zero for a run with one cluster.
Crossing crossing(const SimulatedRun& run, double bytes) {
  if (bytes <= 0)
    return {};
  bytes *= static_cast<double>(run.response_weight);
  return {bytes, sim_hw::payload_seconds(link_between(run), bytes)};
}

}  // namespace

const sim_hw::HardwareSpec& hardware_of(const SimulatedRun& run, RoleKind role) {
  return run.clusters ? place_of(run, role).hardware : run.cluster;
}

void look_at(SimulatedRun& run, RoleKind role) {
  if (run.clusters)
    run.cluster = place_of(run, role).hardware;
  if (role == RoleKind::Reference && run.reference_model)
    run.model = *std::exchange(run.reference_model, std::nullopt);
}

std::vector<const sim_hw::HardwareSpec*> all_hardware(const SimulatedRun& run) {
  std::vector<const sim_hw::HardwareSpec*> out{&hardware_of(run, RoleKind::Trainer)};
  if (are_apart(run, RoleKind::Rollout, RoleKind::Trainer))
    out.push_back(&hardware_of(run, RoleKind::Rollout));
  if (are_apart(run, RoleKind::Reference, RoleKind::Trainer) &&
      are_apart(run, RoleKind::Reference, RoleKind::Rollout))
    out.push_back(&hardware_of(run, RoleKind::Reference));
  return out;
}

bool are_apart(const SimulatedRun& run, RoleKind a, RoleKind b) {
  return run.clusters && place_of(run, a).index != place_of(run, b).index;
}

std::optional<BytesPerSecond> outside_of(const SimulatedRun& run, RoleKind role) {
  return run.clusters ? std::optional(place_of(run, role).port) : std::nullopt;
}

sim_hw::ClusterLink link_between(const SimulatedRun& run) {
  const BetweenConfig& between = run.config.between;
  TEMPER_CHECK(between.bandwidth.count() > 0, "the link between clusters needs a bandwidth");
  return {1 / between.bandwidth.count(), seconds(between.latency)};
}

sim_hw::OutsidePort port_of(const SimulatedRun& run, RoleKind role) {
  const RoleCluster& place = place_of(run, role);
  const ClusterConfig& config = run.config.clusters[static_cast<std::size_t>(place.index)];
  return {1 / place.port.count(), !config.port};
}

Crossing to_trainer(const SimulatedRun& run, const PayloadTokens& batch) {
  double bytes = 0;
  if (are_apart(run, RoleKind::Rollout, RoleKind::Trainer)) {
    bytes += 2 * kPerToken * in_count(batch.response) + kPerToken * in_count(batch.prompt) +
             kPerResponse * static_cast<double>(batch.responses);
  }
  if (are_apart(run, RoleKind::Reference, RoleKind::Trainer))
    bytes += kPerToken * in_count(batch.response);
  return crossing(run, bytes);
}

Crossing to_reference(const SimulatedRun& run, const PayloadTokens& responses) {
  if (!are_apart(run, RoleKind::Rollout, RoleKind::Reference))
    return {};
  return crossing(run,
                  kPerToken * in_count(responses.prompt + responses.response) +
                      kPerResponse * static_cast<double>(responses.responses));
}

}  // namespace temper::actors
