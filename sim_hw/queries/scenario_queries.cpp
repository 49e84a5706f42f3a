// Request kinds computed as fluid flows over a described switch rather than over a hardware's
// links: the scenarios that SimGrid ran.
#include "sim_hw/network/scenarios.hpp"
#include "sim_hw/queries/explain.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/request/choice.hpp"

#include <fmt/format.h>

#include <array>

namespace temper::sim_hw {
namespace {

constexpr std::int64_t kMostFluidDevices =
    2048;  ///< A direct all-to-all has their square of flows.

template <auto Seconds>
Result<Cost> cost_of_flat(const CostContext&, const Request& r) {
  TEMPER_TRY(const std::int64_t npus, r.params.integer("npus"));
  TEMPER_TRY(const std::int64_t devices, in_range("npus", npus, 1, kMostFluidDevices));
  TEMPER_TRY(const double bytes, positive(r.params, "size_bytes"));
  return one_time(
      Seconds(devices, bytes),
      "fluid flows",
      fmt::format("max-min fair, one switch, {} devices, {:.6g} B each", devices, bytes));
}

Result<Cost> cost_of_contended(const CostContext&, const Request& r) {
  TEMPER_TRY(const Contention scenario, choice(r.params, "scenario", Contention::AllToAll));
  TEMPER_TRY(const std::int64_t npus, r.params.integer("npus", 64));
  TEMPER_TRY(const std::int64_t devices, in_range("npus", npus, 2, kMostFluidDevices));
  TEMPER_TRY(const double oversubscription, r.params.number("oversubscription", 1));
  if (!(oversubscription >= 1))
    return invalid_input(fmt::format("oversubscription={}: expected 1 or more", oversubscription));
  TEMPER_TRY(const double bytes, positive(r.params, "size_bytes"));
  const ContentionResult result = contended_seconds(scenario, devices, oversubscription, bytes);
  Cost out = one_time(result.end,
                      "fluid flows",
                      fmt::format("max-min fair, {} flows of {} devices in nodes of 8, {:.6g} B, "
                                  "uplinks oversubscribed {}:1",
                                  result.flows,
                                  devices,
                                  bytes,
                                  oversubscription));
  out.metrics.push_back({"group0_end", "s", result.group_end[0], {}});
  out.metrics.push_back({"group1_end", "s", result.group_end[1], {}});
  return out;
}

constexpr std::array kScenarioKinds{
    Kind{"contended",
         "A traffic pattern on nodes of 8 with oversubscribed uplinks, as fluid flows.",
         "scenario=a2a|a2a_ep32|wsync|wsync+ep32|incast|rand; npus=64; oversubscription=1; "
         "size_bytes",
         cost_of_contended},
    Kind{"flat_direct_a2a",
         "All-to-all at once through one switch, as fluid flows.",
         "npus; size_bytes",
         cost_of_flat<flat_direct_all_to_all_seconds>},
    Kind{"flat_pairwise_a2a",
         "All-to-all in n - 1 rounds through one switch, as fluid flows.",
         "npus; size_bytes",
         cost_of_flat<flat_pairwise_all_to_all_seconds>},
    Kind{"flat_ring_ar",
         "Ring all-reduce through one switch, as fluid flows.",
         "npus; size_bytes",
         cost_of_flat<flat_ring_all_reduce_seconds>},
};

}  // namespace

std::span<const Kind> scenario_kinds() {
  return kScenarioKinds;
}

}  // namespace temper::sim_hw
