// Moves the weights of a model from one parallel layout to another: from the trainer's layout to
// the rollout engines', on the same or on other devices.
//
// Assumptions. A stage holds its share of the layers; the first stages hold one more if layers do
// not divide. Its devices are numbered by tensor-parallel rank, then by replica. Everything except
// experts is split into tp equal intervals of one flattened dimension; the experts of a layer are
// split into ep intervals over the devices of a stage in order. Embedding and head belong to the
// first and the last stage. A device receives the part of its new intervals that it does not hold:
// from the source replica with its own replica's number (mod replicas), or, with FanOut::Tree, from
// the previous replica, which forwards. All transfers run at once and compete only at ports.
//
// Equation. transfer = max over ports of bytes / (p2p efficiency x bandwidth). In n buckets of b
// bytes (of the busiest receiver), each stage of a pipeline (copy out, transfer, copy in) takes s_i
// / n per bucket: t = sum s_i / n + (n - 1) / n max s_i + n (p2p start-up + bucket latency).
// Constants: those of collectives.hpp. None is fitted to a measured reshard: real engines also
// rename, cast and load tensors. This is link time only.
#pragma once

#include "sim_hw/model/model_spec.hpp"
#include "sim_hw/network/collectives.hpp"

#include <array>
#include <span>
#include <vector>

namespace temper::sim_hw {

struct WeightVolume {
  std::vector<double> layers;   ///< Bytes of each layer without its routed experts.
  std::vector<double> experts;  ///< Bytes of the routed experts of each layer.
  double first = 0;             ///< Bytes of the embedding.
  double last = 0;              ///< Bytes of the head, if it is not the embedding.

  double total() const;
};
WeightVolume weight_volume(const ModelSpec& model, double bytes_per_parameter);

struct ShardLayout {
  std::int64_t tp = 1;
  std::int64_t pp = 1;
  std::int64_t dp = 1;
  std::int64_t ep = 1;            ///< Divides tp x dp.
  std::int64_t first_device = 0;  ///< Id of its device 0.

  std::int64_t stage_devices() const { return tp * dp; }
  std::int64_t devices() const { return stage_devices() * pp; }
};

struct ReshardTraffic {
  /// Bytes of a device by the level that they cross.
  using PerLevel = std::array<double, Fabric::kMaxLevels>;
  std::vector<PerLevel> sent;      ///< By device id.
  std::vector<PerLevel> received;  ///< By device id.
  double moved = 0;                ///< Between devices, in total.
  double local = 0;                ///< Already on the right device.

  double most_sent() const;
  double most_received() const;
};

/// Seconds of the busiest port of these devices, each level at its own bandwidth.
double busiest_port_seconds(const Fabric& fabric,
                            std::span<const ReshardTraffic::PerLevel> devices);

/// Requires: ep divides tp x dp on both sides, and pp is at most the number of layers.
ReshardTraffic reshard_traffic(const Fabric& fabric,
                               const WeightVolume& weights,
                               const ShardLayout& from,
                               const ShardLayout& to,
                               FanOut replicas = FanOut::Tree);

/// Bytes on one device of an inner stage, as if embedding and head were split like the layers.
double held_bytes(const WeightVolume& weights, const ShardLayout& layout);

enum class Staging { Direct, ThroughHost };
struct Publication {
  double bucket_bytes = 0;    ///< 0: one bucket.
  double bucket_latency = 0;  ///< Seconds per bucket, beyond the start-up of a transfer.
  Staging staging = Staging::Direct;
};
double reshard_seconds(const Fabric& fabric, const ReshardTraffic& traffic, const Publication& how);

}  // namespace temper::sim_hw

template <>
struct temper::EnumNames<temper::sim_hw::Staging> {
  using E = sim_hw::Staging;
  static constexpr std::array<std::pair<E, std::string_view>, 2> value{
      {{E::Direct, "direct"}, {E::ThroughHost, "host"}}};
};
