#include "orchestrator/pipeline/clusters.hpp"

#include "actors/simulation/role_clusters.hpp"
#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/network/cluster_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <tuple>

namespace temper::orchestrator {
namespace {

using actors::ClusterConfig;

std::string key_of(std::size_t cluster, std::string_view field) {
  return fmt::format("simulation.clusters[{}].{}", cluster, field);
}

std::string range_of(const CardKind& kind) {
  return fmt::format("{} to {}", kind.first, kind.first + kind.cards - 1);
}

/// Whether the description leaves the number of nodes open, and connects any number of them.
bool is_one_node_of_many(const sim_hw::HardwareSpec& hardware) {
  return hardware.nodes == 1 && hardware.supernodes == 1 && !hardware.levels.empty() &&
         hardware.levels.back().devices == 0;
}

/// The cluster of the role's first card; the first cluster if the role has no cards.
std::size_t cluster_of(const std::vector<CardKind>& kinds, const std::vector<CardId>& cards) {
  const auto kind = std::ranges::find_if(
      kinds, [&](const CardKind& k) { return !cards.empty() && k.has(cards.front()); });
  return kind == kinds.end() ? 0 : static_cast<std::size_t>(kind - kinds.begin());
}

struct RoleCards {
  std::string_view role;
  const std::vector<CardId>& cards;
};

/// "cm384 (0 to 31) and nvidia-h800 (40 to 47)": the role's cards by kind. Empty if all are of one
/// kind.
std::string several_kinds(const std::vector<CardKind>& kinds, const std::vector<CardId>& cards) {
  std::string out;
  std::size_t found = 0;
  for (const CardKind& kind : kinds) {
    std::vector<CardId> here;
    std::ranges::copy_if(
        cards, std::back_inserter(here), [&](CardId card) { return kind.has(card); });
    if (here.empty())
      continue;
    const auto [least, most] = std::ranges::minmax(here);
    out += fmt::format("{}{} (cards {} to {})", found++ > 0 ? " and " : "", kind.name, least, most);
  }
  return found > 1 ? out : std::string();
}

/// The kind of which the role has most cards.
const CardKind& kind_of_most(const std::vector<CardKind>& kinds, const std::vector<CardId>& cards) {
  return *std::ranges::max_element(kinds, {}, [&](const CardKind& kind) {
    return std::ranges::count_if(cards, [&](CardId card) { return kind.has(card); });
  });
}

void check_roles(const PipelineConfig& c, const PlacementConfig& p, Rules& rules) {
  const std::vector<CardKind> kinds = card_kinds(c);
  const std::vector<CardId> none;
  const std::vector<CardId>& reference = c.reference.replicas > 0 ? p.reference : none;
  for (const RoleCards& role : {RoleCards{"rollout", p.rollout},
                                RoleCards{"trainer", p.trainer},
                                RoleCards{"reference", reference}}) {
    const std::string both = several_kinds(kinds, role.cards);
    const CardKind& most = kind_of_most(kinds, role.cards);
    rules.require(both.empty(),
                  {fmt::format("placement.{}", role.role),
                   fmt::format("placement.{}_cards", role.role),
                   "placement.rollout_cards",
                   "placement.cards",
                   "simulation.clusters"},
                  fmt::format("the {} has cards of {}, expected cards of one kind; nearest: "
                              "the {} cards {} of {}",
                              role.role,
                              both,
                              most.cards,
                              range_of(most),
                              most.name));
  }
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    const bool used = std::ranges::any_of(
        std::initializer_list<const std::vector<CardId>*>{&p.rollout, &p.trainer, &reference},
        [&](const std::vector<CardId>* cards) {
          return std::ranges::any_of(*cards, [&](CardId card) { return kinds[i].has(card); });
        });
    rules.require(
        used,
        {key_of(i, "cards"), "simulation.clusters"},
        fmt::format("cards {} of {} have no role; remove the cluster, or give its cards to a "
                    "role in `placement`",
                    range_of(kinds[i]),
                    kinds[i].name));
  }
}

void check_several(const PipelineConfig& c, const PlacementConfig& p, Rules& rules) {
  rules.require(
      !traits_of(p.mode).shares,
      {"placement.mode", "simulation.clusters"},
      fmt::format("`{}` runs engines and trainer on the same cards, which must belong to one "
                  "cluster; nearest: `placement.mode: separate`",
                  name_of(p.mode)));
  rules.require(
      c.simulation.between.bandwidth.count() > 0,
      {"simulation.between.bandwidth", "simulation.between", "simulation.clusters"},
      "required for several clusters: the bandwidth of the link between them, per direction, "
      "e.g. 50GB/s");
  rules.require(
      !c.simulation.faults.any(),
      {c.simulation.faults.trace.empty() ? "simulation.faults.rate" : "simulation.faults.trace",
       "simulation.clusters"},
      "faults can be simulated in one cluster only; nearest: `simulation.faults.rate: 0` "
      "without a trace");
  if (!traits_of(p.mode).shares)
    check_roles(c, p, rules);
}

/// Checks one entry of simulation.clusters.
void check_entry(std::size_t i,
                 const ClusterConfig& cluster,
                 bool several,
                 sim_hw::Catalog& catalog,
                 Rules& rules) {
  if (cluster.cards < 1) {
    return rules.require(false,
                         {key_of(i, "cards"), "simulation.clusters"},
                         "required: the number of cards of this cluster");
  }
  const auto hardware = cluster_hardware(catalog, cluster);
  if (!hardware) {
    const bool known = catalog.hardware(cluster.hardware).has_value();
    return rules.require(false,
                         {key_of(i, known ? "cards" : "hardware"), "simulation.clusters"},
                         hardware.error().context);
  }
  if (!several)
    return;
  rules.require(
      cluster.port || sim_hw::outermost_port(*hardware),
      {key_of(i, "port"), "simulation.clusters"},
      fmt::format(
          "required: the port that leads to other clusters, because {} has no network level "
          "that spans all devices (`devices: 0`)",
          hardware->name));
  rules.require(hardware->levels.size() < sim_hw::Fabric::kMaxLevels,
                {key_of(i, "hardware"), "simulation.clusters"},
                fmt::format("{} has {} network levels; a cluster among several can have at most {}",
                            hardware->name,
                            hardware->levels.size(),
                            sim_hw::Fabric::kMaxLevels - 1));
}

}  // namespace

