// Clusters of different cards in one simulated run: which cards are of which, on which a role is,
// and what cannot be with them. Cards are numbered through: those of the first cluster, then those
// of the next.
#pragma once

#include "orchestrator/pipeline/card_kind.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/rules.hpp"
#include "sim_hw/catalog/catalog.hpp"

#include <vector>

namespace temper::orchestrator {

/// In order; none where all cards are of one kind. Where two are of the same hardware their names
/// are numbered.
std::vector<CardKind> card_kinds(const PipelineConfig& config);

/// Whether roles are on different hardware by `simulation.clusters`.
inline bool has_several_clusters(const PipelineConfig& config) {
  return config.simulation.clusters.size() > 1;
}

/// The hardware of a cluster, with nodes for its cards. Errors: no such description; it has fewer
/// cards than that.
Result<sim_hw::HardwareSpec> cluster_hardware(sim_hw::Catalog& catalog,
                                              const actors::ClusterConfig& cluster);

/// Fills `cluster` and `clusters`. `placement`: resolve_placement() of the configuration.
/// Errors: those of cluster_hardware(). Requires: check_clusters() is content.
Status resolve_clusters(const PipelineConfig& config,
                        const PlacementConfig& placement,
                        sim_hw::Catalog& catalog,
                        actors::SimulatedRun& run);

/// Every broken rule of `simulation.cluster`, `clusters` and `between`.
void check_clusters(const PipelineConfig& config,
                    const PlacementConfig& placement,
                    sim_hw::Catalog& catalog,
                    Rules& rules);

}  // namespace temper::orchestrator
