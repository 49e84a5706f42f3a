#include "sim_hw/network/collectives.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace temper::sim_hw {
namespace {

OperationCost cost_of(const CollectiveOperation& constants) {
  return {seconds(constants.start_up),
          seconds(constants.per_peer),
          1 / constants.efficiency,
          seconds(constants.segment)};
}

double seconds_per_byte(BytesPerSecond bandwidth) {
  return bandwidth.count() > 0 ? 1 / bandwidth.count() : 0;
}

constexpr double kNoLimit = 1e18;  ///< Devices of a level that joins all.

double steps_of_tree(double units) {
  const auto whole = static_cast<std::uint64_t>(std::ceil(units - 1e-9));
  return whole <= 1 ? 0 : static_cast<double>(std::bit_width(whole - 1));
}

/// The number of ranks of a group inside one unit of each level, up to the level that holds them
/// all.
struct Reach {
  Reach(const Fabric& fabric, Group group)
      : n(static_cast<double>(std::max<std::int64_t>(1, group.ranks))), node(n) {
    const double per_device = 1 / static_cast<double>(std::max<std::int64_t>(1, group.stride));
    double inner = 1;
    while (levels < fabric.level_count && inner < n) {
      const bool last = levels + 1 == fabric.level_count;  // It joins all devices.
      const double held = std::floor(fabric.levels[levels].devices * per_device + 1e-9);
      inner = last ? n : std::min(std::max(held, inner), n);
      ranks[levels++] = inner;
      if (levels == fabric.node_levels)
        node = inner;
    }
    if (fabric.node_levels == 0)
      node = 1;
  }
  double inside(std::size_t level) const { return level == 0 ? 1 : ranks[level - 1]; }

  double n;
  double node;  ///< Ranks in one node.
  std::size_t levels = 0;
  std::array<double, Fabric::kMaxLevels> ranks{};
};

/// Seconds of the busiest port if each level carries `bytes(level)` per device.
template <class BytesOfLevel>
double busiest_port(const Fabric& fabric, const Reach& reach, const BytesOfLevel& bytes) {
  double worst = 0;
  double port = 0;
  for (std::size_t l = 0; l < reach.levels; ++l) {
    port = fabric.levels[l].shared_port ? port : 0;
    port += bytes(l) * fabric.levels[l].seconds_per_byte;
    worst = std::max(worst, port);
  }
  return worst;
}

/// The same bytes, by level.
template <class BytesOfLevel>
LevelBytes bytes_of_levels(const Reach& reach, const BytesOfLevel& bytes) {
  LevelBytes out;
  for (std::size_t l = 0; l < reach.levels; ++l)
    out.at[l] = bytes(l);
  return out;
}

/// Latency of tree steps between nodes.
double start_between_nodes(const Fabric& fabric, const Reach& reach) {
  double start = 0;
  for (std::size_t l = fabric.node_levels; l < reach.levels; ++l) {
    start += steps_of_tree(reach.ranks[l] / reach.inside(l)) *
             (fabric.p2p.start_up + fabric.levels[l].latency);
  }
  return start;
}

double with_pipeline(double transfer, double segment) {
  return segment > 0 ? transfer + 2 * std::sqrt(segment * transfer) : transfer;
}

/// Bytes of an all-gather of `bytes` per rank, or of its mirror image, a reduce-scatter.
struct GatherBytes {
  const Fabric& fabric;
  const Reach& reach;
  double bytes;

