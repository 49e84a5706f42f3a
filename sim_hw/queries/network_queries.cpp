// Request kinds of the network: collectives and transfers.
#include "sim_hw/network/cluster_link.hpp"
#include "sim_hw/network/collectives.hpp"
#include "sim_hw/network/hosts.hpp"
#include "sim_hw/network/reshard.hpp"
#include "sim_hw/queries/explain.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/request/choice.hpp"

#include <fmt/format.h>

#include <array>
#include <string>
#include <vector>

namespace temper::sim_hw {
namespace {

enum class Direction { ToDevice, FromDevice };
enum class Scope { Local, Remote };
enum class Placement { Separate, Colocated };
enum class ExpertRoute { Flat, Hierarchical, Gathered, AllGather };

}  // namespace
}  // namespace temper::sim_hw

template <>
struct temper::EnumNames<temper::sim_hw::Direction> {
  using E = sim_hw::Direction;
  static constexpr std::array<std::pair<E, std::string_view>, 2> value{
      {{E::ToDevice, "to_device"}, {E::FromDevice, "from_device"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::Scope> {
  using E = sim_hw::Scope;
  static constexpr std::array<std::pair<E, std::string_view>, 2> value{
      {{E::Local, "local"}, {E::Remote, "remote"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::Placement> {
  using E = sim_hw::Placement;
  static constexpr std::array<std::pair<E, std::string_view>, 2> value{
      {{E::Separate, "separate"}, {E::Colocated, "colocated"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::ExpertRoute> {
  using E = sim_hw::ExpertRoute;
  static constexpr std::array<std::pair<E, std::string_view>, 4> value{
      {{E::Flat, "flat"},
       {E::Hierarchical, "hierarchical"},
       {E::Gathered, "gathered"},
       {E::AllGather, "all_gather"}}};
};

namespace temper::sim_hw {
namespace {

constexpr std::int64_t kMostDevices = 1 << 20;
constexpr std::int64_t kMostShards = 1 << 16;  ///< Devices on one side of a reshard.

void add_bandwidth(Cost& cost, std::string name, double bytes, double time) {
  if (time > 0)
    cost.metrics.push_back({std::move(name), "B/s", bytes / time, {}});
}

Result<Fabric> fabric_of(const CostContext& context, const Request& request) {
  TEMPER_TRY(const HardwareSpec* spec, context.catalog.hardware(request.hardware));
  if (spec->levels.empty())
    return invalid_input(fmt::format("{}: expected at least one link level (`levels`), found none",
                                     request.hardware));
  return make_fabric(*spec);
}

/// `ranks`, or else all devices of the cards.
Result<Group> group_of(const CostContext& context,
                       const Request& request,
                       std::string_view key = "ranks") {
  TEMPER_TRY(const HardwareSpec* spec, context.catalog.hardware(request.hardware));
  Group group;
  TEMPER_TRY(const std::int64_t ranks,
             request.params.integer(key, request.cards * spec->dies_per_card));
  TEMPER_TRY(group.ranks, in_range(key, ranks, 1, kMostDevices));
  TEMPER_TRY(const std::int64_t stride, request.params.integer("stride", 1));
  TEMPER_TRY(group.stride, in_range("stride", stride, 1, kMostDevices));
  return group;
}

std::string of_ranks(Group group, double bytes) {
  return fmt::format("{} ranks, stride {}, {:.6g} B", group.ranks, group.stride, bytes);
}

/// `bus_share(n)`: bytes through the port of a rank over `bytes`.
template <class Seconds, class BusShare>
Result<Cost> collective(const CostContext& context,
                        const Request& request,
                        const Seconds& cost,
                        const BusShare& bus_share) {
  TEMPER_TRY(const Fabric fabric, fabric_of(context, request));
  TEMPER_TRY(const Group group, group_of(context, request));
  TEMPER_TRY(const double bytes, positive(request.params, "bytes"));
  const double time = cost(fabric, group, bytes);
  Cost out = one_time(
      time,
      request.kind,
      "start-up + bytes of the busiest port / (efficiency x bandwidth): " + of_ranks(group, bytes));
  add_bandwidth(out, "bus_bandwidth", bus_share(static_cast<double>(group.ranks)) * bytes, time);
  return out;
}

Result<Cost> cost_of_all_gather(const CostContext& c, const Request& r) {
  return collective(c, r, all_gather_seconds, [](double n) { return n - 1; });
}

Result<Cost> cost_of_reduce_scatter(const CostContext& c, const Request& r) {
  return collective(c, r, reduce_scatter_seconds, [](double n) { return n - 1; });
}

Result<Cost> cost_of_all_reduce(const CostContext& c, const Request& r) {
  TEMPER_TRY(const AllReduce how, choice(r.params, "algorithm", AllReduce::Auto));
  const auto cost = [how](const Fabric& f, Group g, double b) {
    return all_reduce_seconds(f, g, b, how);
  };
  return collective(c, r, cost, [](double n) { return 2 * (n - 1) / n; });
}

Result<Cost> cost_of_all_to_all(const CostContext& c, const Request& r) {
  TEMPER_TRY(const AllToAll how, choice(r.params, "algorithm", AllToAll::Flat));
  const auto cost = [how](const Fabric& f, Group g, double b) {
    return all_to_all_seconds(f, g, b, how);
  };
  return collective(c, r, cost, [](double n) { return (n - 1) / n; });
}

Result<Cost> cost_of_broadcast(const CostContext& c, const Request& r) {
  return collective(c, r, broadcast_seconds, [](double) { return 1.0; });
}

Result<Cost> cost_of_weight_fan_out(const CostContext& c, const Request& r) {
  TEMPER_TRY(const FanOut how, choice(r.params, "algorithm", FanOut::Tree));
  const auto cost = [how](const Fabric& f, Group g, double b) {
    return weight_fan_out_seconds(f, g, b, how);
  };
  return collective(c, r, cost, [how](double n) { return how == FanOut::Direct ? n - 1 : 1.0; });
}

Result<Cost> cost_of_incast(const CostContext& c, const Request& r) {
  return collective(c, r, incast_seconds, [](double n) { return n - 1; });
}

Result<Cost> cost_of_p2p(const CostContext& context, const Request& r) {
  TEMPER_TRY(const Fabric fabric, fabric_of(context, r));
  TEMPER_TRY(const std::int64_t apart, r.params.integer("distance", 1));
  TEMPER_TRY(const std::int64_t distance, in_range("distance", apart, 0, kMostDevices));
  TEMPER_TRY(const double bytes, positive(r.params, "bytes"));
  const double time = p2p_seconds(fabric, distance, bytes);
  Cost out = one_time(
      time,
      "transfer",
      fmt::format(
          "start-up + latency + {:.6g} B / (efficiency x bandwidth), {} apart", bytes, distance));
  add_bandwidth(out, "bandwidth", bytes, time);
  return out;
}

enum class ExpertExchangeKind { Dispatch, Combine };

Result<Cost> cost_of_experts(const CostContext& context, const Request& r, ExpertExchangeKind way) {
  TEMPER_TRY(const Fabric fabric, fabric_of(context, r));
  TEMPER_TRY(const Group group, group_of(context, r, "ep"));
  MoeTraffic traffic;
  TEMPER_TRY(traffic.tokens_per_rank, positive(r.params, "tokens_per_rank"));
  TEMPER_TRY(traffic.top_k, positive(r.params, "topk"));
  TEMPER_TRY(const double hidden, r.params.number("hidden", 0));
  TEMPER_TRY(traffic.bytes_per_token, r.params.number("payload", 2 * hidden));
  if (!(traffic.bytes_per_token > 0))
    return invalid_input(
        "hidden: missing; expected hidden, or payload (bytes per copy of a token)");
  TEMPER_TRY(const ExpertRoute route, choice(r.params, "algorithm", ExpertRoute::Flat));
  const AllToAll how = route == ExpertRoute::Hierarchical ? AllToAll::Hierarchical
                       : route == ExpertRoute::Gathered   ? AllToAll::Gathered
                                                          : AllToAll::Flat;
  double time = 0;
  if (route == ExpertRoute::AllGather)
    time = moe_all_gather_seconds(fabric, group, traffic);
  else
    time = way == ExpertExchangeKind::Dispatch ? moe_dispatch_seconds(fabric, group, traffic, how)
                                               : moe_combine_seconds(fabric, group, traffic, how);
  const double bytes = traffic.tokens_per_rank * traffic.top_k * traffic.bytes_per_token;
  Cost out = one_time(time,
                      r.kind,
                      fmt::format("start-up + {} tokens x {} experts x {} B, the part through the "
                                  "busiest port / (efficiency x bandwidth), {} ranks",
                                  traffic.tokens_per_rank,
                                  traffic.top_k,
                                  traffic.bytes_per_token,
                                  group.ranks));
  add_bandwidth(out, "bandwidth_per_rank", bytes, time);
  return out;
}

Result<Cost> cost_of_dispatch(const CostContext& c, const Request& r) {
  return cost_of_experts(c, r, ExpertExchangeKind::Dispatch);
}

Result<Cost> cost_of_combine(const CostContext& c, const Request& r) {
  return cost_of_experts(c, r, ExpertExchangeKind::Combine);
}

Result<Cost> cost_of_host_copy(const CostContext& context, const Request& r) {
  TEMPER_TRY(const HardwareSpec* spec, context.catalog.hardware(r.hardware));
  TEMPER_TRY(const double bytes, positive(r.params, "bytes"));
  TEMPER_TRY(const Direction direction, choice(r.params, "direction", Direction::ToDevice));
  TEMPER_TRY(const Scope scope, choice(r.params, "scope", Scope::Local));
  const bool in = direction == Direction::ToDevice;
  const std::optional<BytesPerSecond> remote =
      in ? spec->host.remote_to_device : spec->host.remote_from_device;
  if (scope == Scope::Remote && !remote) {
    return Error{
        ErrorCode::Unsupported,
        fmt::format(
            "{}: scope=remote: devices of this hardware cannot access the memory of other hosts",
            r.hardware)};
  }
  const BytesPerSecond local = in ? spec->host.to_device : spec->host.from_device;
  const double bandwidth = (scope == Scope::Remote ? *remote : local).count();
  if (!(bandwidth > 0))
    return invalid_input(
        fmt::format("{}: expected a link to the host (`host`), found none", r.hardware));
  const double time = seconds(spec->host.latency) + bytes / bandwidth;
  Cost out = one_time(
      time,
      "copy",
      fmt::format(
          "{:.3g} s + {:.6g} B / {:.6g} B/s", seconds(spec->host.latency), bytes, bandwidth));
  add_bandwidth(out, "bandwidth", bytes, time);
  return out;
}

/// Reads `<side>_tp`, `<side>_pp`, `<side>_dp`, `<side>_ep`.
Result<ShardLayout> shard_layout(const Params& params,
                                 const std::string& side,
                                 std::int64_t layers) {
  ShardLayout out;
  const auto degree = [&](const char* name, std::int64_t most) -> Result<std::int64_t> {
    const std::string key = side + name;
    TEMPER_TRY(const std::int64_t value, params.integer(key, 1));
    return in_range(key, value, 1, most);
  };
  TEMPER_TRY(out.tp, degree("_tp", 1024));
  TEMPER_TRY(out.pp, degree("_pp", layers));
  TEMPER_TRY(out.dp, degree("_dp", 1024));
  TEMPER_TRY(out.ep, degree("_ep", 1024));
  if (out.stage_devices() % out.ep != 0) {
    return invalid_input(fmt::format(
        "{0}_ep={1} does not divide {0}_tp x {0}_dp = {2}", side, out.ep, out.stage_devices()));
  }
  if (out.devices() > kMostShards)
    return invalid_input(
        fmt::format("{}: found {} devices, expected at most {}", side, out.devices(), kMostShards));
  return out;
}

Result<Cost> cost_of_reshard(const CostContext& context, const Request& r) {
  TEMPER_TRY(const Fabric fabric, fabric_of(context, r));
  TEMPER_TRY(const ModelSpec* model, model_of(context, r.params));
  TEMPER_TRY(const ShardLayout from, shard_layout(r.params, "from", model->layers));
  TEMPER_TRY(ShardLayout to, shard_layout(r.params, "to", model->layers));
  TEMPER_TRY(const Placement placement, choice(r.params, "placement", Placement::Separate));
  TEMPER_TRY(const FanOut replicas, choice(r.params, "replicas", FanOut::Tree));
  Publication how;
  TEMPER_TRY(how.bucket_bytes, r.params.number("bucket_bytes", 0));
  TEMPER_TRY(how.bucket_latency, r.params.number("bucket_seconds", 0));
  TEMPER_TRY(how.staging, choice(r.params, "through", Staging::Direct));
  TEMPER_TRY(const double bytes_per_parameter, r.params.number("bytes_per_parameter", 2));
  if (!(bytes_per_parameter > 0) || how.bucket_bytes < 0 || how.bucket_latency < 0)
    return invalid_input(
        "bytes_per_parameter: expected above 0; bucket_bytes, bucket_seconds: expected 0 or more");
  to.first_device = placement == Placement::Separate ? from.devices() : 0;
  const WeightVolume weights = weight_volume(*model, bytes_per_parameter);
  const ReshardTraffic traffic = reshard_traffic(fabric, weights, from, to, replicas);
  Cost out =
      one_time(reshard_seconds(fabric, traffic, how),
               "transfer",
               fmt::format("busiest device sends {:.6g} B, receives {:.6g} B; {:.6g} B move, "
                           "{:.6g} B stay",
                           traffic.most_sent(),
                           traffic.most_received(),
                           traffic.moved,
                           traffic.local));
  const MovedWeights moved{weight_tensors(*model), weights.total(), held_bytes(weights, to)};
  TEMPER_TRY_STATUS(add_framework(context, r.params, moved, out.metrics.front()));
  out.metrics.push_back({"moved", "B", traffic.moved, {}});
  out.metrics.push_back({"most_sent", "B", traffic.most_sent(), {}});
  out.metrics.push_back({"most_received", "B", traffic.most_received(), {}});
  out.metrics.push_back({"version", "B", moved.version_bytes, {}});
  out.metrics.push_back({"tensors", "count", moved.tensors, {}});
  return out;
}

/// B/s of a device's port to other clusters, from the key `key`.
Result<OutsidePort> outside_port(const Params& params,
                                 const std::string& key,
                                 const HardwareSpec& hardware) {
  const auto outermost = outermost_port(hardware);
  TEMPER_TRY(const double given, params.number(key, 0));
  if (given > 0)
    return OutsidePort{1 / given, false};
  if (given < 0 || !outermost) {
    return invalid_input(
        fmt::format("{}: missing; expected the B/s of a device of {} to other clusters, above 0",
                    key,
                    hardware.name));
  }
  return OutsidePort{1 / outermost->count(), true};
}

/// `hardware` is the receiver.
Result<Cost> cost_of_cluster_publication(const CostContext& context, const Request& r) {
  TEMPER_TRY(const HardwareSpec* receiver, context.catalog.hardware(r.hardware));
  const HardwareSpec to_hardware = *receiver;
  TEMPER_TRY(const std::string sender, r.params.text("from_hardware"));
  TEMPER_TRY(const HardwareSpec* from_hardware, context.catalog.hardware(sender));
  const Fabric receiving = make_fabric(to_hardware);
  const Fabric sending = make_fabric(*from_hardware);
  TEMPER_TRY(const OutsidePort from_port, outside_port(r.params, "from_port", *from_hardware));
  TEMPER_TRY(const OutsidePort to_port, outside_port(r.params, "to_port", to_hardware));
  TEMPER_TRY(const ModelSpec* model, model_of(context, r.params));
  TEMPER_TRY(const ShardLayout from, shard_layout(r.params, "from", model->layers));
  TEMPER_TRY(const ShardLayout to, shard_layout(r.params, "to", model->layers));
  TEMPER_TRY(const FanOut replicas, choice(r.params, "replicas", FanOut::Tree));
  TEMPER_TRY(const double bandwidth, positive(r.params, "bandwidth"));
  TEMPER_TRY(const double latency, r.params.number("latency", 0));
  TEMPER_TRY(const double bucket, r.params.number("bucket_bytes", 1e9));
  if (!(bucket > 0) || latency < 0 || receiving.level_count >= Fabric::kMaxLevels) {
    return invalid_input(
        "bucket_bytes: expected above 0; latency: expected 0 or more; hardware: expected at most 5 "
        "levels");
  }
  const CrossPublication p = publish_across({1 / bandwidth, latency},
                                            {sending, from_port, from},
                                            {receiving, to_port, to},
                                            weight_volume(*model, 2),
                                            replicas,
                                            bucket);
  Cost out = one_time(p.seconds,
                      "transfer",
                      fmt::format("{:.6g} B cross the link; the busiest device receives {:.6g} B",
                                  p.crossing,
                                  p.traffic.most_received()));
  out.metrics.push_back({"crossing", "B", p.crossing, {}});
  out.metrics.push_back({"most_received", "B", p.traffic.most_received(), {}});
  return out;
}

/// Independent of the hardware in the request.
Result<Cost> cost_of_host_publication(const CostContext&, const Request& r) {
  HostPublication p;
  TEMPER_TRY(p.bytes, positive(r.params, "bytes"));
  TEMPER_TRY(const std::int64_t hosts, r.params.integer("hosts"));
  TEMPER_TRY(p.hosts, in_range("hosts", hosts, 1, kMostShards));
  TEMPER_TRY(p.bandwidth, positive(r.params, "bandwidth"));
  TEMPER_TRY(p.chunk, r.params.number("chunk", p.chunk));
  TEMPER_TRY(p.how, choice(r.params, "replicas", FanOut::Tree));
  if (!(p.chunk > 0))
    return invalid_input("chunk: expected above 0");
  return one_time(host_publication_seconds(p),
                  "transfer",
                  fmt::format("{:.6g} B over each link, to {} hosts; a relay's last host has its "
                              "first chunk after all others",
                              wire_bytes(p.bytes, p.chunk),
                              p.hosts));
}

constexpr std::array kNetworkKinds{
    Kind{"all_gather",
         "Every rank contributes bytes and ends with those of all.",
         "bytes (per rank); ranks; stride=1",
         cost_of_all_gather},
    Kind{"all_reduce",
         "Every rank contributes bytes and ends with their sum.",
         "bytes (per rank, before and after); ranks; stride=1; algorithm=auto|ring|tree",
         cost_of_all_reduce},
    Kind{
        "all_to_all",
        "Every rank sends an equal share of its bytes to each rank.",
        "bytes (that one rank sends in all); ranks; stride=1; algorithm=flat|hierarchical|gathered",
        cost_of_all_to_all},
    Kind{"broadcast",
         "One rank's bytes to all others, along a pipelined tree.",
         "bytes; ranks; stride=1",
         cost_of_broadcast},
    Kind{"cluster_publication",
         "The weights of a model from one cluster to another, over a shared link.",
         "model; from_hardware (which sends; hardware receives); bandwidth (of the link, B/s); "
         "latency=0; from_port, to_port (of a device, B/s; unless given, of its outermost level); "
         "from_tp=1; from_pp=1; from_dp=1; from_ep=1; to_tp=1; to_pp=1; to_dp=1; to_ep=1; "
         "replicas=tree|direct; bucket_bytes=1e9",
         cost_of_cluster_publication},
    Kind{"combine",
         "MoE combine: the results of the chosen experts come back.",
         "tokens_per_rank; topk; hidden or payload (bytes per copy); ep; stride=1; "
         "algorithm=flat|hierarchical|gathered|all_gather",
         cost_of_combine},
    Kind{"dispatch",
         "MoE dispatch: tokens go to their chosen experts.",
         "tokens_per_rank; topk; hidden or payload (bytes per copy); ep; stride=1; "
         "algorithm=flat|hierarchical|gathered|all_gather",
         cost_of_dispatch},
    Kind{"host_copy",
         "A copy between a device and the memory of its own or another host.",
         "bytes; direction=to_device|from_device; scope=local|remote",
         cost_of_host_copy},
    Kind{"host_publication",
         "One version of the weights from one host to others, over separate links.",
         "bytes; hosts (that receive it); bandwidth (of a link, B/s); replicas=tree|direct; "
         "chunk=1048576",
         cost_of_host_publication},
    Kind{"incast",
         "All ranks but one send bytes to that one.",
         "bytes (of one sender); ranks; stride=1",
         cost_of_incast},
    Kind{"p2p",
         "Bytes from one device to another.",
         "bytes; distance=1 (between their ids)",
         cost_of_p2p},
    Kind{"reduce_scatter",
         "Every rank contributes bytes for each rank and ends with its sum.",
         "bytes (that one rank ends with); ranks; stride=1",
         cost_of_reduce_scatter},
    Kind{"reshard",
         "A model's weights from one parallel layout to another.",
         "model; from_tp=1; from_pp=1; from_dp=1; from_ep=1; to_tp=1; to_pp=1; to_dp=1; to_ep=1; "
         "placement=separate|colocated; replicas=tree|direct; through=direct|host; bucket_bytes=0; "
         "bucket_seconds=0; bytes_per_parameter=2; framework=ideal",
         cost_of_reshard},
    Kind{"weight_fan_out",
         "One rank's weights to all others.",
         "bytes; ranks (with the source); stride=1; algorithm=tree|direct",
         cost_of_weight_fan_out},
};

}  // namespace

std::span<const Kind> network_kinds() {
  return kNetworkKinds;
}

}  // namespace temper::sim_hw
