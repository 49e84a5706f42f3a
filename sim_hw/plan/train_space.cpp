#include "sim_hw/plan/train_space.hpp"

#include "sim_hw/model/numbers.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/plan/plan_words.hpp"

#include <algorithm>

namespace temper::sim_hw {
namespace {

std::vector<std::int64_t> powers_of_two(std::int64_t whole, std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= most && divides(d, whole); d *= 2)
    out.push_back(d);
  return out;
}

std::vector<std::int64_t> up_to(std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= most; ++d)
    out.push_back(d);
  return out;
}

}  // namespace

TrainSpace full_space(const TrainProblem& problem, const TrainShape& shape) {
  const ModelSpec& model = problem.model;
  constexpr std::int64_t kMostParts = 64;
  TrainSpace space;
  for (const std::int64_t tp : divisors_up_to(model.heads, problem.devices)) {
    TrainShape one;
    one.seq = tp;
    Layout layout;
    layout.tp = tp;
    layout.sequence_parallel = tp > 1 ? SequenceParallel::On : SequenceParallel::Off;
    if (check_layout(model, tp, layout, one))
      space.tp.push_back(tp);
  }
  space.pp = up_to(std::min(model.layers, problem.devices));
  space.vpp = up_to(model.layers);
  space.ep = model.moe ? divisors_up_to(model.moe->experts, problem.devices)
                       : std::vector<std::int64_t>{1};
  space.cp = powers_of_two(shape.seq, std::min(kMostParts, problem.devices));
  space.dp = divisors_up_to(shape.global_batch, problem.devices);
  space.micro_batch = powers_of_two(shape.global_batch, kMostParts);
  space.zero = {Zero::None, Zero::Optimizer};
  space.recompute = {Recompute::None, Recompute::Full};
  if (shape.attention == AttentionKernel::Unfused)  // Fused attention recomputes its core itself.
    space.recompute = {Recompute::None, Recompute::Selective, Recompute::Full};
  space.sequence_parallel = {SequenceParallel::Off, SequenceParallel::On};
  space.state = {TrainerState::Active, TrainerState::OptimizerOnHost};
  space.schedule = {shape.mechanisms.schedule};
  space.layer_balance = {LayerBalance::LastShort};
  space.activations = {Activations::AsRecompute};
  return space;
}

}  // namespace temper::sim_hw
