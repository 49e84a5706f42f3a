// The seconds of a decode step of a simulated engine in which each of its responses gains one
// token, for NaiveEngine.
#pragma once

#include "actors/simulation/role_layouts.hpp"

#include <cmath>

namespace temper::rollout {

class NaivePass {
 public:
  explicit NaivePass(const actors::SimulationSettings& s)
      : speculation_(s.config.rollout.speculation),
        by_(actors::engine_drafts(s)),
        device_(sim_hw::make_device(s.cluster, s.config.rollout.formats())),
        fabric_(sim_hw::make_fabric(s.cluster)),
        layout_(actors::rollout_layout(s)),
        model_(sim_hw::make_step_model(s.model, layout_.tp, layout_.ep, s.adapter)),
        replicas_(static_cast<std::int64_t>(layout_.dp)) {
    layout_.dp = layout_.ep / layout_.tp;
  }

  std::int64_t replicas() const { return replicas_; }
  /// Whether a pass over so many responses drafts.
  bool drafts(std::int64_t responses) const {
    const auto most = speculation_.disable_by_batch_size;
    return by_.depth > 0 && (!most || responses <= *most * replicas_);
  }
  /// `context`: of all of them.
  double seconds(std::int64_t responses, double context) const {
    const auto all = static_cast<double>(responses);
    const double batch = std::ceil(all / static_cast<double>(replicas_));
    sim_hw::ReplicaShape shape{batch, batch, context / all, drafts(responses) ? by_.queries() : 1};
    const double step = sim_hw::parallel_decode_seconds(device_, fabric_, model_, layout_, shape);
    if (!drafts(responses))
      return step + sim_hw::follow_seconds(device_, fabric_, model_, layout_, by_, shape);
    return (step + sim_hw::draft_seconds(device_, fabric_, model_, layout_, by_, shape)) /
           sim_hw::accepted_tokens(speculation_.acceptance, by_.depth);
  }

 private:
  actors::SpeculationConfig speculation_;
  sim_hw::Drafts by_;
  sim_hw::Device device_;
  sim_hw::Fabric fabric_;
  sim_hw::RolloutLayout layout_;
  sim_hw::StepModel model_;
  std::int64_t replicas_;
};

}  // namespace temper::rollout
