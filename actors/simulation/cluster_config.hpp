// Clusters of different cards in one simulated run, and the link between them.
#pragma once

#include "core/describe.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace temper::actors {

/// Cards of one kind.
struct ClusterConfig {
  std::string hardware;
  std::int32_t cards = 0;
  std::optional<BytesPerSecond> port{};
  bool operator==(const ClusterConfig&) const = default;
};
template <class V>
void describe(V& v, ClusterConfig& c) {
  v.field(1, "hardware", c.hardware, {.doc = "Hardware, from configs/hardware or a path."});
  v.field(2,
          "cards",
          c.cards,
          {.doc = "Its cards, numbered on from those of the cluster before. Where the hardware is "
                  "one node, as many nodes as they need.",
           .min = 0});
  v.field(3,
          "port",
          c.port,
          {.doc = "Of one device towards other clusters, per direction; null: the port of its "
                  "outermost level, which it then shares with what is inside.",
           .min = BytesPerSecond(1e6)});
}

/// Between any two of the clusters.
struct BetweenConfig {
  BytesPerSecond bandwidth{};
  Duration latency{};
  bool operator==(const BetweenConfig&) const = default;
};
template <class V>
void describe(V& v, BetweenConfig& c) {
  v.field(1,
          "bandwidth",
          c.bandwidth,
          {.doc = "Per direction, of all that crosses together; needed where there are several "
                  "clusters.",
           .min = BytesPerSecond(0)});
  v.field(2, "latency", c.latency, {.doc = "One way, empty message.", .min = Duration(0)});
}

}  // namespace temper::actors
