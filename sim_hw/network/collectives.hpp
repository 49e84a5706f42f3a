// Closed-form costs of collectives and transfers. Pure functions of doubles in SI units (seconds,
// bytes), without allocation; tens of nanoseconds each. Safe on any thread.
//
// Assumptions. Ranks are devices 0, stride, 2 stride, ... Ranks inside a node exchange directly
// with each other, over each level's own port. Above the node one copy crosses each level per unit,
// spread over the ports of its ranks, and is forwarded inside (outermost level first). Ports work
// at the same time unless a level shares the port of the one below. There is no other traffic; for
// shared links use sim_hw/network/fluid.hpp.
//
// Equation. g_l: ranks inside one unit of level l; k_l = g_l / g_(l-1); B_l: bandwidth of a device
// at level l over its oversubscription. For an all-gather of m bytes per rank, G = g_node:
//   b_l = (g_l - g_(l-1)) m n / G    inside the node
//   b_l = (k_l - 1) m n / g_l        above it
//   y = max over ports of sum b_l / (efficiency B_l)
//   t = start_up + per_peer (G - 1) + sum above the node of ceil(log2 k_l) (step + latency_l)
//       + y + 2 sqrt(segment y)
// The last term is the cost of filling a pipeline with the best number of segments. Messages of at
// most small_limit bytes per rank take t = small_start_up + y', with their own efficiency. Larger
// ones take at least bulk_floor (with 8 ranks or more; in proportion to the peers with fewer).
// All-reduce = reduce-scatter + all-gather of bytes / n each. Inside a node whose switches reduce,
// every port carries (1 + 1/n) bytes once.
//
// MoE dispatch and combine: b_l is the traffic that crosses level l. With T tokens of k experts
// each, C copies leave a rank (k, or fewer if one copy serves several experts of a device):
//   flat          (g_l - g_(l-1)) / n x C T at each level
//   hierarchical  above the node one copy per node that needs the token, D = N (1 - (1 - 1/N)^k)
//     of N nodes, forwarded inside while others arrive
//   gathered      above the node every token to every node, (N - 1) T; then, after it, C T inside:
//     an all-gather and an all-to-all with a start-up each
//
// Constants: configs/hardware/*.yaml `constants.collectives`, with their fits. HCCL: one Atlas A3
// node, 8 and 16 ranks, 1 KiB to 40 MiB per rank. NCCL: one H100 node, 8 ranks, 2 MB to 512 MB.
// Valid in these ranges; other rank counts and traffic between nodes are extrapolations.
#pragma once

#include "sim_hw/hardware/hardware_spec.hpp"

#include <array>
#include <cstdint>

namespace temper::sim_hw {

struct OperationCost {
  double start_up = 0;
  double per_peer = 0;
  double slowdown = 1;  ///< 1 / efficiency.
  double segment = 0;
};

/// The doubles of a HardwareSpec that the functions below use. Computed once.
struct Fabric {
  struct Level {
    double devices = 1;           ///< Devices that one unit of this level joins.
    double seconds_per_byte = 0;  ///< For one device's port, including oversubscription.
    double latency = 0;
    bool shared_port = false;  ///< Shares the port of the level below.
  };
  static constexpr std::size_t kMaxLevels = 6;
  std::array<Level, kMaxLevels> levels{};
  std::size_t level_count = 0;
  std::size_t node_levels = 0;  ///< Levels up to and including the node.
  OperationCost all_gather, reduce_scatter, all_reduce, all_to_all, dispatch, combine, p2p;
  bool in_switch_reduction = false;
  double small_limit = 0;
  double small_start_up = 0;
  double small_slowdown = 1;
  double bulk_floor = 0;
  double to_device = 0;    ///< Seconds per byte, host to device.
  double from_device = 0;  ///< Seconds per byte, device to host.
  double host_latency = 0;
  double memory = 0;  ///< Seconds per byte of HBM traffic.
};
Fabric make_fabric(const HardwareSpec& spec);

/// Bytes by the fabric level that they cross.
struct LevelBytes {
  std::array<double, Fabric::kMaxLevels> at{};