  double operator()(std::size_t l) const {
    if (l < fabric.node_levels)
      return (reach.ranks[l] - reach.inside(l)) * bytes * reach.n / reach.node;
    return (reach.ranks[l] / reach.inside(l) - 1) * bytes * reach.n / reach.ranks[l];
  }
};

double gather_port(const Fabric& fabric, const Reach& reach, double bytes) {
  return busiest_port(fabric, reach, GatherBytes{fabric, reach, bytes});
}

double least_bulk(const Fabric& fabric, const Reach& reach) {
  return fabric.bulk_floor * std::min(1.0, (reach.n - 1) / 7);
}

/// `between`: start_between_nodes(); `port`: seconds of the busiest port at full bandwidth.
double bulk(const Fabric& fabric,
            const OperationCost& cost,
            const Reach& reach,
            double between,
            double port) {
  const double time = cost.start_up + cost.per_peer * (reach.node - 1) + between +
                      with_pipeline(port * cost.slowdown, cost.segment);
  return std::max(time, least_bulk(fabric, reach));
}

/// Cost of one operation, or of two in sequence.
template <class... Costs>
double gather(const Fabric& fabric, Group group, double bytes, const Costs&... costs) {
  if (group.ranks <= 1 || fabric.level_count == 0)
    return 0;
  const Reach reach(fabric, group);
  const double between = start_between_nodes(fabric, reach);
  const double port = gather_port(fabric, reach, bytes);
  if (bytes > fabric.small_limit)
    return (bulk(fabric, costs, reach, between, port) + ...);
  const double small = fabric.small_start_up + between + port * fabric.small_slowdown;
  if (small <= least_bulk(fabric, reach))
    return sizeof...(costs) * small;
  const double port_at_limit = gather_port(fabric, reach, fabric.small_limit);
  return (std::min(small, bulk(fabric, costs, reach, between, port_at_limit)) + ...);
}

/// The port of one device sends to (or receives from) each other device, `bytes` each.
double one_to_each(const Fabric& fabric, Group group, double bytes) {
  if (group.ranks <= 1 || fabric.level_count == 0)
    return 0;
  const Reach reach(fabric, group);
  const double latency = fabric.levels[reach.levels - 1].latency;
  const double port = busiest_port(
      fabric, reach, [&](std::size_t l) { return (reach.ranks[l] - reach.inside(l)) * bytes; });
  return fabric.p2p.start_up + latency + port * fabric.p2p.slowdown;
}

/// Each rank sends `copies` of `bytes` to evenly drawn ranks; `node_copies` of them cross nodes.
/// Forwarding inside a node: data from other nodes crosses the port of another rank there.
struct Spread {
  double copies = 0;
  double node_copies = 0;
  double bytes = 0;
  AllToAll how = AllToAll::Flat;
};

struct SpreadBytes {
  const Fabric& fabric;
  const Reach& reach;
  const Spread& spread;

  double operator()(std::size_t l) const {
    const double others = reach.ranks[l] - reach.inside(l);
    if (l >= fabric.node_levels)
      return others / reach.n * spread.node_copies * spread.bytes;
    const bool combined = spread.how != AllToAll::Flat;
    return others / (combined ? reach.node : reach.n) * spread.copies * spread.bytes;
  }
};

/// First between nodes, then inside, each with the cost of an operation.
double exchange_in_two_steps(const Fabric& fabric,
                             const OperationCost& cost,
                             const Reach& reach,
                             const Spread& spread) {
  const SpreadBytes bytes{fabric, reach, spread};
  const double between = busiest_port(
      fabric, reach, [&](std::size_t l) { return l < fabric.node_levels ? 0 : bytes(l); });
  const double inside = busiest_port(
      fabric, reach, [&](std::size_t l) { return l < fabric.node_levels ? bytes(l) : 0; });
  const auto step = [&](double peers, double port) {
    return cost.start_up + cost.per_peer * peers +
           with_pipeline(port * cost.slowdown, cost.segment);
  };
  double time = step(reach.n / reach.node - 1, between) + fabric.p2p.start_up +
                fabric.levels[reach.levels - 1].latency;
  if (reach.node > 1)
    time += step(reach.node - 1, inside);
  return time;
}

double exchange(const Fabric& fabric, const OperationCost& cost, Group group, Spread spread) {
  if (group.ranks <= 1 || fabric.level_count == 0)
    return 0;
  const Reach reach(fabric, group);
  if (spread.how == AllToAll::Gathered && reach.n > reach.node)
    return exchange_in_two_steps(fabric, cost, reach, spread);
  const double in_node = reach.node;
  const bool combined = spread.how == AllToAll::Hierarchical;
  const double port = busiest_port(fabric, reach, SpreadBytes{fabric, reach, spread});
  const double messages = combined ? in_node - 1 + reach.n / in_node - 1 : reach.n - 1;
  double start = cost.start_up + cost.per_peer * messages;
  if (reach.n > in_node)
    start += fabric.p2p.start_up + fabric.levels[reach.levels - 1].latency;
  return start + with_pipeline(port * cost.slowdown, cost.segment);
}

Spread spread_of(const Fabric& fabric, Group group, MoeTraffic traffic, AllToAll how) {
  const double copies = traffic.tokens_per_rank * traffic.top_k * traffic.sent;
  if (how == AllToAll::Flat || group.ranks <= 1)
    return {copies, copies, traffic.bytes_per_token, how};
  const Reach reach(fabric, group);
  const double nodes = std::max(1.0, reach.n / reach.node);
  if (how == AllToAll::Gathered)  // A share of 1 / nodes is already in place.
    return {copies, traffic.tokens_per_rank * nodes, traffic.bytes_per_token, how};
  // Distinct nodes among top_k even draws.
  const double distinct = nodes * (1 - std::pow(1 - 1 / nodes, traffic.top_k));
  return {
      copies, std::min(copies, traffic.tokens_per_rank * distinct), traffic.bytes_per_token, how};
}

/// The level that joins two devices whose ids differ by `distance`.
std::size_t level_across(const Fabric& fabric, std::int64_t distance) {
  const auto apart = static_cast<double>(distance < 0 ? -distance : distance);
  std::size_t l = 0;
  while (l + 1 < fabric.level_count && fabric.levels[l].devices <= apart)
    ++l;
  return l;
}

/// Every port carries the bytes once, and its share of the sum.
struct InSwitchBytes {
  const Reach& reach;
  double bytes;

