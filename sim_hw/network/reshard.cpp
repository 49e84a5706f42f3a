#include "sim_hw/network/reshard.hpp"

#include "core/check.hpp"
#include "sim_hw/model/parameters.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace temper::sim_hw {
namespace {

/// First layer of a stage; for the stage after the last, the number of layers.
std::int64_t first_layer(std::int64_t layers, std::int64_t stages, std::int64_t stage) {
  return layers / stages * stage + std::min(stage, layers % stages);
}

/// Bytes that a stage on each side have in common.
struct SharedBytes {
  double dense = 0;
  double experts = 0;
};

SharedBytes common_layers(const WeightVolume& weights,
                          const ShardLayout& from,
                          std::int64_t from_stage,
                          const ShardLayout& to,
                          std::int64_t to_stage) {
  const auto layers = static_cast<std::int64_t>(weights.layers.size());
  const std::int64_t begin =
      std::max(first_layer(layers, from.pp, from_stage), first_layer(layers, to.pp, to_stage));
  const std::int64_t end = std::min(first_layer(layers, from.pp, from_stage + 1),
                                    first_layer(layers, to.pp, to_stage + 1));
  SharedBytes out;
  for (std::int64_t l = begin; l < end; ++l) {
    out.dense += weights.layers[static_cast<std::size_t>(l)];
    out.experts += weights.experts[static_cast<std::size_t>(l)];
  }
  if (from_stage == 0 && to_stage == 0)
    out.dense += weights.first;
  if (from_stage + 1 == from.pp && to_stage + 1 == to.pp)
    out.dense += weights.last;
  return out;
}

/// The split of a kind of tensor among the devices of a stage: device i holds interval i mod parts.
struct StageSplit {
  std::int64_t parts = 1;
  std::int64_t stage_devices = 1;
  std::int64_t first_device = 0;  ///< First device of the stage.

  std::int64_t replicas() const { return stage_devices / parts; }
  bool holds(std::int64_t device, std::int64_t part) const {
    const std::int64_t i = device - first_device;
    return i >= 0 && i < stage_devices && i % parts == part;
  }
};

double overlap(std::int64_t a, std::int64_t a_parts, std::int64_t b, std::int64_t b_parts) {
  const auto at = [](std::int64_t i, std::int64_t parts) {
    return static_cast<double>(i) / static_cast<double>(parts);
  };
  return std::min(at(a + 1, a_parts), at(b + 1, b_parts)) -
         std::max(at(a, a_parts), at(b, b_parts));
}

class Mover {
 public:
  Mover(const Fabric& fabric, ReshardTraffic& out) : fabric_(fabric), out_(out) {}

  /// Adds the transfer of everything that the devices of a stage need of `bytes`, with both splits.
  void move(const StageSplit& from, const StageSplit& to, double bytes, FanOut replicas) {
    if (bytes <= 0)
      return;
    for (std::int64_t i = 0; i < to.stage_devices; ++i) {
      const std::int64_t part = i % to.parts;
      const std::int64_t replica = i / to.parts;
      const std::int64_t begin = part * from.parts / to.parts;
      const std::int64_t end = ((part + 1) * from.parts + to.parts - 1) / to.parts;
      for (std::int64_t source = begin; source < end; ++source) {
        const double share = bytes * overlap(source, from.parts, part, to.parts);
        const std::int64_t device = to.first_device + i;
        if (from.holds(device, source)) {
          out_.local += share;
        } else if (replicas == FanOut::Tree && replica > 0) {
          send(device - to.parts, device, share);
        } else {
          const std::int64_t copy = replica % from.replicas();
          send(from.first_device + copy * from.parts + source, device, share);
        }
      }
    }
  }

 private:
  void send(std::int64_t from, std::int64_t to, double bytes) {
    std::size_t level = 0;
    while (level + 1 < fabric_.level_count) {
      const double unit = fabric_.levels[level].devices;
      if (std::floor(static_cast<double>(from) / unit) ==
          std::floor(static_cast<double>(to) / unit))
        break;
      ++level;
    }
    out_.sent[static_cast<std::size_t>(from)][level] += bytes;
    out_.received[static_cast<std::size_t>(to)][level] += bytes;
    out_.moved += bytes;
  }

  const Fabric& fabric_;
  ReshardTraffic& out_;
};

double sum_of(const ReshardTraffic::PerLevel& bytes) {
  return std::accumulate(bytes.begin(), bytes.end(), 0.0);
}

double most(const std::vector<ReshardTraffic::PerLevel>& devices) {
  double out = 0;
  for (const auto& bytes : devices)
    out = std::max(out, sum_of(bytes));
  return out;
}

}  // namespace

