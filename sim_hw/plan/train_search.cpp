#include "sim_hw/plan/train_search.hpp"

#include "sim_hw/layout/stages.hpp"
#include "sim_hw/memory/weights.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/parallel/activation_choice.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/plan/plan_words.hpp"

#include <algorithm>
#include <limits>
#include <span>

namespace temper::sim_hw {
namespace {

bool faster(const TrainPlan& a, const TrainPlan& b) {
  return a.total() != b.total() ? a.total() < b.total() : is_simpler(a, b);
}

/// A split of a layer and its cost: everything that a node needs besides pp and dp.
struct LayerSplit {
  TrainScenario scenario;  ///< pp, vpp and dp are 1.
  double layers = 0;       ///< Seconds of all layers, one micro-batch.
  double dense = 0;        ///< Parameters of all layers on one device, without routed experts.
  double experts = 0;      ///< Parameters of the routed experts on one device.
};

class TrainSearcher {
 public:
  TrainSearcher(const TrainProblem& problem,
                const TrainSpace& space,
                const TrainShape& shape,
                const TrainSearchOptions& wishes)
      : problem_(problem), space_(space), shape_(shape), wishes_(wishes) {}

  TrainSearch run();

 private:
  template <class Use>
  void each_layout(const TrainSpace& space, const Use& use) const;
  template <class Use>
  void each_pipeline(const TrainSpace& space, const LayerSplit& cut, const Use& use) const;
  template <class Use>
  void each_node(const TrainSpace& space, const Use& use) const;
  template <class Use>
  void each_scenario(const TrainScenario& node, const Use& use) const;

  std::vector<std::int64_t> expert_tps(const TrainSpace& space, std::int64_t tp) const;
  LayerSplit make_cut(const Layout& layout, const TrainShape& shape) const;
  double least_states(const LayerSplit& cut, const Layout& layout) const;
  double least_time(const LayerSplit& cut, const TrainScenario& node) const;
  PlacedLedger least_memory(TrainScenario node) const;

  void try_node(const LayerSplit& cut, const TrainScenario& node);
  void try_scenario(const TrainScenario& scenario, double bound);
  void approach(const LayerSplit& cut, const TrainScenario& node);
  void choose_activations_of_the_fastest();
  std::vector<TrainPlan> overfull() const;

  bool wanted(double memory, double time) const;
  double slowest_of_best() const;
  double slowest_of_front() const;
  void keep_best(const TrainPlan& plan);
  void keep_on_front(const TrainPlan& plan);
  /// Share of the available memory; above 1 if it does not fit.
  double fullness(const PlacedLedger& memory) const {
    return std::max(memory.device.total() / problem_.device_memory,
                    memory.host.total() / problem_.host_memory);
  }