  double operator()(std::size_t l) const {
    return reach.ranks[l] > reach.inside(l) ? bytes * (1 + 1 / reach.n) : 0;
  }
};

double in_switch_all_reduce(const Fabric& fabric, const Reach& reach, double bytes) {
  const double port = busiest_port(fabric, reach, InSwitchBytes{reach, bytes});
  return fabric.all_reduce.start_up + fabric.all_reduce.per_peer * (reach.n - 1) +
         with_pipeline(port * fabric.all_reduce.slowdown, fabric.all_reduce.segment);
}

double tree_all_reduce(const Fabric& fabric, Group group, double bytes) {
  const Reach reach(fabric, group);
  double widest = 0;
  for (std::size_t l = 0; l < reach.levels; ++l) {
    if (reach.ranks[l] > reach.inside(l))
      widest = std::max(widest, fabric.levels[l].seconds_per_byte);
  }
  return 2 * (steps_of_tree(reach.node) * fabric.p2p.start_up + start_between_nodes(fabric, reach) +
              bytes * widest * fabric.reduce_scatter.slowdown);
}

}  // namespace

Fabric make_fabric(const HardwareSpec& spec) {
  Fabric out;
  for (const LinkLevel& level : spec.levels) {
    if (out.level_count == Fabric::kMaxLevels)
      break;
    const double devices = level.devices > 0 ? static_cast<double>(level.devices) : kNoLimit;
    out.levels[out.level_count++] = {devices,
                                     seconds_per_byte(level.bandwidth) * level.oversubscription,
                                     seconds(level.latency),
                                     level.shared_port};
    if (devices <= static_cast<double>(spec.devices_per_node()))
      out.node_levels = out.level_count;
  }
  const CollectiveConstants& constants = spec.constants.collectives;
  out.all_gather = cost_of(constants.all_gather);
  out.reduce_scatter = cost_of(constants.reduce_scatter);
  out.all_reduce = cost_of(constants.all_reduce);
  out.all_to_all = cost_of(constants.all_to_all);
  out.dispatch = cost_of(constants.dispatch);
  out.combine = cost_of(constants.combine);
  out.p2p = cost_of(constants.p2p);
  out.in_switch_reduction = constants.in_switch_reduction;
  out.small_limit = static_cast<double>(constants.small_limit.count());
  out.small_start_up = seconds(constants.small_start_up);
  out.small_slowdown = 1 / constants.small_efficiency;
  out.bulk_floor = seconds(constants.bulk_floor);
  out.to_device = seconds_per_byte(spec.host.to_device);
  out.from_device = seconds_per_byte(spec.host.from_device);
  out.host_latency = seconds(spec.host.latency);
  out.memory =
      seconds_per_byte(spec.die.memory_bandwidth) / spec.constants.operators.memory_efficiency;
  return out;
}

double all_gather_seconds(const Fabric& fabric, Group group, double bytes_per_rank) {
  return gather(fabric, group, bytes_per_rank, fabric.all_gather);
}

double reduce_scatter_seconds(const Fabric& fabric, Group group, double bytes_per_rank) {
  return gather(fabric, group, bytes_per_rank, fabric.reduce_scatter);
}

double all_reduce_seconds(const Fabric& fabric, Group group, double bytes, AllReduce how) {
  if (group.ranks <= 1 || fabric.level_count == 0)
    return 0;
  if (how == AllReduce::Tree)
    return tree_all_reduce(fabric, group, bytes);
  if (how == AllReduce::Auto && fabric.in_switch_reduction) {
    const Reach reach(fabric, group);
    if (reach.node >= reach.n)
      return in_switch_all_reduce(fabric, reach, bytes);
  }
  return gather(fabric,
                group,
                bytes / static_cast<double>(group.ranks),
                fabric.reduce_scatter,
                fabric.all_gather);
}

double all_to_all_seconds(const Fabric& fabric, Group group, double bytes_per_rank, AllToAll how) {
  const auto n = static_cast<double>(std::max<std::int64_t>(1, group.ranks));
  return exchange(fabric, fabric.all_to_all, group, {n, n, bytes_per_rank / n, how});
}

