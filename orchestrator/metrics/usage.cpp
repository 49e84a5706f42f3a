#include "orchestrator/metrics/usage.hpp"

#include "core/text/numbers.hpp"
#include "orchestrator/metrics/card_timeline.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::orchestrator {
namespace {

double ratio(double part, double whole) {
  return whole > 0 ? part / whole : 0;
}

void raise(HighWater& to, const actors::MemoryUse& use) {
  to.peak_bytes = std::max(to.peak_bytes, use.peak.count());
  to.predicted_bytes = std::max(to.predicted_bytes, use.predicted.count());
  to.capacity_bytes = std::max(to.capacity_bytes, use.capacity.count());
}

/// Adds what an actor used before it was started again. Tensors that it held then are lost.
void add(actors::Usage& now, const actors::Usage& before) {
  now.flops = Flops(now.flops.count() + before.flops.count());
  for (const actors::PlaneUse& use : before.planes) {
    const auto plane = std::ranges::find(now.planes, use.plane, &actors::PlaneUse::plane);
    if (plane == now.planes.end())
      now.planes.push_back(use);
    else
      plane->bytes += use.bytes;
  }
  now.device.peak = std::max(now.device.peak, before.device.peak);
  now.host.peak = std::max(now.host.peak, before.host.peak);
  if (before.engine) {
    actors::EngineUse& engine = now.engine ? *now.engine : now.engine.emplace();
    engine.prefill += before.engine->prefill;
    engine.decode += before.engine->decode;
    engine.decode_tokens += before.engine->decode_tokens;
  }
  if (before.tensors) {
    actors::TensorUse& tensors = now.tensors ? *now.tensors : now.tensors.emplace();
    tensors.stored += before.tensors->stored;
    tensors.dropped += before.tensors->dropped + before.tensors->held;
    tensors.fetched += before.tensors->fetched;
    tensors.fetching += before.tensors->fetching;
  }
}

double peak_of(const ActorUsage& a) {
  return a.usage.peak.count() * static_cast<double>(a.usage.devices);
}

MfuSummary summarize_mfu(const UsageTotals& totals, double peak, Duration wall) {
  MfuSummary out;
  out.peak_flops_per_s = peak;
  struct AvailableFlops {
    double wall = 0, busy = 0;  ///< FLOP.
  };
  std::map<actors::RoleKind, AvailableFlops> possible;
  for (const auto& [id, a] : totals.actors()) {
    out.flops += a.usage.flops.count();
    out.roles[a.role].flops += a.usage.flops.count();
    possible[a.role].wall += peak_of(a) * seconds(wall);
    possible[a.role].busy += peak_of(a) * seconds(a.busy);
  }
  out.mfu = ratio(out.flops, peak * seconds(wall));
  for (auto& [role, mfu] : out.roles) {
    mfu.mfu = ratio(mfu.flops, possible[role].wall);
    mfu.while_busy = ratio(mfu.flops, possible[role].busy);
  }
  return out;
}

NetworkSummary summarize_network(const UsageTotals& totals,
                                 double devices,
                                 Duration wall,
                                 std::size_t updates) {
  NetworkSummary out;
  for (const auto& [id, a] : totals.actors()) {
    for (const actors::PlaneUse& use : a.usage.planes) {
      auto plane = std::ranges::find(out.planes, use.plane, &PlaneSummary::plane);
      if (plane == out.planes.end()) {
        out.planes.push_back({.plane = use.plane, .roles = {}});
        plane = std::prev(out.planes.end());
      }
      plane->bytes += use.bytes.count();
      plane->roles[a.role] += use.bytes.count();
      plane->share += ratio(static_cast<double>(use.bytes.count()),
                            use.bandwidth.count() * devices * seconds(wall));
    }
  }
  for (PlaneSummary& plane : out.planes)
    plane.bytes_per_update = ratio(static_cast<double>(plane.bytes), static_cast<double>(updates));
  return out;
}

std::optional<EnginesSummary> summarize_engines(const UsageTotals& totals, Duration wall) {
  EnginesSummary out;
  double engines = 0, tokens = 0;
  for (const auto& [id, a] : totals.actors()) {
    if (!a.usage.engine)
      continue;
    ++engines;
    tokens += static_cast<double>(a.usage.engine->decode_tokens);
    out.prefill_devices = a.usage.engine->prefill_devices;
    out.prefill += seconds(a.usage.engine->prefill);
    out.decode += seconds(a.usage.engine->decode);
  }
  if (engines == 0)
    return std::nullopt;
  out.token_s = ratio(out.decode + (out.prefill_devices == 0 ? out.prefill : 0), tokens);
  out.prefill = ratio(out.prefill, engines * seconds(wall));
  out.decode = ratio(out.decode, engines * seconds(wall));
  return out;
}

}  // namespace

