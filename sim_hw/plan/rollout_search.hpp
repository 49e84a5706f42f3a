// Finds the rollout engine layouts with the most tokens per second on a cluster, within its memory
// and a limit on the time per token.
//
// An engine has as many devices as tp and ep need, in whole cards; the cluster holds as many
// engines as fit. Each replica (tp devices) runs `slots` responses at all times:
//   step    parallel_decode_seconds() of `slots` sequences at the mean context of running responses
//           c = prompt + E[r^2] / (2 E[r]), for response lengths r: longer ones run for longer
//   token   step + slots / E[r] x prompt / prefill_tokens x one prefill pass of prefill_tokens
//   tokens/s = slots / token, for every replica
// Memory, as in actors/simulation/role_memory.hpp: weights, prefill working set, logits, the bucket
// of a publication; the rest is KV cache. It must hold slots c + 2 s sqrt(slots) tokens, where s is
// the standard deviation of a running response's context, and one longest response; otherwise
// responses are preempted. An engine stages the next version's weights in host memory. Assumed:
// trainer and reference are on other devices; no prefix is shared; bf16. Searched: every tp that
// divides the heads, every ep that divides the experts, every number of slots up to 128, then in
// steps of a 128th. Constants: of the hardware. Pure functions.
#pragma once

#include "sim_hw/hardware/hardware_spec.hpp"
#include "sim_hw/iteration/lengths.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/network/collectives.hpp"
#include "sim_hw/operators/device.hpp"
#include "sim_hw/steps/step_cost.hpp"

#include <array>
#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

namespace temper::sim_hw {

/// Responses that a cache of `kv_tokens` holds at once, with two standard deviations to spare; 0 if
/// it cannot hold one.
std::int64_t slots_in(const RolloutLengths& lengths, double kv_tokens);

/// Whether new weights arrive from other cards and are staged in host memory.
enum class WeightStaging { Host, None };

/// A model on the devices of a hardware. Computed once.
struct RolloutProblem {
  RolloutProblem(const ModelSpec& served, const HardwareSpec& spec, std::int64_t cards);

  ModelSpec model;               ///< Without MTP modules.
  const HardwareSpec& hardware;  ///< Borrowed.
  Device device;
  Fabric fabric;
  std::int64_t devices;
  double device_memory;
  double host_memory;  ///< A device's share of its node's memory.
  RolloutLengths lengths;
  double prefill_tokens = 8192;  ///< Per prefill pass and replica.
  double block = 128;            ///< Tokens per KV cache block.
  WeightStaging staging = WeightStaging::Host;
  std::optional<double> max_token_seconds;
};

struct RolloutScenario {
  std::int64_t tp = 1;
  std::int64_t ep = 1;
  std::int64_t engine_devices = 1;
  std::int64_t slots = 1;  ///< Per replica.

  std::int64_t replicas() const { return engine_devices / tp; }
};

struct RolloutPlan {
  RolloutScenario scenario;
  std::int64_t engines = 0;
  std::array<double, kOps> step{};  ///< Seconds of a decode step, by operator.
  double step_seconds = 0;
  double prefill = 0;    ///< Seconds of prefill per decode step.
  double kv_share = 0;   ///< Share of the memory beside the weights that holds keys and values.
  double kv_tokens = 0;  ///< Per replica.
  PlacedLedger memory;   ///< Per device.

  double token_seconds() const { return step_seconds + prefill; }
  /// Slots of all engines.
  std::int64_t all_slots() const { return engines * scenario.replicas() * scenario.slots; }
  double tokens_per_second() const;
  /// Summands of token_seconds(), by name.
  std::vector<std::pair<std::string_view, double>> entries() const;
  /// Device time per token of the cluster, devices / tokens_per_second(), by the same names, plus
  /// the waste of devices in no engine.
  std::vector<std::pair<std::string_view, double>> device_entries(std::int64_t devices) const;
};

/// None: the layout does not divide the model, or the slots do not fit the memory.
std::optional<RolloutPlan> price(const RolloutProblem& problem, const RolloutScenario& scenario);

struct RolloutSpace {
  std::vector<std::int64_t> tp, ep;
  std::optional<std::int64_t>
      engine_devices;                 ///< None: the size that tp and ep need, in whole cards.
  std::optional<std::int64_t> slots;  ///< None: all numbers.
};
RolloutSpace full_rollout_space(const RolloutProblem& problem);

struct RolloutSearch {
  std::vector<RolloutPlan> best;  ///< Most tokens/s first, each with another tp and ep.
  std::vector<RolloutPlan>
      front;  ///< Pareto front: more tokens/s than any plan with less time per token.
  std::optional<RolloutPlan>
      nearest;  ///< If all are too slow: the one with the least time per token.
  std::optional<RolloutPlan> least;  ///< If none fits: the smallest memory with the fewest slots.
  std::int64_t scenarios = 0;        ///< Number of priced scenarios.
};
RolloutSearch search_rollout(const RolloutProblem& problem,
                             const RolloutSpace& space,
                             std::size_t count = 3);

}  // namespace temper::sim_hw
