#include "sim_hw/plan/rollout_search.hpp"

#include "sim_hw/model/numbers.hpp"
#include "sim_hw/plan/plan_words.hpp"
#include "sim_hw/steps/parallel_decode.hpp"
#include "sim_hw/steps/rollout_layout.hpp"
#include "sim_hw/steps/step_model.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <tuple>

namespace temper::sim_hw {
namespace {

constexpr double kBucket =
    1e9;  ///< Publication bucket in bytes, as in actors/simulation/role_memory.hpp.
constexpr double kDeviations = 2;
constexpr std::int64_t kEverySlot = 128;

struct PartsSink {
  std::array<double, kOps> seconds{};
  void operator()(Op op, Pass, double count, double each, OpSizes) {
    seconds[static_cast<std::size_t>(op)] += count * each;
  }
};

/// One layout of an engine: the part that does not depend on the slots.
struct Engine {
  RolloutScenario scenario;
  RolloutLayout layout;
  StepModel model;
  double prefill_pass = 0;
  double kv_token_bytes = 0;
};

Engine make_engine(const RolloutProblem& p, const RolloutScenario& scenario) {
  Engine e;
  e.scenario = scenario;
  e.layout.tp = as_double(scenario.tp);
  e.layout.ep = as_double(scenario.ep);
  e.layout.dp = e.layout.ep / e.layout.tp;  // Replicas whose tokens reach a device's experts.
  e.model = make_step_model(p.model, e.layout.tp, e.layout.ep);
  const double tokens = p.prefill_tokens;
  SumSink sum;
  visit_layers(p.device,
               e.model,
               {tokens, tokens * e.layout.dp, e.model.experts, false},
               Pass::Forward,
               sum);
  visit_attention(p.device,
                  e.model,
                  tokens / std::max(1.0, p.lengths.prompt),
                  std::max(1.0, p.lengths.prompt),
                  Pass::Forward,
                  sum);
  visit_rollout_exchanges(p.fabric, e.model, e.layout, tokens, sum);
  e.prefill_pass = sum.seconds;
  Layout cut;
  cut.tp = scenario.tp;
  e.kv_token_bytes = kv_bytes_per_token(p.model, cut);
  return e;
}

/// Bytes of a device with `slots`, and bytes left for keys and values.
struct EngineMemory {
  PlacedLedger placed;
  double share = 0;
  double tokens = 0;
};

EngineMemory engine_memory(const RolloutProblem& p, const Engine& e, std::int64_t slots) {
  Layout shards;
  shards.tp = e.scenario.tp;
  shards.ep = e.scenario.ep;
  shards.dp = e.scenario.replicas();
  InferenceShape shape;
  shape.batch_tokens = p.prefill_tokens;
  shape.logit_rows = as_double(slots);
  EngineMemory out;
  Ledger& device = out.placed.device;
  device = inference_ledger(p.model, shards, shape);
  if (p.staging == WeightStaging::Host) {
    device.communication = std::min(kBucket, device.weights);
    out.placed.host.weights = device.weights;
  }
  const double left = p.device_memory - device.weights;
  const double room = p.device_memory - device.total();
  out.share = left > 0 ? std::floor(100 * room / left) / 100 : 0;
  const double blocks = std::max(0.0, std::floor(out.share * left / (e.kv_token_bytes * p.block)));
  out.tokens = blocks * p.block;
  device.kv_cache = out.tokens * e.kv_token_bytes;
  return out;
}

double needed_tokens(const RolloutLengths& lengths, std::int64_t slots) {
  const double n = as_double(slots);
  return std::max(lengths.longest,
                  n * lengths.context + kDeviations * lengths.spread * std::sqrt(n));
}

bool holds(const RolloutProblem& p, const EngineMemory& memory, std::int64_t slots) {
  return memory.tokens >= needed_tokens(p.lengths, slots) &&
         memory.placed.device.total() <= p.device_memory &&
         memory.placed.host.total() <= p.host_memory;
}

RolloutPlan price_engine(const RolloutProblem& p, const Engine& e, std::int64_t slots) {
  RolloutPlan plan;
  plan.scenario = e.scenario;
  plan.scenario.slots = slots;
  plan.engines = p.devices / e.scenario.engine_devices;
  const double n = as_double(slots);
  PartsSink parts;
  visit_parallel_decode(p.device, p.fabric, e.model, e.layout, {n, n, p.lengths.context}, parts);
  plan.step = parts.seconds;
  plan.step_seconds = std::accumulate(plan.step.begin(), plan.step.end(), 0.0);
  plan.prefill = n / p.lengths.response * p.lengths.prompt / p.prefill_tokens * e.prefill_pass;
  const EngineMemory memory = engine_memory(p, e, slots);
  plan.kv_share = memory.share;
  plan.kv_tokens = memory.tokens;
  plan.memory = memory.placed;
  return plan;
}

/// The smallest engine of whole cards that tp and ep divide.
std::int64_t engine_devices(const RolloutProblem& p,
                            const RolloutSpace& space,
                            std::int64_t tp,
                            std::int64_t ep) {
  return space.engine_devices.value_or(std::lcm(std::lcm(tp, ep), p.hardware.dies_per_card));
}

bool cuts_evenly(const RolloutProblem& p, const RolloutScenario& s) {
  return s.engine_devices <= p.devices && s.engine_devices % p.hardware.dies_per_card == 0 &&
         s.engine_devices % s.tp == 0 &&
         check_rollout_layout(p.model,
                              p.hardware,
                              s.engine_devices / p.hardware.dies_per_card,
                              {s.tp, s.replicas(), s.ep})
             .has_value();
}

bool better(const RolloutPlan& a, const RolloutPlan& b) {
  const auto order = [](const RolloutPlan& p) {
    const RolloutScenario& s = p.scenario;
    return std::tuple(
        -p.tokens_per_second(), p.token_seconds(), s.engine_devices, s.tp, s.ep, s.slots);
  };
  return order(a) < order(b);
}

class RolloutSearcher {
 public:
  RolloutSearcher(const RolloutProblem& problem, const RolloutSpace& space, std::size_t count)
      : problem_(problem), space_(space), count_(count) {}

