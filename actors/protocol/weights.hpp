// Messages that publish weights (in two phases: stage, then commit) and that switch the role of
// cards.
#pragma once

#include "actors/protocol/envelope.hpp"
#include "actors/protocol/relay_address.hpp"
#include "actors/protocol/update_metrics.hpp"

namespace temper {
namespace actors {

/// Where the image of a version is: the bytes of one safetensors file (for synthetic engines: any
/// bytes). On one machine: a memfd of the trainer's process, opened through /proc. Over tcp: a file
/// that both sides can read, or chunks (fd < 0), which follow unless they are sent on request.
struct WeightsHandle {
  PolicyVersion version;
  Bytes bytes;
  std::uint64_t checksum = 0;  ///< core/hash.hpp over the whole image.
  std::int64_t pid = 0;
  std::int32_t fd = -1;
  std::string path{};  ///< Path of the file with the image, if not empty.
  bool on_request = false;
};
/// Images that a trainer's worker keeps for requests: the newest ones.
inline constexpr std::size_t kImagesOnRequest = 2;
void describe(auto& v, WeightsHandle& w) {
  v.field(1, "version", w.version, {.doc = "Policy version of the image."});
  v.field(2,
          "bytes",
          w.bytes,
          {.doc = "Size of the image, one safetensors file (for synthetic engines: any bytes)."});
  v.field(3, "checksum", w.checksum, {.doc = "XXH3-64 of the image."});
  v.field(4, "pid", w.pid, {.doc = "Process that holds the memfd."});
  v.field(5, "fd", w.fd, {.doc = "Descriptor in that process; negative: sent as chunks."});
  v.field(6,
          "path",
          w.path,
          {.doc = "File with the image on a shared file system; then no chunks are "
                  "sent."});
  v.field(7,
          "on_request",
          w.on_request,
          {.doc = "From a trainer: chunks are sent only on request (weights.fetch), by its worker, "
                  "which keeps the image until it has announced two later ones."});
}

/// The weights that the trainer has after start or resume.
struct TrainerReady {
  static constexpr std::string_view kName = "trainer.ready";
  static constexpr std::uint32_t kTag = 60, kVersion = 1, kOldestVersion = 1;
  WeightsHandle weights;
};
void describe(auto& v, TrainerReady& m) {
  v.field(1, "weights", m.weights, {.doc = "Its current weights."});
}

/// An optimizer step is done; `weights.version` is the new version.
struct Trained {
  static constexpr std::string_view kName = "trainer.trained";
  static constexpr std::uint32_t kTag = 51, kVersion = 1, kOldestVersion = 1;
  LeaseId lease;
  std::vector<GroupId> groups;
  UpdateMetrics metrics;
  WeightsHandle weights;
};
void describe(auto& v, Trained& m) {
  v.field(1, "lease", m.lease, {.doc = "Lease of the update."});
  v.field(2, "groups", m.groups, {.doc = "Groups that the trainer trained on."});
  v.field(3, "metrics", m.metrics, {.doc = "Metrics of this update."});
  v.field(4, "weights", m.weights, {.doc = "The new version."});
}

/// Load and verify a version while the current one stays in use.
struct StageWeights {
  static constexpr std::string_view kName = "weights.stage";
  static constexpr std::uint32_t kTag = 61, kVersion = 1, kOldestVersion = 1;
  WeightsHandle weights;
  std::vector<RelayAddress> sources{};  ///< If not empty, no chunks follow unless requested.
};
void describe(auto& v, StageWeights& m) {
  v.field(1, "weights", m.weights, {.doc = "What to load and from where."});
  v.field(
      2,
      "sources",
      m.sources,
      {.doc = "For a worker that relays weights: other workers that have the image or are "
              "receiving it. The worker asks them in this order (weights.fetch), and the "
              "orchestrator last. Empty: the orchestrator sends the image without being asked."});
}

/// Requests the chunks of an image from an offset on. A worker asks other workers, or the
/// orchestrator once no other worker answers. The orchestrator asks the trainer, for an image on
/// request that an engine needs from the orchestrator.
struct FetchWeights {
  static constexpr std::string_view kName = "weights.fetch";
  static constexpr std::uint32_t kTag = 66, kVersion = 1, kOldestVersion = 1;
  PolicyVersion version;
  std::uint64_t checksum = 0;
  std::uint64_t offset = 0;
};
void describe(auto& v, FetchWeights& m) {
  v.field(1, "version", m.version, {.doc = "Policy version of the image."});
  v.field(2, "checksum", m.checksum, {.doc = "Checksum of the whole image, as announced."});
  v.field(3, "offset", m.offset, {.doc = "Offset of the first missing chunk, in bytes."});
}

/// Allows or forbids another worker to fetch weights from this one.
struct FeedWeights {
  static constexpr std::string_view kName = "weights.feed";
  static constexpr std::uint32_t kTag = 67, kVersion = 1, kOldestVersion = 1;
  std::string key;
  bool admitted = true;
};
void describe(auto& v, FeedWeights& m) {
  v.field(1, "key", m.key, {.doc = "Public key of the other worker."});
  v.field(2, "admitted", m.admitted, {.doc = "Whether it may fetch weights from now on."});
}

/// One chunk of an image: from trainer to orchestrator, orchestrator to engine, or worker to
/// worker.
struct WeightsChunk {
  static constexpr std::string_view kName = "weights.chunk";
  static constexpr std::uint32_t kTag = 62, kVersion = 1, kOldestVersion = 1;
  PolicyVersion version;
  std::uint64_t offset = 0;
  std::uint64_t checksum = 0;
  std::vector<std::byte> data;
};
void describe(auto& v, WeightsChunk& m) {
  v.field(1, "version", m.version, {.doc = "Policy version of the image."});
  v.field(2, "offset", m.offset, {.doc = "Position of the chunk in the image, in bytes."});
  v.field(3, "checksum", m.checksum, {.doc = "XXH3-64 of the chunk."});
  v.field(4, "data", m.data, {.doc = "The chunk, at most 1 MiB."});
}

struct WeightsStaged {
  static constexpr std::string_view kName = "weights.staged";
  static constexpr std::uint32_t kTag = 63, kVersion = 1, kOldestVersion = 1;
  PolicyVersion version;
  std::string error;
};
void describe(auto& v, WeightsStaged& m) {
  v.field(1, "version", m.version, {.doc = "Version staged."});
  v.field(2, "error", m.error, {.doc = "Why staging failed; empty if it succeeded."});
}

/// Make the staged version current before the next step.
struct CommitWeights {
  static constexpr std::string_view kName = "weights.commit";
  static constexpr std::uint32_t kTag = 64, kVersion = 1, kOldestVersion = 1;
  PolicyVersion version;
};
void describe(auto& v, CommitWeights& m) {
  v.field(1, "version", m.version, {.doc = "Version to switch to."});
}

struct WeightsCommitted {
  static constexpr std::string_view kName = "weights.committed";
  static constexpr std::uint32_t kTag = 65, kVersion = 1, kOldestVersion = 1;
  PolicyVersion version;
  std::string error;
};
void describe(auto& v, WeightsCommitted& m) {
  v.field(1, "version", m.version, {.doc = "Version that is now in use."});
  v.field(2, "error", m.error, {.doc = "Why the commit failed; empty if it succeeded."});
}

/// One action of a role switch (docs/explanation/co-location.md, section 2.2), performed by the
/// actor that owns the memory.
enum class SwitchAction {
  Interrupt,         ///< rollout: hand back running responses with their prefixes.
  FreeKv,            ///< rollout
  FreeWeights,       ///< rollout
  AllocateKv,        ///< rollout
  OffloadOptimizer,  ///< trainer
  OnloadOptimizer,   ///< trainer
  OffloadReference,  ///< reference: moves its weights to the host.
  OnloadReference,   ///< reference
};

struct Switch {
  static constexpr std::string_view kName = "placement.switch";
  static constexpr std::uint32_t kTag = 70, kVersion = 1, kOldestVersion = 1;
  SwitchAction action = SwitchAction::Interrupt;
  std::vector<CardId> cards{};
};
void describe(auto& v, Switch& m) {
  v.field(1, "action", m.action, {.doc = "The action."});
  v.field(
      2,
      "cards",
      m.cards,
      {.doc =
           "For onloading: the cards that the actor may use from now on; empty: all its cards."});
}

/// Cost of an action. Device and host bytes are counted by the engine; process bytes are resident
/// memory.
struct SwitchCost {
  Duration duration{};
  Bytes device_before, device_after;
  Bytes host_before, host_after;
  Bytes process_peak, process_after;
};
void describe(auto& v, SwitchCost& c) {
  v.field(1, "duration", c.duration, {.doc = "Wall time of the action."});
  v.field(2, "device_before", c.device_before, {.doc = "Bytes on the card before."});
  v.field(3, "device_after", c.device_after, {.doc = "Bytes on the card after."});
  v.field(4, "host_before", c.host_before, {.doc = "Bytes parked on the host before."});
  v.field(5, "host_after", c.host_after, {.doc = "Bytes parked on the host after."});
  v.field(6, "process_peak", c.process_peak, {.doc = "Highest resident memory so far."});
  v.field(7, "process_after", c.process_after, {.doc = "Resident memory after."});
}

struct Switched {
  static constexpr std::string_view kName = "placement.switched";
  static constexpr std::uint32_t kTag = 71, kVersion = 1, kOldestVersion = 1;
  SwitchAction action = SwitchAction::Interrupt;
  SwitchCost cost;
  std::string error;
};
void describe(auto& v, Switched& m) {
  v.field(1, "action", m.action, {.doc = "The action."});
  v.field(2, "cost", m.cost, {.doc = "Time and bytes."});
  v.field(3, "error", m.error, {.doc = "Why the action failed; empty if it succeeded."});
}

}  // namespace actors

template <>
struct EnumNames<actors::SwitchAction> {
  using A = actors::SwitchAction;
  static constexpr std::array<std::pair<A, std::string_view>, 8> value{
      {{A::Interrupt, "interrupt"},
       {A::FreeKv, "free_kv"},
       {A::FreeWeights, "free_weights"},
       {A::AllocateKv, "allocate_kv"},
       {A::OffloadOptimizer, "offload_optimizer"},
       {A::OnloadOptimizer, "onload_optimizer"},
       {A::OffloadReference, "offload_reference"},
       {A::OnloadReference, "onload_reference"}}};
};

}  // namespace temper