  const TrainProblem& problem_;
  const TrainSpace& space_;
  const TrainShape& shape_;
  const TrainSearchOptions& wishes_;
  TrainSearch out_;
};

TrainSearch TrainSearcher::run() {
  // A coarse pass first, so that the full pass has bounds to compare with.
  constexpr std::size_t kFew = 2;
  TrainSpace coarse = space_;
  for (auto* values : {&coarse.cp, &coarse.micro_batch})
    values->resize(std::min(values->size(), kFew));
  const auto attempt = [this](const LayerSplit& cut, const TrainScenario& node) {
    try_node(cut, node);
  };
  each_node(coarse, attempt);
  out_.counts = {};
  each_node(space_, attempt);
  if (space_.activations.back() == Activations::Chosen)
    choose_activations_of_the_fastest();
  if (out_.best.empty()) {
    each_node(space_,
              [this](const LayerSplit& cut, const TrainScenario& node) { approach(cut, node); });
  }
  std::erase_if(out_.front, [this](const TrainPlan& p) { return p.total() > slowest_of_front(); });
  return std::move(out_);
}

std::vector<std::int64_t> TrainSearcher::expert_tps(const TrainSpace& space,
                                                    std::int64_t tp) const {
  if (!space.expert_tp.empty())
    return space.expert_tp;
  if (!problem_.model.moe || tp == 1)
    return {1};
  return {1, tp};
}

/// Every split of a layer, with pp, vpp and dp of 1.
template <class Use>
void TrainSearcher::each_layout(const TrainSpace& space, const Use& use) const {
  const bool routed = problem_.model.moe.has_value();
  constexpr SequenceParallel kOff[] = {SequenceParallel::Off};
  Layout l;
  for (const std::int64_t tp : space.tp) {
    l.tp = tp;
    const std::span<const SequenceParallel> sequences =
        tp == 1 ? std::span<const SequenceParallel>(kOff) : space.sequence_parallel;
    for (const SequenceParallel sequence : sequences) {
      l.sequence_parallel = sequence;
      const bool parts = sequence == SequenceParallel::On;
      for (const std::int64_t cp : space.cp) {
        l.cp = cp;
        if (tp * cp > problem_.devices || !divides(parts ? tp * cp : cp, shape_.seq))
          continue;
        for (const std::int64_t expert_tp : expert_tps(space, tp)) {
          l.expert_tp = expert_tp;
          if (routed && (!divides(expert_tp, problem_.model.moe->expert_ffn) ||
                         (tp > 1 && expert_tp != tp && !parts))) {
            continue;
          }
          for (const std::int64_t ep : space.ep) {
            for (const LayerBalance balance : space.layer_balance) {
              l.ep = ep;
              l.layer_balance = balance;
              use(l);
            }
          }
        }
      }
    }
  }
}

/// A split with each pp and dp that its devices, experts and batch allow.
template <class Use>
void TrainSearcher::each_pipeline(const TrainSpace& space,
                                  const LayerSplit& cut,
                                  const Use& use) const {
  TrainScenario node = cut.scenario;
  Layout& layout = node.layout;
  for (const std::int64_t pp : space.pp) {
    layout.pp = pp;
    for (const std::int64_t dp : space.dp) {
      layout.dp = dp;
      if (layout.devices() > problem_.devices)
        break;
      if (divides(dp * node.shape.micro_batch, node.shape.global_batch) &&
          divides(layout.ep * layout.expert_tp, layout.stage_devices()))
        use(cut, node);
    }
  }
}

/// Every split with its pipelines.
template <class Use>
void TrainSearcher::each_node(const TrainSpace& space, const Use& use) const {
  each_layout(space, [&](const Layout& layout) {
    TrainShape shape = shape_;
    for (const std::int64_t micro_batch : space.micro_batch) {
      shape.micro_batch = micro_batch;
      for (const Recompute recompute : space.recompute) {
        for (const PipelineSchedule schedule : space.schedule) {
          shape.recompute = recompute;
          shape.mechanisms.schedule = schedule;
          each_pipeline(space, make_cut(layout, shape), use);
        }
      }
    }
  });
}

/// Every number of chunks, ZeRO stage and place of the optimizer. Combinations that cannot run are
/// skipped.
template <class Use>
void TrainSearcher::each_scenario(const TrainScenario& node, const Use& use) const {
  TrainScenario s = node;
  const std::int64_t layers = stage_layers(problem_.model, node.layout, 0);
  const std::int64_t micro_batches = s.shape.micro_batches(s.layout);
  for (const std::int64_t vpp : space_.vpp) {
    s.layout.vpp = vpp;
    const bool whole = s.layout.layer_balance == LayerBalance::LastShort;
    if (vpp > 1 && (s.layout.pp == 1 || (whole ? !divides(vpp, layers) : vpp > layers) ||
                    !divides(s.layout.pp, micro_batches)))
      continue;
    for (const Zero zero : space_.zero) {
      s.layout.zero = zero;
      if (!check_layout(problem_.model, s.layout.devices(), s.layout, s.shape))
        continue;
      for (const TrainerState state : space_.state) {
        s.state = state;
        use(s);
      }
    }
  }
}

LayerSplit TrainSearcher::make_cut(const Layout& layout, const TrainShape& shape) const {
  const ModelSpec& model = problem_.model;
  const Device device = device_under(shape.mechanisms, problem_.device);
  const StepInputs in{model, device, problem_.fabric, layout, shape};
  const LayerParameters weights = layer_parameters(model, layout);
  LayerSplit cut;
  cut.scenario = {layout, shape, TrainerState::Active};
  const double modules = as_double(model.mtp_layers);
  const double routed = model.moe ? as_double(model.moe_layers()) + modules : 0;
  const double plain = as_double(model.layers) + modules - routed;
  if (plain > 0)
    cut.layers += plain * layer_cost(in, LayerKind::Dense).time.total();
  if (routed > 0)
    cut.layers += routed * layer_cost(in, LayerKind::Experts).time.total();
  cut.dense =
      (plain + routed) * weights.attention + plain * weights.dense + routed * weights.shared;
  cut.experts = routed * weights.experts;
  return cut;
}

/// State bytes of the mean stage, with everything shardable sharded and everything movable moved to
/// the host.
double TrainSearcher::least_states(const LayerSplit& cut, const Layout& layout) const {
  const StateBytes& bytes = shape_.states;
  const Zero zero = space_.zero.back();
  const bool parked = space_.state.back() != TrainerState::Active;
  const auto of = [&](double parameters, std::int64_t replicas) {
    const auto share = [&](Zero from) { return zero >= from ? as_double(replicas) : 1.0; };
    return parameters *
           (bytes.weight / share(Zero::Weights) + bytes.gradient / share(Zero::Gradients) +
            (parked ? 0 : bytes.optimizer() / share(Zero::Optimizer)));
  };
  return (of(cut.dense, layout.dp * layout.cp) + of(cut.experts, layout.expert_dp())) /
         as_double(layout.pp);
}

/// m t + (p - 1) t / v with the mean stage's t: a lower bound for every distribution of the layers.
/// t excludes communication that a schedule hides.
double TrainSearcher::least_time(const LayerSplit& cut, const TrainScenario& node) const {
  const double stages = as_double(node.layout.pp);
  const double mean = cut.layers / stages;
  const std::int64_t layers = stage_layers(problem_.model, node.layout, 0);
  const auto chunks = as_double(std::min(layers, space_.vpp.back()));
  const bool fills = node.shape.mechanisms.schedule != PipelineSchedule::DualPipe;
  return as_double(node.shape.micro_batches(node.layout)) * mean +
         (fills ? (stages - 1) * mean / chunks : 0);
}

/// Chunks only add to the memory of a stage.
PlacedLedger TrainSearcher::least_memory(TrainScenario node) const {
  node.layout.vpp = 1;
  node.layout.zero = space_.zero.back();
  node.state = space_.state.back();
  return plan_memory(problem_, node);
}

double TrainSearcher::slowest_of_best() const {
  return out_.best.size() < wishes_.count ? std::numeric_limits<double>::infinity()
                                          : out_.best.back().total();
}

double TrainSearcher::slowest_of_front() const {
  return out_.best.empty() ? std::numeric_limits<double>::infinity()
                           : wishes_.front_slowdown * out_.best.front().total();
}

/// Whether a plan with at least these bytes and seconds could be among the answers.
bool TrainSearcher::wanted(double memory, double time) const {
  if (time <= slowest_of_best())
    return true;
  return time <= slowest_of_front() && std::ranges::none_of(out_.front, [&](const TrainPlan& p) {
           return p.memory.device.total() <= memory && p.total() <= time;
         });
}

void TrainSearcher::try_node(const LayerSplit& cut, const TrainScenario& node) {
  ++out_.counts.nodes;
  if (least_states(cut, node.layout) + kFrameworkReserve > problem_.device_memory) {
    ++out_.counts.unfit;
    return;
  }
  const double bound = least_time(cut, node);
  if (bound > std::max(slowest_of_best(), slowest_of_front())) {
    ++out_.counts.slower;
    return;
  }
  const double memory = least_memory(node).device.total();
  if (memory > problem_.device_memory) {
    ++out_.counts.unfit;
    return;
  }
  if (!wanted(memory, bound)) {
    ++out_.counts.slower;
    return;
  }
  each_scenario(node, [&](const TrainScenario& s) { try_scenario(s, bound); });
}

void TrainSearcher::try_scenario(const TrainScenario& scenario, double bound) {
  ++out_.counts.scenarios;
  const PlacedLedger memory = plan_memory(problem_, scenario);
  if (!problem_.fits(memory))
    return;
  ++out_.counts.fitting;
  if (!wanted(memory.device.total(), bound))
    return;
  ++out_.counts.timed;
  const TrainPlan plan = price(problem_, scenario);
  keep_best(plan);
  keep_on_front(plan);
}

/// Layouts that keep every tensor and do not fit, fastest first, as long as they could be among the
/// best.
std::vector<TrainPlan> TrainSearcher::overfull() const {
  std::vector<TrainPlan> out;
  each_node(space_, [&](const LayerSplit& cut, const TrainScenario& node) {
    if (node.shape.recompute != Recompute::None ||
        least_states(cut, node.layout) + kFrameworkReserve > problem_.device_memory ||
        least_time(cut, node) > slowest_of_best())
      return;
    each_scenario(node, [&](const TrainScenario& s) {
      if (problem_.fits(plan_memory(problem_, s)))
        return;
      const TrainPlan plan = price(problem_, s);
      if (plan.total() <= slowest_of_best())
        out.push_back(plan);
    });
  });
  std::ranges::sort(out, faster);
  return out;
}

/// Dropping tensors only adds time, so the search stops at the first layout that is slower than the
/// best without dropping.
void TrainSearcher::choose_activations_of_the_fastest() {
  constexpr std::int64_t kMost =
      2000;  // For spaces where nothing fits without dropping; about two seconds.
  for (const TrainPlan& full : overfull()) {
    if (full.total() > slowest_of_best() || ++out_.counts.chosen > kMost)
      return;
    const auto& [layout, shape, state] = full.scenario;
    const Device device = device_under(shape.mechanisms, problem_.device);
    // The ledger of this choice has the optimizer on the device.
    const PlacedLedger& memory = full.memory;
    const auto plan = choose_activations({problem_.model, device, problem_.fabric, layout, shape},
                                         {problem_.device_memory + memory.host.optimizer,
                                          problem_.host_memory - memory.host.optimizer});
    if (!plan)
      continue;
    TrainScenario lighter = full.scenario;
    lighter.shape.activations = *plan;
    if (!problem_.fits(plan_memory(problem_, lighter)))
      continue;
    const TrainPlan priced = price(problem_, lighter);
    keep_best(priced);
    keep_on_front(priced);
  }
}

/// If nothing fits: the nearest plan.
void TrainSearcher::approach(const LayerSplit& cut, const TrainScenario& node) {
  const double known =
      out_.nearest ? fullness(out_.nearest->memory) : std::numeric_limits<double>::infinity();
  const double states = least_states(cut, node.layout) + kFrameworkReserve;
  if (states / problem_.device_memory >= known ||
      least_memory(node).device.total() / problem_.device_memory >= known)
    return;
  each_scenario(node, [&](const TrainScenario& s) {
    if (!out_.nearest || fullness(plan_memory(problem_, s)) < fullness(out_.nearest->memory))
      out_.nearest = price(problem_, s);
  });
}

void TrainSearcher::keep_best(const TrainPlan& plan) {
  std::vector<TrainPlan>& best = out_.best;
  const auto same = std::ranges::find_if(best, [&](const TrainPlan& other) {
    return same_cut(other.scenario.layout, plan.scenario.layout);
  });
  if (same != best.end()) {
    if (!faster(plan, *same))
      return;
    best.erase(same);
  }
  best.insert(std::ranges::upper_bound(best, plan, faster), plan);
  if (best.size() > wishes_.count)
    best.pop_back();
}

void TrainSearcher::keep_on_front(const TrainPlan& plan) {
  const double bytes = plan.memory.device.total();
  std::vector<TrainPlan>& front = out_.front;
  const auto covers = [](const TrainPlan& a, const TrainPlan& b) {
    const double a_bytes = a.memory.device.total();
    const double b_bytes = b.memory.device.total();
    if (a_bytes == b_bytes && a.total() == b.total())
      return !is_simpler(b, a);
    return a_bytes <= b_bytes && a.total() <= b.total();
  };
  if (std::ranges::any_of(front, [&](const TrainPlan& other) { return covers(other, plan); }))
    return;
  std::erase_if(front, [&](const TrainPlan& other) { return covers(plan, other); });
  const auto at = std::ranges::upper_bound(
      front, bytes, {}, [](const TrainPlan& p) { return p.memory.device.total(); });
  front.insert(at, plan);
}

}  // namespace

TrainSearch search_train(const TrainProblem& problem,
                         const TrainSpace& space,
                         const TrainShape& shape,
                         const TrainSearchOptions& wishes) {
  return TrainSearcher(problem, space, shape, wishes).run();
}

}  // namespace temper::sim_hw
