#include "sim_hw/steps/rollout_layout.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <string_view>

namespace temper::sim_hw {
namespace {

/// The divisor of `whole` nearest to `wanted`, the smaller one if tied. Requires: whole >= 1.
std::int64_t nearest_divisor(std::int64_t wanted, std::int64_t whole) {
  wanted = std::clamp<std::int64_t>(wanted, 1, whole);
  for (std::int64_t step = 0;; ++step) {
    if (wanted - step >= 1 && whole % (wanted - step) == 0)
      return wanted - step;
    if (whole % (wanted + step) == 0)
      return wanted + step;
  }
}

/// `name`=`value` must divide `parts` and the devices; the proposed value divides both.
Status check_divides(std::string_view name,
                     std::int64_t value,
                     std::int64_t parts,
                     std::string_view of_what,
                     std::int64_t devices,
                     std::int64_t cards) {
  const std::int64_t nearest = nearest_divisor(value, std::gcd(parts, devices));
  if (value < 1) {
    return invalid_input(
        fmt::format("{}={}: must be 1 or more; nearest: {}={}", name, value, name, nearest));
  }
  if (parts % value != 0) {
    return invalid_input(fmt::format("{}={} does not divide the {} {}; nearest: {}={}",
                                     name,
                                     value,
                                     parts,
                                     of_what,
                                     name,
                                     nearest));
  }
  if (devices % value != 0) {
    return invalid_input(
        fmt::format("{}={} does not divide the {} devices of {} cards; nearest: {}={}",
                    name,
                    value,
                    devices,
                    cards,
                    name,
                    nearest));
  }
  return {};
}

/// Whether copies of experts make sense.
Status check_redundant(const ModelSpec& model, const RolloutDevices& layout) {
  const std::int64_t redundant = layout.redundant_experts;
  const auto refused = [&](std::string_view why, std::int64_t nearest) {
    return invalid_input(fmt::format(
        "redundant_experts={}: {}; nearest: redundant_experts={}", redundant, why, nearest));
  };
  if (redundant < 0)
    return refused("must be 0 or more", 0);
  if (redundant == 0 || layout.ep < 1)
    return {};
  if (!model.moe)
    return refused(model.name + " has no routed experts", 0);
  const std::int64_t experts = model.moe->experts;
  const std::int64_t most = experts * (layout.ep - 1);
  if (redundant > most) {
    return refused(
        fmt::format(
            "more than {} copies put an expert on one of the ep={} devices twice", most, layout.ep),
        most);
  }
  if (const std::int64_t over = (experts + redundant) % layout.ep; over != 0) {
    const std::int64_t fewer = redundant - over, more = fewer + layout.ep;
    const bool down = fewer >= 0 && over <= layout.ep - over;
    return refused(fmt::format("{} experts and their copies do not divide over the ep={} devices",
                               experts + redundant,
                               layout.ep),
                   down ? fewer : more);
  }
  return {};
}

}  // namespace

Status check_rollout_layout(const ModelSpec& model,
                            const HardwareSpec& hardware,
                            std::int64_t cards,
                            const RolloutDevices& layout) {
  const auto& [tp, dp, ep, redundant] = layout;
  if (cards < 1)
    return invalid_input(fmt::format("cards={}: must be 1 or more", cards));
  const std::int64_t devices = cards * hardware.dies_per_card;
  TEMPER_TRY_STATUS(check_divides("tp", tp, model.heads, "heads", devices, cards));
  if (dp < 1)
    return invalid_input(fmt::format("dp={}: must be 1 or more; nearest: dp={}", dp, devices / tp));
  if (dp != devices / tp) {
    return invalid_input(
        fmt::format("dp={} x tp={} is not the {} devices of {} cards; nearest: dp={}",
                    dp,
                    tp,
                    devices,
                    cards,
                    devices / tp));
  }
  TEMPER_TRY_STATUS(check_redundant(model, layout));
  if (!model.moe) {
    return ep == 1
               ? Status{}
               : invalid_input(fmt::format("ep={}: the model has no experts; nearest: ep=1", ep));
  }
  const char* const parts = redundant > 0 ? "experts with redundant ones" : "experts";
  return check_divides("ep", ep, model.moe->experts + redundant, parts, devices, cards);
}

}  // namespace temper::sim_hw
