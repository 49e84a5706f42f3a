// Traffic patterns on the fluid model. Two machines: *flat*, one switch, 392 GB/s per device and
// direction and 1900 ns between devices (four hops of 475 ns); *contended*, nodes of 8 devices
// whose uplinks may be oversubscribed, 1200 ns inside a node and 1900 ns between nodes. SimGrid
// 3.32 simulated the same patterns; the tests compare with its results. Pure functions.
#pragma once

#include "core/describe.hpp"
#include "sim_hw/network/topology.hpp"

#include <array>

namespace temper::sim_hw {

/// 2 (n - 1) rounds; in each round device i sends bytes / n to i + 1.
double flat_ring_all_reduce_seconds(std::int64_t devices, double bytes);
/// n - 1 rounds; in round r device i sends bytes / n to i + r.
double flat_pairwise_all_to_all_seconds(std::int64_t devices, double bytes);
/// Every device sends bytes / n to each other device at once.
double flat_direct_all_to_all_seconds(std::int64_t devices, double bytes);

enum class Contention {
  AllToAll,          ///< Every device to every other, bytes / n each.
  ExpertBlocks,      ///< Blocks of 32 consecutive devices, all-to-all of bytes / 32 inside.
  WeightSync,        ///< T = n / 6 trainers; trainer t sends bytes to T k + t, k = 1..5.
  WeightsAndBlocks,  ///< Both, the blocks from device T on.
  Incast,            ///< bytes / n from every device to device 0.
  Random,            ///< bytes along a permutation.
};

struct ContentionResult {
  double end = 0;
  std::array<double, 2>
      group_end{};  ///< End of blocks and all other flows; end of weights. 0: no such flow.
  std::size_t flows = 0;
};
ContentionResult contended_seconds(Contention scenario,
                                   std::int64_t devices,
                                   double oversubscription,
                                   double bytes);

}  // namespace temper::sim_hw

template <>
struct temper::EnumNames<temper::sim_hw::Contention> {
  using E = sim_hw::Contention;
  static constexpr std::array<std::pair<E, std::string_view>, 6> value{
      {{E::AllToAll, "a2a"},
       {E::ExpertBlocks, "a2a_ep32"},
       {E::WeightSync, "wsync"},
       {E::WeightsAndBlocks, "wsync+ep32"},
       {E::Incast, "incast"},
       {E::Random, "rand"}}};
};
