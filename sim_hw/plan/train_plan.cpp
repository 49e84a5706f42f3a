#include "sim_hw/plan/train_plan.hpp"

#include "sim_hw/model/numbers.hpp"
#include "sim_hw/parallel/activation_choice.hpp"

#include <tuple>

namespace temper::sim_hw {

TrainProblem::TrainProblem(const ModelSpec& trained,
                           const HardwareSpec& hardware,
                           std::int64_t cards)
    : model(trained),
      device(make_device(hardware)),
      fabric(make_fabric(hardware)),
      devices(cards * hardware.dies_per_card),
      device_memory(device.memory),
      host_memory(as_double(hardware.host.memory.count()) /
                  as_double(hardware.devices_per_node())) {}

double TrainPlan::tokens_per_second() const {
  return as_double(scenario.shape.global_batch * scenario.shape.seq) / total();
}

std::vector<std::pair<std::string_view, double>> TrainPlan::entries() const {
  const auto of_time = time.entries();
  std::vector<std::pair<std::string_view, double>> out(of_time.begin(), of_time.end());
  out.emplace_back("optimizer states to and from the host", host_transfer);
  return out;
}

PlacedLedger plan_memory(const TrainProblem& problem, const TrainScenario& scenario) {
  const auto& [layout, shape, state] = scenario;
  PlacedLedger placed = place(worst_train_ledger(problem.model, layout, shape), state);
  placed.host.activations =
      swapped_bytes({problem.model, problem.device, problem.fabric, layout, shape});
  return placed;
}

TrainPlan price(const TrainProblem& problem, const TrainScenario& scenario) {
  TrainPlan plan;
  plan.scenario = scenario;
  plan.memory = plan_memory(problem, scenario);
  plan.time = train_iteration_time(
      problem.model, problem.device, problem.fabric, scenario.layout, scenario.shape);
  if (const double parked = plan.memory.host.optimizer; parked > 0) {
    plan.host_transfer =
        to_device_seconds(problem.fabric, parked) + from_device_seconds(problem.fabric, parked);
  }
  return plan;
}

double plan_mfu(const TrainProblem& problem, const TrainPlan& plan) {
  const TrainScenario& s = plan.scenario;
  return model_flops(problem.model, s.shape) / plan.total() /
         (as_double(s.layout.devices()) * problem.device.matrix_peak);
}

bool same_cut(const Layout& a, const Layout& b) {
  const auto cut = [](const Layout& l) {
    return std::tie(l.tp, l.pp, l.vpp, l.ep, l.expert_tp, l.cp);
  };
  return cut(a) == cut(b);
}

bool is_simpler(const TrainPlan& a, const TrainPlan& b) {
  const auto order = [](const TrainPlan& p) {
    const TrainScenario& s = p.scenario;
    const Layout& l = s.layout;
    return std::tuple(l.devices(),
                      l.pp,
                      l.tp,
                      l.cp,
                      l.vpp,
                      l.ep,
                      l.expert_tp,
                      s.shape.micro_batch,
                      s.shape.recompute,
                      s.shape.mechanisms.schedule,
                      l.layer_balance,
                      s.state,
                      l.zero,
                      l.sequence_parallel);
  };
  return order(a) < order(b);
}

}  // namespace temper::sim_hw