  RolloutSearch run() {
    for (const std::int64_t tp : space_.tp) {
      for (const std::int64_t ep : space_.ep) {
        const RolloutScenario s{tp, ep, engine_devices(problem_, space_, tp, ep), 1};
        if (cuts_evenly(problem_, s))
          try_engine(make_engine(problem_, s));
      }
    }
    if (!out_.best.empty()) {
      out_.nearest.reset();
      out_.least.reset();
    }
    return std::move(out_);
  }

 private:
  void try_engine(const Engine& engine) {
    const std::int64_t first = space_.slots.value_or(1);
    approach(engine, first);
    for (std::int64_t slots = first;; slots += std::max<std::int64_t>(1, slots / kEverySlot)) {
      if (!holds(problem_, engine_memory(problem_, engine, slots), slots))
        return;
      consider(price_engine(problem_, engine, slots));
      if (space_.slots)
        return;
    }
  }

  /// Records the memory of `slots` per replica, whether it fits or not, if it is the least so far.
  void approach(const Engine& engine, std::int64_t slots) {
    RolloutPlan plan = price_engine(problem_, engine, slots);
    plan.memory.device.kv_cache = needed_tokens(problem_.lengths, slots) * engine.kv_token_bytes;
    const auto fullness = [&](const PlacedLedger& m) {
      return std::max(m.device.total() / problem_.device_memory,
                      m.host.total() / problem_.host_memory);
    };
    if (!out_.least || fullness(plan.memory) < fullness(out_.least->memory))
      out_.least = plan;
  }

  void consider(const RolloutPlan& plan) {
    ++out_.scenarios;
    if (!out_.nearest || plan.token_seconds() < out_.nearest->token_seconds())
      out_.nearest = plan;
    if (problem_.max_token_seconds && plan.token_seconds() > *problem_.max_token_seconds)
      return;
    keep_best(plan);
    keep_on_front(plan);
  }

  void keep_best(const RolloutPlan& plan) {
    std::vector<RolloutPlan>& best = out_.best;
    const auto same = std::ranges::find_if(best, [&](const RolloutPlan& p) {
      return p.scenario.tp == plan.scenario.tp && p.scenario.ep == plan.scenario.ep;
    });
    if (same != best.end()) {
      if (!better(plan, *same))
        return;
      best.erase(same);
    }
    best.insert(std::ranges::upper_bound(best, plan, better), plan);
    if (best.size() > count_)
      best.pop_back();
  }

