// Fault injection in a simulated cluster, and the cost of a checkpoint.
//
// The default mean times between failures are those of the training of Llama 3 405B (The Llama 3
// Herd of Models, 2024, table 5): 54 days on 16,384 H100 (2,048 hosts) with 419 unexpected
// interruptions, of which
//   card   268  (GPU 148, HBM3 72, SRAM 19, system processor 17, silent data corruption 6, thermal
//   6) host    46  (host maintenance 32, SSD 3, power 3, chassis 2, IO board 2, CPU 2, memory 2)
//   link    42  (switch and cable 35, NIC 7), counted per card
// So a card fails once in 54 d x 16,384 / 268 = 79,200 hours, and so on. The other 63 were software
// failures, which are not simulated. There is no published data on supernodes, so by default they
// do not fail.
#pragma once

#include "core/describe.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <string>

namespace temper::actors {

struct FaultConfig {
  double rate = 0;
  Duration card_mtbf = std::chrono::hours(79200);
  Duration host_mtbf = std::chrono::hours(57700);
  Duration link_mtbf = std::chrono::hours(505600);
  Duration supernode_mtbf{};
  Duration repair = std::chrono::hours(24);
  Duration link_repair = std::chrono::hours(1);
  std::int32_t spares = 0;
  Duration replacement = std::chrono::minutes(10);
  std::uint64_t seed = 0;
  std::string trace;

  bool any() const { return rate > 0 || !trace.empty(); }
};
void describe(auto& v, FaultConfig& c) {
  v.field(1, "rate", c.rate, {.doc = "Factor for all failure rates; 0: no failures.", .min = 0.0});
  v.field(2,
          "card_mtbf",
          c.card_mtbf,
          {.doc = "Mean time between failures of a card, which also fails its host; 0: never.",
           .min = Duration(0)});
  v.field(3,
          "host_mtbf",
          c.host_mtbf,
          {.doc = "Mean time between failures of a host.", .min = Duration(0)});
  v.field(4,
          "link_mtbf",
          c.link_mtbf,
          {.doc = "Mean time between failures of a card's link.", .min = Duration(0)});
  v.field(
      5,
      "supernode_mtbf",
      c.supernode_mtbf,
      {.doc = "Mean time between failures of a supernode with all its hosts.", .min = Duration(0)});
  v.field(6, "repair", c.repair, {.doc = "Time until a failed host is back.", .min = Duration(0)});
  v.field(7,
          "link_repair",
          c.link_repair,
          {.doc = "Time until a failed link or supernode is back.", .min = Duration(0)});
  v.field(
      8, "spares", c.spares, {.doc = "Number of spare hosts that replace failed ones.", .min = 0});
  v.field(9,
          "replacement",
          c.replacement,
          {.doc = "Time from a failure until a spare host is ready.", .min = Duration(0)});
  v.field(
      10, "seed", c.seed, {.doc = "Seed of the failure times, in addition to that of the run."});
  v.field(11,
          "trace",
          c.trace,
          {.doc = "File with failures to inject instead: lines `seconds,kind,index` "
                  "(docs/how-to/faults.md); on "
                  "local hardware they hit the processes of the run."});
}

/// Cost of a checkpoint of the trainer.
struct CheckpointCostConfig {
  BytesPerSecond bandwidth{};
  double bytes_per_parameter = 14;
};
void describe(auto& v, CheckpointCostConfig& c) {
  v.field(1,
          "bandwidth",
          c.bandwidth,
          {.doc = "Bandwidth of the storage for all trainer cards together; the trainer waits for "
                  "the write. 0: no wait.",
           .min = BytesPerSecond(0)});
  v.field(
      2,
      "bytes_per_parameter",
      c.bytes_per_parameter,
      {.doc = "16-bit weights, 32-bit weights and the two 32-bit moments of Adam.", .min = 0.0});
}

}  // namespace temper::actors
