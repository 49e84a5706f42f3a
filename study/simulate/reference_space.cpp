#include "study/simulate/reference_space.hpp"

#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/simulated_reference.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/plan/plan_words.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace temper::study {
namespace {

using actors::ReferenceEngineConfig;

std::vector<ReferenceEngineConfig> reference_layouts(const actors::SimulationSettings& s) {
  const std::int64_t devices = s.cards * s.cluster.dies_per_card;
  const std::int64_t experts = s.model.moe ? s.model.moe->experts : 1;
  std::vector<ReferenceEngineConfig> out;
  ReferenceEngineConfig c = s.config.reference;
  for (const std::int64_t tp : sim_hw::divisors_up_to(s.model.heads, devices)) {
    for (std::int64_t cp = 1; tp * cp <= devices; cp *= 2) {
      for (std::int64_t pp = 1; pp <= std::min(s.model.layers, devices / (tp * cp)); ++pp) {
        if (devices % (tp * cp * pp) != 0)
          continue;
        for (const std::int64_t ep : sim_hw::divisors_up_to(experts, devices / pp)) {
          c.tp = tp, c.cp = cp, c.pp = pp, c.ep = ep;
          out.push_back(c);
        }
      }
    }
  }
  return out;
}

/// Whether the cards and the model allow the layout as it is.
bool is_whole(const actors::SimulationSettings& s) {
  const sim_hw::Layout layout = actors::reference_layout(s);
  const ReferenceEngineConfig& c = s.config.reference;
  return c.tp == layout.tp && c.pp == layout.pp && c.ep == layout.ep && c.cp == layout.cp &&
         actors::check_reference(s);
}

}  // namespace

std::vector<RankedReference> rank_references(actors::SimulationSettings s,
                                             double most_bytes,
                                             const std::vector<Tokens>& batch,
                                             const orchestrator::ScoringPasses& passes) {
  actors::Packings packings({batch.begin(), batch.begin() + passes.responses});
  std::vector<RankedReference> all;
  s.cluster.fits.clear();  // Sources of constants are not needed here and are expensive to copy.
  for (const ReferenceEngineConfig& layout : reference_layouts(s)) {
    s.config.reference = layout;
    if (!is_whole(s))
      continue;
    const double device = actors::reference_memory(s).device.total();
    if (device > most_bytes)
      continue;
    const actors::ReferenceModel model(s);
    all.push_back({layout, passes.count * model.seconds(packings(model.limits())), device});
  }
  std::ranges::stable_sort(all, {}, &RankedReference::seconds);
  std::vector<RankedReference> out;
  double least = std::numeric_limits<double>::infinity();
  for (RankedReference& one : all) {
    if (one.device_bytes < least) {
      least = one.device_bytes;
      out.push_back(std::move(one));
    }
  }
  return out;
}

}  // namespace temper::study
