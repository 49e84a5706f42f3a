#include "study/simulate/trainer_space.hpp"

#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "sim_hw/plan/plan_words.hpp"
#include "trainer/simulated/update_cost.hpp"

#include <algorithm>

namespace temper::study {
namespace {

using actors::SimulatedRun;
using actors::TrainerEngineConfig;

constexpr std::int64_t kMicroBatches[] = {4096, 8192, 16384, 32768};

std::vector<std::int64_t> virtual_stages(const SimulatedRun& s, std::int64_t stages) {
  const std::int64_t layers = (s.model.layers + stages - 1) / stages;
  std::vector<std::int64_t> out = sim_hw::divisors_up_to(layers, stages > 1 ? layers : 1);
  const bool two = s.config.trainer.mechanisms.schedule == sim_hw::PipelineSchedule::AdaptivePipe;
  if (two && std::ranges::find(out, 2) == out.end())
    out.push_back(2);
  return out;
}

/// Adds every choice that remains with this tp, cp and pp.
void add_choices(const SimulatedRun& s,
                 std::int64_t devices,
                 TrainerEngineConfig c,
                 std::vector<TrainerEngineConfig>& out) {
  const std::int64_t experts = s.model.moe ? s.model.moe->experts : 1;
  const std::vector<std::int64_t> expert_cuts = sim_hw::divisors_up_to(experts, devices / c.pp);
  for (const std::int64_t vpp : virtual_stages(s, c.pp)) {
    for (const std::int64_t ep : expert_cuts) {
      for (const std::int64_t tokens : kMicroBatches) {
        for (const bool host : {false, true}) {
          c.vpp = vpp;
          c.ep = ep;
          c.micro_batch_tokens = tokens;
          c.optimizer_on_host = host;
          out.push_back(c);
        }
      }
    }
  }
}

std::vector<TrainerEngineConfig> trainer_layouts(const SimulatedRun& s, std::int64_t devices) {
  std::vector<TrainerEngineConfig> out;
  TrainerEngineConfig c = s.config.trainer;
  for (const std::int64_t tp : sim_hw::divisors_up_to(s.model.heads, devices)) {
    c.tp = tp;
    for (c.cp = 1; tp * c.cp <= devices; c.cp *= 2) {
      for (c.pp = 1; c.pp <= std::min(s.model.layers, devices / (tp * c.cp)); ++c.pp) {
        if (devices % (tp * c.cp * c.pp) == 0)
          add_choices(s, devices, c, out);
      }
    }
  }
  return out;
}

}  // namespace

std::vector<RankedTrainer> rank_trainers(SimulatedRun s,
                                         double most_bytes,
                                         actors::Packings& packings) {
  std::vector<RankedTrainer> out;
  for (const TrainerEngineConfig& layout :
       trainer_layouts(s, s.trainer_cards * s.cluster.dies_per_card)) {
    s.config.trainer = layout;
    if (!actors::check_trainer(s))
      continue;
    const actors::ActorMemory memory = actors::trainer_memory(s);
    const double device = memory.device.total(), host = memory.host.total();
    if (device > most_bytes || host > actors::host_capacity(s))
      continue;
    const trainer::UpdateModel update(s);
    out.push_back({layout, update.seconds(packings(update.limits())), device, host});
  }
  std::ranges::stable_sort(out, {}, &RankedTrainer::seconds);
  return out;
}

std::vector<std::size_t> pareto_optimal(const std::vector<RankedTrainer>& ranked) {
  std::vector<std::size_t> out;
  for (std::size_t i = 0; i < ranked.size(); ++i) {
    if (std::ranges::none_of(out, [&](std::size_t faster) {
          return ranked[faster].device_bytes <= ranked[i].device_bytes &&
                 ranked[faster].host_bytes <= ranked[i].host_bytes;
        }))
      out.push_back(i);
  }
  return out;
}

}  // namespace temper::study
