// Clusters with different cards in one simulated run, and the link between them.
#pragma once

#include "core/describe.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <optional>
#include <string>

namespace temper::actors {

/// A cluster of cards of one kind.
struct ClusterConfig {
  std::string hardware;
  std::int32_t cards = 0;
  std::optional<BytesPerSecond> port{};
  bool operator==(const ClusterConfig&) const = default;
};
void describe(auto& v, ClusterConfig& c) {
  v.field(1, "hardware", c.hardware, {.doc = "Hardware, from configs/hardware or a path."});
  v.field(2,
          "cards",
          c.cards,
          {.doc = "Number of its cards, numbered after those of the previous cluster. If the "
                  "hardware describes one node, as many nodes as needed.",
           .min = 0});
  v.field(3,
          "port",
          c.port,
          {.doc = "Bandwidth of one device toward other clusters, per direction; null: the port of "
                  "its outermost level, shared with the traffic inside the cluster.",
           .min = BytesPerSecond(1e6)});
}

/// The link between any two clusters.
struct BetweenConfig {
  BytesPerSecond bandwidth{};
  Duration latency{};
  bool operator==(const BetweenConfig&) const = default;
};
void describe(auto& v, BetweenConfig& c) {
  v.field(1,
          "bandwidth",
          c.bandwidth,
          {.doc = "Total bandwidth per direction; required if there are several clusters.",
           .min = BytesPerSecond(0)});
  v.field(
      2, "latency", c.latency, {.doc = "One-way latency of an empty message.", .min = Duration(0)});
}

}  // namespace temper::actors