double p2p_seconds(const Fabric& fabric, std::int64_t distance, double bytes) {
  if (distance == 0 || fabric.level_count == 0)
    return 0;
  const std::size_t l = level_across(fabric, distance);
  return fabric.p2p.start_up + fabric.levels[l].latency +
         bytes * fabric.levels[l].seconds_per_byte * fabric.p2p.slowdown;
}

double broadcast_seconds(const Fabric& fabric, Group group, double bytes) {
  if (group.ranks <= 1 || fabric.level_count == 0)
    return 0;
  const Reach reach(fabric, group);
  const double port = busiest_port(
      fabric, reach, [&](std::size_t l) { return reach.ranks[l] > reach.inside(l) ? bytes : 0; });
  return fabric.all_gather.start_up + fabric.all_gather.per_peer * (reach.node - 1) +
         start_between_nodes(fabric, reach) +
         with_pipeline(port * fabric.all_gather.slowdown, fabric.all_gather.segment);
}

double weight_fan_out_seconds(const Fabric& fabric, Group group, double bytes, FanOut how) {
  return how == FanOut::Direct ? one_to_each(fabric, group, bytes)
                               : broadcast_seconds(fabric, group, bytes);
}

double incast_seconds(const Fabric& fabric, Group group, double bytes_per_rank) {
  return one_to_each(fabric, group, bytes_per_rank);
}

double distinct_devices(double ranks, double experts, double top_k) {
  const double here = experts / ranks;
  double none =
      1;  // Probability that no expert of one device is among top_k drawn without replacement.
  for (double drawn = 0; drawn < top_k && none > 0; ++drawn)
    none *= std::max(0.0, experts - here - drawn) / (experts - drawn);
  return ranks * (1 - none);
}

double moe_dispatch_seconds(const Fabric& fabric, Group group, MoeTraffic traffic, AllToAll how) {
  return exchange(fabric, fabric.dispatch, group, spread_of(fabric, group, traffic, how));
}

double moe_combine_seconds(const Fabric& fabric, Group group, MoeTraffic traffic, AllToAll how) {
  return exchange(fabric, fabric.combine, group, spread_of(fabric, group, traffic, how));
}

LevelBytes all_gather_traffic(const Fabric& fabric, Group group, double bytes_per_rank) {
  if (group.ranks <= 1 || fabric.level_count == 0)
    return {};
  const Reach reach(fabric, group);
  return bytes_of_levels(reach, GatherBytes{fabric, reach, bytes_per_rank});
}

LevelBytes reduce_scatter_traffic(const Fabric& fabric, Group group, double bytes_per_rank) {
  return all_gather_traffic(fabric, group, bytes_per_rank);
}

LevelBytes all_reduce_traffic(const Fabric& fabric, Group group, double bytes) {
  if (group.ranks <= 1 || fabric.level_count == 0)
    return {};
  const Reach reach(fabric, group);
  if (fabric.in_switch_reduction && reach.node >= reach.n)
    return bytes_of_levels(reach, InSwitchBytes{reach, bytes});
  const double share = bytes / static_cast<double>(group.ranks);
  return reduce_scatter_traffic(fabric, group, share).add(all_gather_traffic(fabric, group, share));
}

LevelBytes p2p_traffic(const Fabric& fabric, std::int64_t distance, double bytes) {
  LevelBytes out;
  if (distance != 0 && fabric.level_count > 0)
    out.at[level_across(fabric, distance)] = bytes;
  return out;
}

LevelBytes moe_traffic(const Fabric& fabric, Group group, MoeTraffic traffic, AllToAll how) {
  if (group.ranks <= 1 || fabric.level_count == 0)
    return {};
  const Reach reach(fabric, group);
  const Spread spread = spread_of(fabric, group, traffic, how);
  return bytes_of_levels(reach, SpreadBytes{fabric, reach, spread});
}

double moe_all_gather_seconds(const Fabric& fabric, Group group, MoeTraffic traffic) {
  const double own = traffic.tokens_per_rank * traffic.bytes_per_token;
  const double picked = own * traffic.top_k;  // Read and written.
  return all_gather_seconds(fabric, group, own) + 2 * picked * fabric.memory;
}

double to_device_seconds(const Fabric& fabric, double bytes) {
  return fabric.host_latency + bytes * fabric.to_device;
}

double from_device_seconds(const Fabric& fabric, double bytes) {
  return fabric.host_latency + bytes * fabric.from_device;
}

}  // namespace temper::sim_hw
