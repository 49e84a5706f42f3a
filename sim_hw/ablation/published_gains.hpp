// Gains that the authors of MoE training systems report for their mechanisms:
// configs/validation/moe_mechanisms.yaml. Compared with predictions, never used in them. Values
// only.
#pragma once

#include "core/describe.hpp"

namespace temper::sim_hw {

/// Throughput and MFU of a whole system.
struct PublishedSpeed {
  double million_tokens_per_second = 0;
  double mfu_percent = 0;
};
void describe(auto& v, PublishedSpeed& c) {
  v.field(1,
          "million_tokens_per_second",
          c.million_tokens_per_second,
          {.doc = "Throughput of all devices."});
  v.field(2, "mfu_percent", c.mfu_percent, {.doc = "Model FLOPs utilization in percent."});
}

/// Published effects as fractions: 0.15 is +15 %.
struct PublishedGains {
  double hierarchical_exchange = 0;
  double internode_merge = 0;
  double hidden_communication = 0;
  double weights_against_dualpipe = 0;
  double load_balance = 0;
  double load_balance_and_overlap = 0;
  double activation_memory = 0;
  double doubled_micro_batch = 0;
  double reused_counts = 0;
  double host_dispatch = 0;
  double operators = 0;
  PublishedSpeed before;  ///< With all mechanisms off, as far as the authors say.
  PublishedSpeed after;
};
void describe(auto& v, PublishedGains& c) {
  v.field(1,
          "hierarchical_exchange",
          c.hierarchical_exchange,
          {.doc = "Gain of dispatch and combine over a flat all-to-all."});
  v.field(2, "internode_merge", c.internode_merge, {.doc = "Gain of throughput; MindSpore."});
  v.field(3,
          "hidden_communication",
          c.hidden_communication,
          {.doc = "Share of expert communication that Adaptive Pipe hides."});
  v.field(4,
          "weights_against_dualpipe",
          c.weights_against_dualpipe,
          {.doc = "Effect of Adaptive Pipe on the weights per device."});
  v.field(5, "load_balance", c.load_balance, {.doc = "Gain of throughput with EDPB."});
  v.field(6,
          "load_balance_and_overlap",
          c.load_balance_and_overlap,
          {.doc = "Gain of throughput with EDPB, hierarchical all-to-all and Adaptive Pipe."});
  v.field(7,
          "activation_memory",
          c.activation_memory,
          {.doc = "Effect of selective recompute and swap on activations."});
  v.field(8,
          "doubled_micro_batch",
          c.doubled_micro_batch,
          {.doc = "Gain of throughput with the doubled micro-batch that this allows."});
  v.field(9,
          "reused_counts",
          c.reused_counts,
          {.doc = "Gain of throughput when sizes are fetched once."});
  v.field(10, "host_dispatch", c.host_dispatch, {.doc = "Gain of throughput."});
  v.field(11, "operators", c.operators, {.doc = "Gain of throughput with faster kernels."});
  v.field(12, "before", c.before, {.doc = "The whole system without the mechanisms."});
  v.field(13, "after", c.after, {.doc = "The whole system with all mechanisms."});
}

}  // namespace temper::sim_hw