WeightVolume weight_volume(const ModelSpec& model, double bytes_per_parameter) {
  const ParameterCount count = count_parameters(model);
  WeightVolume out;
  const auto layers = static_cast<double>(std::max<std::int64_t>(1, model.layers));
  // Norms and biases are spread evenly over the layers.
  const double every = static_cast<double>(attention_parameters(model)) +
                       static_cast<double>(count.norms + count.biases) / layers;
  const auto moe_layers = static_cast<double>(std::max<std::int64_t>(1, model.moe_layers()));
  for (std::int64_t l = 0; l < model.layers; ++l) {
    const bool routed = model.moe && l >= model.dense_layers();
    const double mlp = routed
                           ? static_cast<double>(count.router + count.shared_experts) / moe_layers
                           : static_cast<double>(dense_mlp_parameters(model));
    out.layers.push_back((every + mlp) * bytes_per_parameter);
    out.experts.push_back(
        routed ? static_cast<double>(count.routed_experts) / moe_layers * bytes_per_parameter : 0);
  }
  out.first = static_cast<double>(count.embedding) * bytes_per_parameter;
  out.last = static_cast<double>(count.head) * bytes_per_parameter;
  return out;
}

double WeightVolume::total() const {
  const double of_layers = std::accumulate(layers.begin(), layers.end(), first + last);
  return std::accumulate(experts.begin(), experts.end(), of_layers);
}

double ReshardTraffic::most_sent() const {
  return most(sent);
}
double ReshardTraffic::most_received() const {
  return most(received);
}

double busiest_port_seconds(const Fabric& fabric,
                            std::span<const ReshardTraffic::PerLevel> devices) {
  double worst = 0;
  for (const auto& bytes : devices) {
    double port = 0;
    for (std::size_t l = 0; l < fabric.level_count; ++l) {
      port = fabric.levels[l].shared_port ? port : 0;
      port += bytes[l] * fabric.levels[l].seconds_per_byte * fabric.p2p.slowdown;
      worst = std::max(worst, port);
    }
  }
  return worst;
}

ReshardTraffic reshard_traffic(const Fabric& fabric,
                               const WeightVolume& weights,
                               const ShardLayout& from,
                               const ShardLayout& to,
                               FanOut replicas) {
  TEMPER_CHECK(from.stage_devices() % from.ep == 0 && to.stage_devices() % to.ep == 0,
               "ep divides the devices of a stage");
  ReshardTraffic out;
  const auto devices = static_cast<std::size_t>(
      std::max(from.first_device + from.devices(), to.first_device + to.devices()));
  out.sent.assign(devices, {});
  out.received.assign(devices, {});
  Mover mover(fabric, out);
  for (std::int64_t a = 0; a < from.pp; ++a) {
    for (std::int64_t b = 0; b < to.pp; ++b) {
      const SharedBytes bytes = common_layers(weights, from, a, to, b);
      const std::int64_t first_a = from.first_device + a * from.stage_devices();
      const std::int64_t first_b = to.first_device + b * to.stage_devices();
      mover.move({from.tp, from.stage_devices(), first_a},
                 {to.tp, to.stage_devices(), first_b},
                 bytes.dense,
                 replicas);
      mover.move({from.ep, from.stage_devices(), first_a},
                 {to.ep, to.stage_devices(), first_b},
                 bytes.experts,
                 replicas);
    }
  }
  return out;
}

double held_bytes(const WeightVolume& weights, const ShardLayout& layout) {
  const double experts = std::accumulate(weights.experts.begin(), weights.experts.end(), 0.0);
  const double split = (weights.total() - experts) / static_cast<double>(layout.tp);
  return (split + experts / static_cast<double>(layout.ep)) / static_cast<double>(layout.pp);
}

double reshard_seconds(const Fabric& fabric,
                       const ReshardTraffic& traffic,
                       const Publication& how) {
  const double most_received = traffic.most_received();
  if (traffic.moved <= 0)
    return 0;
  const double buckets = how.bucket_bytes > 0
                             ? std::max(1.0, std::ceil(most_received / how.bucket_bytes - 1e-9))
                             : 1.0;
  const double transfer = std::max(busiest_port_seconds(fabric, traffic.sent),
                                   busiest_port_seconds(fabric, traffic.received));
  double sum = transfer;
  double longest = transfer;
  double latency = fabric.p2p.start_up + how.bucket_latency;
  if (how.staging == Staging::ThroughHost) {
    const double out = traffic.most_sent() * fabric.from_device;
    const double in = most_received * fabric.to_device;
    sum += out + in;
    longest = std::max({longest, out, in});
    latency += 2 * fabric.host_latency;
  }
  return sum / buckets + (buckets - 1) / buckets * longest + buckets * latency;
}

}  // namespace temper::sim_hw