  void keep_on_front(const RolloutPlan& plan) {
    std::vector<RolloutPlan>& front = out_.front;
    const auto covers = [](const RolloutPlan& a, const RolloutPlan& b) {
      return a.token_seconds() <= b.token_seconds() &&
             a.tokens_per_second() >= b.tokens_per_second();
    };
    if (std::ranges::any_of(front, [&](const RolloutPlan& p) { return covers(p, plan); }))
      return;
    std::erase_if(front, [&](const RolloutPlan& p) { return covers(plan, p); });
    front.insert(
        std::ranges::upper_bound(front, plan.token_seconds(), {}, &RolloutPlan::token_seconds),
        plan);
  }

  const RolloutProblem& problem_;
  const RolloutSpace& space_;
  const std::size_t count_;
  RolloutSearch out_;
};

}  // namespace

std::int64_t slots_in(const RolloutLengths& lengths, double kv_tokens) {
  if (kv_tokens < lengths.longest)
    return 0;
  // n context + 2 spread sqrt(n) <= tokens, solved for sqrt(n).
  const double half = kDeviations * lengths.spread / 2;
  const double root =
      (std::sqrt(half * half + lengths.context * kv_tokens) - half) / lengths.context;
  return static_cast<std::int64_t>(root * root + 1e-9);
}

RolloutProblem::RolloutProblem(const ModelSpec& served,
                               const HardwareSpec& spec,
                               std::int64_t cards)
    : model(served),
      hardware(spec),
      device(make_device(spec)),
      fabric(make_fabric(spec)),
      devices(cards * spec.dies_per_card),
      device_memory(device.memory),
      host_memory(as_double(spec.host.memory.count()) / as_double(spec.devices_per_node())) {
  model.mtp_layers = 0;
}

double RolloutPlan::tokens_per_second() const {
  return as_double(all_slots()) / token_seconds();
}

std::vector<std::pair<std::string_view, double>> RolloutPlan::entries() const {
  const auto of = [&](std::initializer_list<Op> ops) {
    double sum = 0;
    for (const Op op : ops)
      sum += step[static_cast<std::size_t>(op)];
    return sum;
  };
  return {{"matrix products",
           of({Op::QkvProjection,
               Op::QueryDown,
               Op::QueryUp,
               Op::KeyValueDown,
               Op::KeyValueUp,
               Op::OutputProjection,
               Op::GateUp,
               Op::Down,
               Op::Router,
               Op::SharedExperts,
               Op::Head})},
          {"attention", of({Op::Attention})},
          {"routed experts", of({Op::Experts})},
          {"elementwise and sampling", of({Op::Elementwise, Op::Sampling})},
          {"tensor-parallel communication", of({Op::TensorParallel})},
          {"dispatch to experts", of({Op::Dispatch})},
          {"combine", of({Op::Combine})},
          {"prefill of prompts", prefill}};
}

std::vector<std::pair<std::string_view, double>> RolloutPlan::device_entries(
    std::int64_t devices) const {
  const std::int64_t used = engines * scenario.engine_devices;
  auto out = entries();
  for (auto& [name, seconds] : out)
    seconds *= as_double(used) / as_double(all_slots());
  out.emplace_back("devices in no engine", as_double(devices - used) / tokens_per_second());
  return out;
}

std::optional<RolloutPlan> price(const RolloutProblem& problem, const RolloutScenario& scenario) {
  if (!cuts_evenly(problem, scenario))
    return std::nullopt;
  const Engine engine = make_engine(problem, scenario);
  if (!holds(problem, engine_memory(problem, engine, scenario.slots), scenario.slots))
    return std::nullopt;
  return price_engine(problem, engine, scenario.slots);
}

RolloutSpace full_rollout_space(const RolloutProblem& problem) {
  RolloutSpace space;
  space.tp = divisors_up_to(problem.model.heads, problem.devices);
  space.ep = problem.model.moe ? divisors_up_to(problem.model.moe->experts, problem.devices)
                               : std::vector<std::int64_t>{1};
  return space;
}

RolloutSearch search_rollout(const RolloutProblem& problem,
                             const RolloutSpace& space,
                             std::size_t count) {
  return RolloutSearcher(problem, space, count).run();
}

}  // namespace temper::sim_hw
