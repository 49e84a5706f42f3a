#include "actors/simulation/tensor_fetch.hpp"

#include "sim_hw/model/numbers.hpp"
#include "sim_hw/network/reshard.hpp"

#include <algorithm>
#include <map>

namespace temper::actors {
namespace {

using sim_hw::as_double;
using sim_hw::Fabric;
using Devices = std::vector<sim_hw::ReshardTraffic::PerLevel>;

/// How many of `cards` are in the same unit of so many cards as each of `at`; units begin at
/// `first`.
std::vector<double> neighbors(const std::vector<CardId>& at,
                              const std::vector<CardId>& cards,
                              std::int64_t first,
                              std::int64_t unit) {
  const auto unit_of = [&](CardId card) {
    return (static_cast<std::int64_t>(card.value()) - first) / unit;
  };
  std::map<std::int64_t, double> in_unit;
  for (const CardId card : cards)
    ++in_unit[unit_of(card)];
  std::vector<double> out;
  out.reserve(at.size());
  for (const CardId card : at)
    out.push_back(in_unit[unit_of(card)]);
  return out;
}

/// Of a cluster: its links, its nodes, and the first of its cards.
struct Cluster {
  const Fabric& fabric;
  const sim_hw::HardwareSpec& hardware;
  std::int64_t first_card = 0;
};

/// Bytes of a device of each of `cards` by level, where each device exchanges `bytes` in total with
/// the hosts of `others`, with all alike.
Devices spread(const Cluster& in,
               const std::vector<CardId>& cards,
               const std::vector<CardId>& others,
               double bytes) {
  const std::size_t levels = in.fabric.level_count;
  const double of_each = bytes / as_double(std::ssize(others));
  Devices out(cards.size());
  std::vector<double> reached = neighbors(cards, others, in.first_card, in.hardware.cards_per_node);
  for (std::size_t l = in.fabric.node_levels; l < levels; ++l) {
    const std::vector<double> within =
        l + 1 == levels ? std::vector<double>(cards.size(), as_double(std::ssize(others)))
                        : neighbors(cards,
                                    others,
                                    in.first_card,
                                    static_cast<std::int64_t>(in.fabric.levels[l].devices) /
                                        in.hardware.dies_per_card);
    for (std::size_t i = 0; i < cards.size(); ++i)
      out[i][l] = of_each * (within[i] - reached[i]);
    reached = within;
  }
  return out;
}

/// The first card of the cluster of the trainer.
std::int64_t first_card(const SimulatedRun& run) {
  std::int64_t cards = 0;
  for (std::int64_t i = 0; run.clusters && i < run.clusters->trainer.index; ++i)
    cards += run.config.clusters[static_cast<std::size_t>(i)].cards;
  return cards;
}

/// Seconds of the network alone; adds the bytes.
double network_seconds(const Fabric& fabric,
                       const SimulatedRun& run,
                       const TensorPlaces& places,
                       TensorFetch& fetch) {
  if (are_apart(run, RoleKind::Rollout, RoleKind::Trainer)) {
    fetch.sent.at[fabric.level_count] = fetch.bytes;
    return sim_hw::payload_seconds(link_between(run), fetch.bytes);
  }
  const double dies = as_double(run.cluster.dies_per_card);
  const Cluster cluster{fabric, run.cluster, first_card(run)};
  const double readers = dies * as_double(std::ssize(places.trainer));
  const double writers = dies * as_double(std::ssize(places.engines));
  const Devices received = spread(cluster, places.trainer, places.engines, fetch.bytes / readers);
  const Devices sent = spread(cluster, places.engines, places.trainer, fetch.bytes / writers);
  for (const auto& device : received)
    fetch.sent.add({device}, dies);
  return std::max(sim_hw::busiest_port_seconds(fabric, received),
                  sim_hw::busiest_port_seconds(fabric, sent));
}

/// Latency of the outermost level that is used.
double latency(const Fabric& fabric, const sim_hw::LevelBytes& sent) {
  for (std::size_t l = fabric.level_count; l > 0; --l) {
    if (sent.at[l - 1] > 0)
      return fabric.p2p.start_up + fabric.levels[l - 1].latency;
  }
  return 0;
}

}  // namespace

double tensor_bytes(const SimulatedRun& run, const PayloadTokens& responses) {
  const TensorConfig& c = run.config.tensors;
  const double bytes =
      as_double(c.per_token.count()) * as_double((responses.prompt + responses.response).count()) +
      as_double(c.per_response.count()) * as_double(responses.responses);
  return bytes * as_double(run.response_weight);
}

TensorFetch fetch_tensors(const Fabric& fabric,
                          const SimulatedRun& run,
                          const TensorPlaces& places,
                          double bytes) {
  TensorFetch fetch;
  if (bytes <= 0 || places.engines.empty() || places.trainer.empty())
    return fetch;
  fetch.bytes = bytes;
  const double network = network_seconds(fabric, run, places, fetch);
  const double devices =
      as_double(run.cluster.dies_per_card) * as_double(std::ssize(places.trainer));
  const double host = bytes / devices * fabric.to_device;
  fetch.seconds = latency(fabric, fetch.sent) + fabric.host_latency +
                  (network + host) / run.config.tensors.link_share;
  return fetch;
}

}  // namespace temper::actors
