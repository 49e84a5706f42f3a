// Several clusters in one simulated run: which cards belong to which, which cluster hosts which
// role, and the rules for combining them. Cards are numbered consecutively: first those of the
// first cluster, then those of the next.
#pragma once

#include "orchestrator/pipeline/card_kind.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"
#include "sim_hw/catalog/catalog.hpp"

#include <vector>

namespace temper::orchestrator {

/// In order of their cards; empty if all cards are of one kind. Clusters of the same hardware get
/// numbered names.
std::vector<CardKind> card_kinds(const PipelineConfig& config);

/// Whether `simulation.clusters` puts roles on different hardware.
inline bool has_several_clusters(const PipelineConfig& config) {
  return config.simulation.clusters.size() > 1;
}

/// The hardware of a cluster, with enough nodes for its cards. Errors: the description does not
/// exist, or describes fewer cards.
Result<sim_hw::HardwareSpec> cluster_hardware(sim_hw::Catalog& catalog,
                                              const actors::ClusterConfig& cluster);

/// Fills `cluster` and `clusters`. `placement`: resolve_placement() of the configuration.
/// Errors: those of cluster_hardware(). Requires: check_clusters() found no issue.
Status resolve_clusters(const PipelineConfig& config,
                        const PlacementConfig& placement,
                        sim_hw::Catalog& catalog,
                        actors::SimulatedRun& run);

/// Reports every violated rule of `simulation.cluster`, `clusters` and `between`.
void check_clusters(const PipelineConfig& config,
                    const PlacementConfig& placement,
                    sim_hw::Catalog& catalog,
                    Rules& rules);

}  // namespace temper::orchestrator