std::vector<CardKind> card_kinds(const PipelineConfig& config) {
  std::vector<CardKind> out;
  if (!has_several_clusters(config))
    return out;
  std::uint32_t first = 0;
  for (const ClusterConfig& cluster : config.simulation.clusters) {
    const auto cards = static_cast<std::uint32_t>(std::max(0, cluster.cards));
    out.push_back({std::filesystem::path(cluster.hardware).stem().string(), first, cards});
    first += cards;
  }
  const std::vector<CardKind> plain = out;
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto same = [&](const CardKind& kind) { return kind.name == plain[i].name; };
    const auto here = plain.begin() + static_cast<std::ptrdiff_t>(i);
    if (std::ranges::count_if(plain, same) > 1)
      out[i].name += fmt::format("-{}", std::count_if(plain.begin(), here, same));
  }
  return out;
}

Result<sim_hw::HardwareSpec> cluster_hardware(sim_hw::Catalog& catalog,
                                              const ClusterConfig& cluster) {
  TEMPER_TRY(const sim_hw::HardwareSpec* found, catalog.hardware(cluster.hardware));
  sim_hw::HardwareSpec hardware = *found;
  if (is_one_node_of_many(hardware))
    hardware.nodes = (cluster.cards + hardware.cards_per_node - 1) / hardware.cards_per_node;
  if (cluster.cards > hardware.cards()) {
    return invalid_input(fmt::format("{} has {} cards, found {}; nearest: {}",
                                     hardware.name,
                                     hardware.cards(),
                                     cluster.cards,
                                     hardware.cards()));
  }
  return hardware;
}

