// Device usage of an actor since its start, from which MFU, bytes per network plane and memory
// high-water marks are computed. Part of an activity report. Cumulative, so the last report is
// sufficient.
#pragma once

#include "core/describe.hpp"
#include "core/units.hpp"

#include <optional>
#include <string>
#include <vector>

namespace temper::actors {

/// A network plane: a level of the interconnect, or one direction of the link to the host.
struct PlaneUse {
  std::string plane;
  Bytes bytes;
  BytesPerSecond bandwidth;
  bool operator==(const PlaneUse&) const = default;
};
void describe(auto& v, PlaneUse& m) {
  v.field(1, "plane", m.plane, {.doc = "Name of the level, `to host` or `from host`."});
  v.field(2, "bytes", m.bytes, {.doc = "Bytes moved by all devices; each byte counts once."});
  v.field(3, "bandwidth", m.bandwidth, {.doc = "Bandwidth of one device in one direction."});
}

/// Memory of one device, or its share of host memory.
struct MemoryUse {
  Bytes peak;
  Bytes predicted;
  Bytes capacity;
  bool operator==(const MemoryUse&) const = default;
};
void describe(auto& v, MemoryUse& m) {
  v.field(1, "peak", m.peak, {.doc = "Highest usage."});
  v.field(2,
          "predicted",
          m.predicted,
          {.doc = "Highest usage predicted by the memory ledger before the run."});
  v.field(3, "capacity", m.capacity, {.doc = "Available memory."});
}

/// Work of a simulated rollout engine.
struct EngineUse {
  std::int64_t prefill_devices = 0;
  Duration prefill{};
  Duration decode{};
  std::int64_t decode_tokens = 0;
  bool operator==(const EngineUse&) const = default;
};
void describe(auto& v, EngineUse& m) {
  v.field(1,
          "prefill_devices",
          m.prefill_devices,
          {.doc = "Devices that only prefill; 0: all devices prefill and decode."});
  v.field(2,
          "prefill",
          m.prefill,
          {.doc = "Time in which those devices prefilled and sent caches, or of prefill steps in "
                  "which no response decoded."});
  v.field(3, "decode", m.decode, {.doc = "Time in which responses decoded."});
  v.field(4,
          "decode_tokens",
          m.decode_tokens,
          {.doc = "Tokens that a response would have if it had decoded all that time."});
}

/// Tensors of responses (simulation.tensors). An engine reports what it wrote, a trainer what it
/// read.
struct TensorUse {
  Bytes stored, dropped, held, fetched;
  Duration fetching{};
  bool operator==(const TensorUse&) const = default;
};
void describe(auto& v, TensorUse& m) {
  v.field(1, "stored", m.stored, {.doc = "Written to the engine's hosts."});
  v.field(2, "dropped", m.dropped, {.doc = "Of these, bytes of responses that were not trained."});
  v.field(3, "held", m.held, {.doc = "Of these, bytes that are still there."});
  v.field(4, "fetched", m.fetched, {.doc = "Read by the trainer."});
  v.field(5, "fetching", m.fetching, {.doc = "Time in which the trainer waited for them."});
}

struct Usage {
  std::int64_t devices = 0;
  Flops flops{};
  FlopsPerSecond peak{};
  std::vector<PlaneUse> planes;
  MemoryUse device, host;
  std::optional<EngineUse> engine{};
  std::optional<TensorUse> tensors{};
  bool operator==(const Usage&) const = default;
};
void describe(auto& v, Usage& m) {
  v.field(1, "devices", m.devices, {.doc = "Devices of the actor; a device is a die."});
  v.field(2, "flops", m.flops, {.doc = "Model FLOP performed, without recomputation."});
  v.field(3, "peak", m.peak, {.doc = "Dense BF16 peak of one device."});
  v.field(4, "planes", m.planes, {.doc = "Bytes moved, by plane."});
  v.field(5, "device", m.device, {.doc = "Memory of one device."});
  v.field(6, "host", m.host, {.doc = "Its share of host memory."});
  v.field(7, "engine", m.engine, {.doc = "Of a rollout engine."});
  v.field(8,
          "tensors",
          m.tensors,
          {.doc = "Tensors of responses, if they have any.", .left_out_if_empty = true});
}

}  // namespace temper::actors
