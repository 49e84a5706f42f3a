// Use of devices by the actors of a simulated run, from their activity reports: MFU, memory
// high-water marks, bytes per network plane. Of these, roles in Python report their tensors.
//
// Definitions.
//   MFU         model FLOP (sim_hw/model/flops.hpp) over time and dense BF16 peak: of the run, over
//               the wall time and all its cards; of a role, over the wall time and its own cards;
//               while busy, over the time in which they worked
//   high-water  most bytes of a device, or of its share of host memory, that an actor of the role
//               held at once. Roles that share cards reach theirs at different times
//   share       of a plane: bytes over the bandwidth of all devices, per direction, and the wall
//               time
//   engines     time in which they decoded or prefilled over the wall time, the mean over the
//               engines; with disaggregated prefill, either is that of its own devices
//   tensors     of responses, where simulation.tensors or an engine in Python gives them any
//   token_s     mean time between two tokens of a running response: of decode, and of prefill steps
//               in between, over the tokens
// Every byte counts once: exchanges at the sender, publications at the receiver.
#pragma once

#include "actors/protocol/usage.hpp"
#include "core/describe.hpp"
#include "orchestrator/record/event_log.hpp"

#include <map>
#include <optional>

namespace temper::orchestrator {

/// Reports of one actor.
struct ActorUsage {
  actors::RoleKind role = actors::RoleKind::Rollout;
  std::size_t cards = 0;
  Duration busy{};  ///< Busy time in its reports.
  actors::Usage usage;
};

class UsageTotals {
 public:
  /// Call for every record, in order.
  void feed(const Record& record);
  /// By actor; only those that have reported.
  const std::map<ActorId, ActorUsage>& actors() const { return actors_; }

 private:
  void add_report(const event::Activity& activity);

  std::vector<ActorSpec> specs_;
  std::map<ActorId, Duration> busy_;
  /// Of actors that were started again: a report covers the time since the last start.
  std::map<ActorId, actors::Usage> before_start_;
  std::map<ActorId, ActorUsage> actors_;
};

struct RoleMfu {
  double flops = 0, mfu = 0, while_busy = 0;
};
struct MfuSummary {
  double flops = 0, peak_flops_per_s = 0, mfu = 0;
  std::map<actors::RoleKind, RoleMfu> roles;
};
struct HighWater {
  std::int64_t peak_bytes = 0, predicted_bytes = 0, capacity_bytes = 0;
};
struct RoleMemory {
  HighWater device, host;
};
struct PlaneSummary {
  std::string plane;
  std::int64_t bytes = 0;
  double bytes_per_update = 0, share = 0;
  std::map<actors::RoleKind, std::int64_t> roles;
};
struct NetworkSummary {
  std::vector<PlaneSummary> planes;
};
struct EnginesSummary {
  std::int64_t prefill_devices = 0;
  double prefill = 0, decode = 0, token_s = 0;
};
struct TensorSummary {
  std::int64_t stored_bytes = 0, fetched_bytes = 0;
  std::optional<std::int64_t> dropped_bytes{}, held_bytes{};
  double fetched_bytes_per_update = 0, fetch_s = 0, fetch_s_per_update = 0;
};
struct UsageSummary {
  MfuSummary mfu;
  std::map<actors::RoleKind, RoleMemory> memory;
  NetworkSummary network;
  std::optional<EnginesSummary> engines{};
};

/// Bytes per step, and how long the trainer waits for them.
std::string tensors_text(const TensorSummary& tensors);

/// None if the run has no tensors.
std::optional<TensorSummary> summarize_tensors(const UsageTotals& totals, std::size_t updates);

/// None if no actor has reported devices. `cards`: number of cards of the run.
std::optional<UsageSummary> summarize_usage(const UsageTotals& totals,
                                            std::size_t cards,
                                            Duration wall,
                                            std::size_t updates);

void describe(auto& v, RoleMfu& s) {
  v.field(1, "flops", s.flops, {.doc = "Model FLOP of the role's actors."});
  v.field(2, "mfu", s.mfu, {.doc = "Over the wall time and the peak of its cards."});
  v.field(3, "while_busy", s.while_busy, {.doc = "Over the time in which they worked."});
}
void describe(auto& v, MfuSummary& s) {
  v.field(1, "flops", s.flops, {.doc = "Model FLOP of the run."});
  v.field(2, "peak_flops_per_s", s.peak_flops_per_s, {.doc = "Dense BF16 peak of all cards."});
  v.field(3, "mfu", s.mfu, {.doc = "Over the wall time and that peak."});
  v.field(4, "roles", s.roles);
}
void describe(auto& v, HighWater& s) {
  v.field(1, "peak_bytes", s.peak_bytes, {.doc = "Most bytes held at once."});
  v.field(2, "predicted_bytes", s.predicted_bytes, {.doc = "Predicted before the run."});
  v.field(3, "capacity_bytes", s.capacity_bytes);
}
void describe(auto& v, RoleMemory& s) {
  v.field(1, "device", s.device, {.doc = "Fullest device of the role."});
  v.field(2, "host", s.host, {.doc = "Host memory per device."});
}
void describe(auto& v, PlaneSummary& s) {
  v.field(1, "plane", s.plane, {.doc = "Level of the interconnect, or the link to the host."});
  v.field(2, "bytes", s.bytes, {.doc = "Each byte counts once."});
  v.field(3, "bytes_per_update", s.bytes_per_update);
  v.field(4, "share", s.share, {.doc = "Mean share of the bandwidth of all devices."});
  v.field(5, "roles", s.roles, {.doc = "Bytes by role."});
}
void describe(auto& v, EnginesSummary& s) {
  v.field(1, "prefill_devices", s.prefill_devices, {.doc = "Devices of each that only prefill."});
  v.field(2, "prefill", s.prefill, {.doc = "Share of the wall time in which they prefilled."});
  v.field(3, "decode", s.decode, {.doc = "Share of the wall time in which they decoded."});
  v.field(4, "token_s", s.token_s, {.doc = "Mean time between tokens of a running response."});
}
void describe(auto& v, TensorSummary& s) {
  v.field(1, "stored_bytes", s.stored_bytes, {.doc = "Written by engines."});
  v.field(
      2, "fetched_bytes", s.fetched_bytes, {.doc = "Read by the trainer, again after a rollback."});
  v.field(3,
          "dropped_bytes",
          s.dropped_bytes,
          {.doc = "Of responses that were not trained (simulated runs)."});
  v.field(4,
          "held_bytes",
          s.held_bytes,
          {.doc = "Of responses outstanding at the end (simulated runs)."});
  v.field(5, "fetched_bytes_per_update", s.fetched_bytes_per_update);
  v.field(6, "fetch_s", s.fetch_s, {.doc = "Time in which the trainer waited for them."});
  v.field(7, "fetch_s_per_update", s.fetch_s_per_update);
}
void describe(auto& v, NetworkSummary& s) {
  v.field(1, "planes", s.planes, {.doc = "Innermost first."});
}

}  // namespace temper::orchestrator