namespace {

sim_hw::HardwareSpec as_configured(sim_hw::HardwareSpec hardware, const PipelineConfig& config) {
  if (config.simulation.shared_host_links)
    hardware.host = sim_hw::shared_host(hardware.host, hardware.devices_per_node());
  return hardware;
}

}  // namespace

Status resolve_clusters(const PipelineConfig& config,
                        const PlacementConfig& placement,
                        sim_hw::Catalog& catalog,
                        actors::SimulatedRun& run) {
  const std::vector<ClusterConfig>& clusters = config.simulation.clusters;
  if (clusters.empty()) {
    TEMPER_TRY(const sim_hw::HardwareSpec* cluster, catalog.hardware(config.simulation.cluster));
    run.cluster = as_configured(*cluster, config);
    return {};
  }
  if (!has_several_clusters(config)) {
    TEMPER_TRY(run.cluster, cluster_hardware(catalog, clusters.front()));
    run.cluster = as_configured(std::move(run.cluster), config);
    return {};
  }
  const std::vector<CardKind> kinds = card_kinds(config);
  const auto place = [&](const std::vector<CardId>& cards) -> Result<actors::RoleCluster> {
    const std::size_t at = cluster_of(kinds, cards);
    TEMPER_TRY(sim_hw::HardwareSpec hardware, cluster_hardware(catalog, clusters[at]));
    const auto port = clusters[at].port ? clusters[at].port : sim_hw::outermost_port(hardware);
    return actors::RoleCluster{static_cast<std::int64_t>(at),
                               as_configured(std::move(hardware), config),
                               port.value_or(BytesPerSecond(1e6))};
  };
  actors::RoleClusters roles;
  TEMPER_TRY(roles.trainer, place(placement.trainer));
  TEMPER_TRY(roles.rollout, place(placement.rollout));
  TEMPER_TRY(roles.reference,
             place(config.reference.replicas > 0 ? placement.reference : placement.trainer));
  run.cluster = roles.trainer.hardware;
  run.clusters = std::move(roles);
  return {};
}

void check_clusters(const PipelineConfig& c,
                    const PlacementConfig& p,
                    sim_hw::Catalog& catalog,
                    Rules& rules) {
  const actors::SimulationConfig& s = c.simulation;
  if (s.clusters.empty()) {
    if (s.cluster.empty()) {
      rules.require(
          false,
          {"simulation.cluster", "hardware"},
          "required by `hardware: simulated`: a name from configs/hardware, e.g. cm384, or "
          "the path of a description");
    } else if (const auto cluster = catalog.hardware(s.cluster); !cluster) {
      rules.require(false, {"simulation.cluster"}, cluster.error().context);
    } else {
      rules.require(c.placement.cards <= (*cluster)->cards(),
                    {"placement.cards", "simulation.cluster"},
                    fmt::format("{} has {} cards, found {}",
                                (*cluster)->name,
                                (*cluster)->cards(),
                                c.placement.cards));
    }
    return;
  }
  rules.require(
      s.cluster.empty(),
      {"simulation.cluster", "simulation.clusters"},
      "simulation.clusters already lists the hardware of all cards; set only one of the two");
  std::int64_t cards = 0;
  for (std::size_t i = 0; i < s.clusters.size(); ++i) {
    check_entry(i, s.clusters[i], has_several_clusters(c), catalog, rules);
    cards += s.clusters[i].cards;
  }
  rules.require(cards == c.placement.cards,
                {"placement.cards", "simulation.clusters"},
                fmt::format("the clusters have {} cards in total (simulation.clusters), found {}; "
                            "nearest: {}",
                            cards,
                            c.placement.cards,
                            cards));
  if (has_several_clusters(c) && rules.hold())
    check_several(c, p, rules);
}

}  // namespace temper::orchestrator
