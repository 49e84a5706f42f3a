#include "cli/run/machines.hpp"

#include "actors/simulation/role_clusters.hpp"
#include "orchestrator/pipeline/clusters.hpp"

#include <algorithm>

namespace temper::cli {
namespace {

/// Shape of the cluster's machine. Precondition: at least one role is placed in this cluster.
const sim_hw::HardwareSpec& hardware_of_cluster(const actors::SimulatedRun& run,
                                                std::size_t cluster) {
  const auto index = static_cast<std::int64_t>(cluster);
  if (run.clusters->rollout.index == index)
    return run.clusters->rollout.hardware;
  if (run.clusters->reference.index == index)
    return run.clusters->reference.hardware;
  return run.clusters->trainer.hardware;
}

}  // namespace

std::vector<MachineShape> machines_of(const orchestrator::ResolvedPipeline& pipeline) {
  const actors::SimulatedRun& run = *pipeline.simulation;
  if (!run.clusters)
    return {machine_shape(run.cluster)};
  std::vector<MachineShape> out;
  const auto kinds = orchestrator::card_kinds(pipeline.config);
  for (std::size_t i = 0; i < kinds.size(); ++i) {
    MachineShape& machine = out.emplace_back(machine_shape(hardware_of_cluster(run, i)));
    machine.name = kinds[i].name;
    machine.first = kinds[i].first;
    machine.cards = kinds[i].cards;
  }
  return out;
}

}  // namespace temper::cli
