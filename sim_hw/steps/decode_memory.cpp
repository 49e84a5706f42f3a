#include "sim_hw/steps/decode_memory.hpp"

#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/model/numbers.hpp"

#include <fmt/format.h>

#include <cmath>

namespace temper::sim_hw {
namespace {

Ledger ledger_of(const ModelSpec& model,
                 const RolloutDevices& devices,
                 double batch,
                 double context) {
  Layout layout;
  layout.tp = devices.tp;
  layout.ep = devices.ep;
  layout.dp = devices.dp;
  InferenceShape shape;
  shape.cached_tokens = batch * context;
  shape.batch_tokens = batch;
  shape.logit_rows = batch;
  return inference_ledger(model, layout, shape);
}

/// The smallest tensor parallelism whose weights fit, among the divisors of the heads.
std::int64_t nearest_tp(const ModelSpec& model, RolloutDevices devices, double capacity) {
  for (std::int64_t tp = devices.tp; tp <= model.heads; ++tp) {
    devices.tp = tp;
    if (model.heads % tp == 0 && ledger_of(model, devices, 1, 1).total() <= capacity)
      return tp;
  }
  return 0;
}

Error overflow(const Ledger& ledger, const HardwareSpec& hardware, std::string_view nearest) {
  return {
      ErrorCode::OutOfMemory,
      fmt::format("memory of a device, {:.2f} GiB = weights {:.2f} + keys and values {:.2f} + rest "
                  "{:.2f}, exceeds the {:.2f} GiB of {}; nearest: {}",
                  ledger.total() / kGib,
                  ledger.weights / kGib,
                  ledger.kv_cache / kGib,
                  (ledger.total() - ledger.weights - ledger.kv_cache) / kGib,
                  static_cast<double>(hardware.die.memory.count()) / kGib,
                  hardware.name,
                  nearest)};
}

}  // namespace

Status check_decode_memory(const ModelSpec& model,
                           const HardwareSpec& hardware,
                           const RolloutDevices& layout,
                           double batch,
                           double context) {
  const auto capacity = static_cast<double>(hardware.die.memory.count());
  const Ledger ledger = ledger_of(model, layout, batch, context);
  if (ledger.total() <= capacity)
    return {};
  const double free = capacity - (ledger.total() - ledger.kv_cache);
  const double most = std::floor(free / (ledger.kv_cache / batch));
  std::string nearest;
  if (most >= 1) {
    nearest = fmt::format("batch = {:.0f}", most);
  } else if (const std::int64_t tp = nearest_tp(model, layout, capacity); tp > layout.tp) {
    nearest = fmt::format("tp = {}", tp);
  } else {
    nearest = "experts on more devices (ep), or another hardware";
  }
  return overflow(ledger, hardware, nearest);
}

Status check_pass_memory(const ModelSpec& model,
                         const HardwareSpec& hardware,
                         double batch,
                         double seq,
                         CacheRetention cached) {
  const auto capacity = static_cast<double>(hardware.die.memory.count());
  const auto ledger_for = [&](double sequences) {
    InferenceShape shape;
    shape.cached_tokens = cached == CacheRetention::Kept ? sequences * seq : 0;
    shape.batch_tokens = sequences * seq;
    shape.logit_rows = sequences;
    return inference_ledger(model, {}, shape);
  };
  const Ledger ledger = ledger_for(batch);
  if (ledger.total() <= capacity)
    return {};
  double fits = 0;  // The ledger grows with the batch, so halve until it fits.
  for (double low = 0, high = batch; high - low > 0.5;) {
    const double middle = std::ceil((low + high) / 2);
    if (middle >= high)
      break;
    (ledger_for(middle).total() <= capacity ? low : high) = middle;
    fits = low;
  }
  return overflow(ledger,
                  hardware,
                  fits >= 1 ? fmt::format("batch = {:.0f}", fits)
                            : std::string("shorter sequences, or more devices"));
}

}  // namespace temper::sim_hw
