#include "sim_hw/steps/rollout_layout.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::sim_hw {
namespace {

/// The divisor of `whole` nearest to `wanted`, the smaller of two.
std::int64_t nearest_divisor(std::int64_t wanted, std::int64_t whole) {
  for (std::int64_t step = 0;; ++step) {
    if (wanted - step >= 1 && whole % (wanted - step) == 0)
      return wanted - step;
    if (whole % (wanted + step) == 0)
      return wanted + step;
  }
}

}  // namespace

Status check_rollout_layout(const ModelSpec& model,
                            const HardwareSpec& hardware,
                            std::int64_t cards,
                            const RolloutDevices& layout) {
  const auto& [tp, dp, ep] = layout;
  if (tp < 1 || dp < 1 || ep < 1)
    return invalid_input("tp, dp and ep must be 1 or more");
  if (model.heads % tp != 0)
    return invalid_input(fmt::format("tp={} does not divide the {} heads; nearest: tp={}",
                                     tp,
                                     model.heads,
                                     nearest_divisor(std::min(tp, model.heads), model.heads)));
  if (ep > 1 && !model.moe)
    return invalid_input(fmt::format("ep={}: the model has no experts; nearest: ep=1", ep));
  if (model.moe && model.moe->experts % ep != 0)
    return invalid_input(
        fmt::format("ep={} does not divide the {} experts; nearest: ep={}",
                    ep,
                    model.moe->experts,
                    nearest_divisor(std::min(ep, model.moe->experts), model.moe->experts)));
  const std::int64_t devices = cards * hardware.dies_per_card;
  if (tp * dp != devices) {
    return invalid_input(
        fmt::format("tp={} x dp={} is {} devices; {} cards have {}; nearest: dp={}",
                    tp,
                    dp,
                    tp * dp,
                    cards,
                    devices,
                    std::max<std::int64_t>(1, devices / tp)));
  }
  if (devices % ep != 0)
    return invalid_input(fmt::format("ep={} does not divide the {} devices; nearest: ep={}",
                                     ep,
                                     devices,
                                     nearest_divisor(std::min(ep, devices), devices)));
  return {};
}

}  // namespace temper::sim_hw
