// Constants of collectives that no data sheet states: start-up costs, the share of a link's
// bandwidth that a library reaches, and where it changes its protocol. Equations:
// sim_hw/network/collectives.hpp.
#pragma once

#include "core/describe.hpp"

namespace temper::sim_hw {

/// One operation: t = start_up + per_peer (n - 1) + y + 2 sqrt(segment y), y = bytes / (efficiency
/// B).
struct CollectiveOperation {
  Duration start_up{};    ///< Independent of the number of ranks.
  Duration per_peer{};    ///< Per other rank of the node.
  double efficiency = 1;  ///< Share of the nominal link bandwidth.
  Duration segment{};     ///< Cost of a segment of a pipelined transfer; 0: not pipelined.
};
void describe(auto& v, CollectiveOperation& c) {
  v.field(1, "start_up", c.start_up, {.doc = "Fixed cost.", .min = Duration(0)});
  v.field(
      2, "per_peer", c.per_peer, {.doc = "Cost per other rank of the node.", .min = Duration(0)});
  v.field(3,
          "efficiency",
          c.efficiency,
          {.doc = "Share of the nominal link bandwidth.", .min = 0.01, .max = 1.2});
  v.field(
      4,
      "segment",
      c.segment,
      {.doc = "Cost of a segment of a pipelined transfer; 0: not pipelined.", .min = Duration(0)});
}

struct CollectiveConstants {
  CollectiveOperation all_gather;
  CollectiveOperation reduce_scatter;
  CollectiveOperation
      all_reduce;  ///< Used where switches reduce; otherwise reduce_scatter + all_gather.
  CollectiveOperation all_to_all;
  CollectiveOperation dispatch;  ///< The MoE dispatch kernel.
  CollectiveOperation combine;
  CollectiveOperation p2p;  ///< Its start_up is also the cost of a tree step between nodes.
  bool in_switch_reduction = false;
  Bytes small_limit{};  ///< Larger messages per rank use the bulk protocol; 0: there is no small
                        ///< protocol.
  Duration small_start_up{};
  double small_efficiency = 1;
  Duration bulk_floor{};  ///< Least time of a bulk operation with 8 ranks or more.
};
void describe(auto& v, CollectiveConstants& c) {
  v.field(1, "all_gather", c.all_gather, {.doc = "All-gather."});
  v.field(2, "reduce_scatter", c.reduce_scatter, {.doc = "Reduce-scatter."});
  v.field(3, "all_reduce", c.all_reduce, {.doc = "All-reduce in the switches of a node."});
  v.field(4, "all_to_all", c.all_to_all, {.doc = "All-to-all."});
  v.field(5, "dispatch", c.dispatch, {.doc = "MoE dispatch kernel."});
  v.field(6, "combine", c.combine, {.doc = "MoE combine kernel."});
  v.field(7,
          "p2p",
          c.p2p,
          {.doc = "Send and receive; its start-up is also a tree step between nodes."});
  v.field(8, "in_switch_reduction", c.in_switch_reduction, {.doc = "Whether switches can reduce."});
  v.field(9,
          "small_limit",
          c.small_limit,
          {.doc = "Largest message per rank of the small protocol.", .min = Bytes(0)});
  v.field(10,
          "small_start_up",
          c.small_start_up,
          {.doc = "Start-up of the small protocol.", .min = Duration(0)});
  v.field(11,
          "small_efficiency",
          c.small_efficiency,
          {.doc = "Share of the link bandwidth that the small protocol reaches.",
           .min = 0.01,
           .max = 1.2});
  v.field(12,
          "bulk_floor",
          c.bulk_floor,
          {.doc = "Least time of the bulk protocol with 8 ranks or more.", .min = Duration(0)});
}

}  // namespace temper::sim_hw
