#include "actors/simulation/usage_meter.hpp"

#include "actors/simulation/role_memory.hpp"
#include "core/check.hpp"

#include <algorithm>
#include <cmath>

namespace temper::actors {
namespace {

/// Saturates: hundreds of cards move more bytes in a month than the type can represent.
Bytes whole_bytes(double bytes) {
  constexpr double kMost = 9.2e18;
  return Bytes(std::llround(std::min(bytes, kMost)));
}

}  // namespace

UsageMeter::UsageMeter(const SimulatedRun& s,
                       std::int64_t cards,
                       std::optional<BytesPerSecond> outside)
    : devices_(static_cast<double>(cards * s.cluster.dies_per_card)),
      peak_(s.cluster.die.bf16),
      device_capacity_(device_capacity(s)),
      host_capacity_(host_capacity(s)) {
  for (const sim_hw::LinkLevel& level : s.cluster.levels) {
    if (planes_.size() < sim_hw::Fabric::kMaxLevels)
      planes_.push_back({level.name, Bytes(0), level.bandwidth});
  }
  if (outside) {
    TEMPER_CHECK(planes_.size() < sim_hw::Fabric::kMaxLevels, "too many network planes");
    planes_.push_back({"between clusters", Bytes(0), *outside});
  }
  planes_.push_back({"to host", Bytes(0), s.cluster.host.from_device});
  planes_.push_back({"from host", Bytes(0), s.cluster.host.to_device});
}

void UsageMeter::predict(const ActorMemory& memory) {
  device_predicted_ = std::max(device_predicted_, memory.device.total());
  host_predicted_ = std::max(host_predicted_, memory.host.total());
}

void UsageMeter::hold(double device, double host) {
  device_peak_ = std::max(device_peak_, device);
  host_peak_ = std::max(host_peak_, host);
}

std::optional<Usage> UsageMeter::due(Time now) {
  if (now - reported_ < kEvery)
    return std::nullopt;
  return report(now);
}

Usage UsageMeter::report(Time now) {
  reported_ = now;
  Usage usage;
  usage.devices = std::llround(devices_);
  usage.flops = Flops(flops_);
  usage.peak = peak_;
  usage.planes = planes_;
  for (std::size_t l = 0; l < levels(); ++l)
    usage.planes[l].bytes = whole_bytes(sent_.at[l]);
  usage.planes[levels()].bytes = whole_bytes(to_host_);
  usage.planes[levels() + 1].bytes = whole_bytes(from_host_);
  usage.device = {
      whole_bytes(device_peak_), whole_bytes(device_predicted_), whole_bytes(device_capacity_)};
  usage.host = {whole_bytes(host_peak_), whole_bytes(host_predicted_), whole_bytes(host_capacity_)};
  usage.engine = engine_;
  usage.tensors = tensors_;
  return usage;
}

}  // namespace temper::actors
