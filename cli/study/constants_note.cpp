#include "cli/study/constants_note.hpp"

#include "sim_hw/validation/unmeasured.hpp"

#include <ostream>
#include <set>

namespace temper::cli {

std::string constants_note(const Result<orchestrator::PipelineConfig>& config) {
  if (!config || config->hardware != orchestrator::HardwareKind::Simulated)
    return {};
  if (config->simulation.clusters.empty())
    return sim_hw::simulated_run_note(config->simulation.cluster);
  std::string out;
  std::set<std::string> said;
  for (const actors::ClusterConfig& cluster : config->simulation.clusters) {
    if (said.insert(cluster.hardware).second)
      out += sim_hw::simulated_run_note(cluster.hardware);
  }
  return out;
}

std::string tools_note(const orchestrator::PipelineConfig& config) {
  if (config.hardware != orchestrator::HardwareKind::Simulated || !config.simulation.tools)
    return {};
  return "the plan leaves out the tool calls of `simulation.tools`; simulated runs have them\n";
}

std::ostream& beside(bool for_programs, std::ostream& out, std::ostream& err) {
  if (!for_programs)
    return out;
  out.flush();
  return err;
}

}  // namespace temper::cli