void UsageTotals::feed(const Record& record) {
  if (const auto* actors = actors_in(record.event))
    specs_ = *actors;
  if (const auto* activity = std::get_if<event::Activity>(&record.event))
    add_report(*activity);
  for (const Command& command : record.commands) {
    const auto* launch = std::get_if<command::Launch>(&command);
    if (launch == nullptr)
      continue;
    if (const auto reported = actors_.find(launch->actor); reported != actors_.end())
      before_start_[launch->actor] = reported->second.usage;
  }
}

void UsageTotals::add_report(const event::Activity& activity) {
  if (activity.actor.value() >= specs_.size())
    return;
  Duration& busy = busy_[activity.actor];
  for (const actors::Span& span : activity.spans) {
    if (is_busy(span.state))
      busy += span.end - span.begin;
  }
  if (!activity.usage)
    return;
  const ActorSpec& spec = specs_[activity.actor.value()];
  actors::Usage usage = *activity.usage;
  if (const auto before = before_start_.find(activity.actor); before != before_start_.end())
    add(usage, before->second);
  actors_[activity.actor] = {spec.role, spec.cards.size(), busy, std::move(usage)};
}

std::string tensors_text(const TensorSummary& t) {
  return fmt::format("{:>9}  of responses, read by the trainer, which waits {:.4f} s",
                     bytes_text(t.fetched_bytes_per_update),
                     t.fetch_s_per_update);
}

std::optional<TensorSummary> summarize_tensors(const UsageTotals& totals, std::size_t updates) {
  std::optional<TensorSummary> out;
  for (const auto& [id, a] : totals.actors()) {
    if (!a.usage.tensors)
      continue;
    if (!out)
      out.emplace();
    out->stored_bytes += a.usage.tensors->stored.count();
    out->fetched_bytes += a.usage.tensors->fetched.count();
    if (a.usage.devices > 0) {  // Engines in Python do not learn what becomes of theirs.
      out->dropped_bytes = out->dropped_bytes.value_or(0) + a.usage.tensors->dropped.count();
      out->held_bytes = out->held_bytes.value_or(0) + a.usage.tensors->held.count();
    }
    out->fetch_s += seconds(a.usage.tensors->fetching);
  }
  if (out) {
    const auto count = static_cast<double>(updates);
    out->fetched_bytes_per_update = ratio(static_cast<double>(out->fetched_bytes), count);
    out->fetch_s_per_update = ratio(out->fetch_s, count);
  }
  return out;
}

std::optional<UsageSummary> summarize_usage(const UsageTotals& totals,
                                            std::size_t cards,
                                            Duration wall,
                                            std::size_t updates) {
  if (totals.actors().empty())
    return std::nullopt;
  // Cards are alike, so the report of one actor holds for all.
  const ActorUsage& any = totals.actors().begin()->second;
  if (any.usage.devices == 0)
    return std::nullopt;
  const double of_card = ratio(1, static_cast<double>(any.cards));
  const double devices =
      static_cast<double>(any.usage.devices) * of_card * static_cast<double>(cards);
  UsageSummary out;
  out.mfu = summarize_mfu(totals, any.usage.peak.count() * devices, wall);
  for (const auto& [id, a] : totals.actors()) {
    raise(out.memory[a.role].device, a.usage.device);
    raise(out.memory[a.role].host, a.usage.host);
  }
  out.network = summarize_network(totals, devices, wall, updates);
  out.engines = summarize_engines(totals, wall);
  return out;
}

}  // namespace temper::orchestrator