  LevelBytes& add(const LevelBytes& other, double times = 1) {
    for (std::size_t l = 0; l < at.size(); ++l)
      at[l] += times * other.at[l];
    return *this;
  }
  double total() const {
    double sum = 0;
    for (const double bytes : at)
      sum += bytes;
    return sum;
  }
};

/// `stride`: distance of neighboring device ids, e.g. the TP size for a data-parallel group.
struct Group {
  std::int64_t ranks = 1;
  std::int64_t stride = 1;
};

/// Every rank contributes `bytes_per_rank` and ends with ranks x bytes_per_rank.
double all_gather_seconds(const Fabric& fabric, Group group, double bytes_per_rank);
/// Every rank contributes ranks x bytes_per_rank and ends with bytes_per_rank, reduced.
double reduce_scatter_seconds(const Fabric& fabric, Group group, double bytes_per_rank);

enum class AllReduce { Auto, Ring, Tree };
/// Every rank contributes `bytes` and ends with `bytes`, reduced.
double all_reduce_seconds(const Fabric& fabric,
                          Group group,
                          double bytes,
                          AllReduce how = AllReduce::Auto);

/// Gathered: every token to every node first, then an exchange inside each node.
enum class AllToAll { Flat, Hierarchical, Gathered };
/// Every rank sends `bytes_per_rank` in total, 1 / ranks of it to each rank including itself.
double all_to_all_seconds(const Fabric& fabric,
                          Group group,
                          double bytes_per_rank,
                          AllToAll how = AllToAll::Flat);

/// `bytes` between two devices whose ids differ by `distance`; 0: same device, no cost.
double p2p_seconds(const Fabric& fabric, std::int64_t distance, double bytes);
/// One rank sends `bytes` to all others in a pipelined tree.
double broadcast_seconds(const Fabric& fabric, Group group, double bytes);

enum class FanOut { Direct, Tree };
/// A source sends `bytes` to each of group.ranks - 1 receivers. Direct: its port carries every
/// copy.
double weight_fan_out_seconds(const Fabric& fabric, Group group, double bytes, FanOut how);
/// group.ranks - 1 senders send `bytes_per_rank` each to one receiver.
double incast_seconds(const Fabric& fabric, Group group, double bytes_per_rank);

/// Tokens of one rank on their way to experts. Experts are placed evenly and chosen evenly.
struct MoeTraffic {
  double tokens_per_rank = 0;
  double top_k = 1;
  double bytes_per_token = 0;  ///< Bytes of one copy.
  double sent = 1;  ///< Share of the top_k copies that is sent; one copy may serve several experts.
};
/// Mean number of distinct devices, out of `ranks`, that hold the top_k of `experts`: the copies
/// that remain when those for one device are sent once. Requires: ranks divides experts.
double distinct_devices(double ranks, double experts, double top_k);
/// Flat: direct copies. Hierarchical: one copy per node, then forwarding inside. Gathered: every
/// token to every node, then an exchange inside.
double moe_dispatch_seconds(const Fabric& fabric,
                            Group group,
                            MoeTraffic traffic,
                            AllToAll how = AllToAll::Flat);
double moe_combine_seconds(const Fabric& fabric,
                           Group group,
                           MoeTraffic traffic,
                           AllToAll how = AllToAll::Flat);
/// Bytes that each rank sends (and receives, by symmetry) in the operations above, by level: the
/// bytes that their equations price, including forwarding inside a node.
LevelBytes all_gather_traffic(const Fabric& fabric, Group group, double bytes_per_rank);
LevelBytes reduce_scatter_traffic(const Fabric& fabric, Group group, double bytes_per_rank);
LevelBytes all_reduce_traffic(const Fabric& fabric, Group group, double bytes);
LevelBytes p2p_traffic(const Fabric& fabric, std::int64_t distance, double bytes);
/// Bytes that a dispatch or a combine sends over each level.
LevelBytes moe_traffic(const Fabric& fabric,
                       Group group,
                       MoeTraffic traffic,
                       AllToAll how = AllToAll::Flat);

/// The alternative to dispatch: all-gather every token, then each rank picks its own from HBM.
double moe_all_gather_seconds(const Fabric& fabric, Group group, MoeTraffic traffic);

/// One copy between a device and the memory of its host.
double to_device_seconds(const Fabric& fabric, double bytes);
double from_device_seconds(const Fabric& fabric, double bytes);

}  // namespace temper::sim_hw

template <>
struct temper::EnumNames<temper::sim_hw::AllReduce> {
  using E = sim_hw::AllReduce;
  static constexpr std::array<std::pair<E, std::string_view>, 3> value{
      {{E::Auto, "auto"}, {E::Ring, "ring"}, {E::Tree, "tree"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::AllToAll> {
  using E = sim_hw::AllToAll;
  static constexpr std::array<std::pair<E, std::string_view>, 3> value{
      {{E::Flat, "flat"}, {E::Hierarchical, "hierarchical"}, {E::Gathered, "gathered"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::FanOut> {
  using E = sim_hw::FanOut;
  static constexpr std::array<std::pair<E, std::string_view>, 2> value{
      {{E::Tree, "tree"}, {E::Direct, "direct"}}};
};
