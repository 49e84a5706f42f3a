// The physical constants of a hardware that no data sheet states. Each is one number with a
// meaning, fitted by `temper calibrate` or taken from a source; FitRecord names it.
#pragma once

#include "core/describe.hpp"
#include "sim_hw/hardware/collective_constants.hpp"

#include <cstdint>
#include <string>
#include <vector>

namespace temper::sim_hw {

/// Source of a group of constants, and how well they describe its data.
struct FitRecord {
  std::string constants;  ///< Names, comma-separated.
  std::string source;     ///< File and rows, or publication.
  std::int64_t rows = 0;
  double mean_error = 0;  ///< Mean absolute relative error over those rows.
  double max_error = 0;
};
void describe(auto& v, FitRecord& c) {
  v.field(1, "constants", c.constants, {.doc = "Names of the fitted constants."});
  v.field(2, "source", c.source, {.doc = "Data of the fit."});
  v.field(3, "rows", c.rows, {.doc = "Number of measurements.", .min = 0});
  v.field(4, "mean_error", c.mean_error, {.doc = "Mean absolute relative error, a fraction."});
  v.field(5, "max_error", c.max_error, {.doc = "Largest absolute relative error, a fraction."});
}

/// Constants of one device's operators; equations: sim_hw/operators/operators.hpp. Times in
/// seconds, rates as shares of the data sheet's peak, traffic in bytes. The defaults are priors:
/// counts of the reads and writes of the measured engine, and typical shares. `temper calibrate`
/// starts from them.
struct OperatorConstants {
  double matmul_boost = 0.90;
  double matmul_sustained = 0.70;
  double matmul_boost_flops = 5e11;
  double matmul_latency = 2e-6;
  double matmul_depth_latency = 4e-6;
  double matmul_backward = 1.0;
  double memory_efficiency = 0.85;
  double copy_efficiency = 0.87;
  double kernel_latency = 2e-6;
  double layer_kernels = 10;
  double norm_bytes = 4;
  double activation_bytes = 10;
  double rotary_bytes = 20;
  double attention_rate = 0.80;
  double attention_softmax = 3e-13;
  double attention_latency = 9e-6;
  double attention_block_latency = 6e-7;
  double attention_backward = 2.5;
  double attention_decode_efficiency = 0.90;
  double attention_decode_latency = 7e-6;
  double attention_decode_depth = 5e-8;
  double sampling_bytes = 46;
  double log_softmax_bytes = 22;
  double optimizer_bytes = 22;
  double optimizer_latency = 8e-4;
  double grouped_bandwidth = 0.65;
  double grouped_rate = 0.85;
  double routing_latency = 8e-5;
  double routing_bytes = 45;
  double sequence_expert_share = 0.5;
  double host_kernel = 1.1e-5;
  double host_train_kernel = 3e-5;
  double host_step = 1e-4;
  double host_untuned_step = 0;
  double reward_token = 5e-7;
};
namespace detail {

void describe_products(auto& v, OperatorConstants& c) {
  v.field(1,
          "matmul_boost",
          c.matmul_boost,
          {.doc = "Share of the matrix peak reached by a short GEMM.", .min = 0.01, .max = 1.0});
  v.field(2,
          "matmul_sustained",
          c.matmul_sustained,
          {.doc = "Share of the matrix peak under the power limit.", .min = 0.01, .max = 1.0});
  v.field(3,
          "matmul_boost_flops",
          c.matmul_boost_flops,
          {.doc = "FLOP of a GEMM with half of the boost.", .min = 1e6});
  v.field(4,
          "matmul_latency",
          c.matmul_latency,
          {.doc = "Seconds to start and drain a GEMM.", .min = 1e-8});
  v.field(5,
          "matmul_depth_latency",
          c.matmul_depth_latency,
          {.doc = "Additional seconds for an inner size of 4096 or more.", .min = 1e-8});
  v.field(6,
          "matmul_backward",
          c.matmul_backward,
          {.doc = "Time of a backward GEMM over that of a forward GEMM of the same shape.",
           .min = 0.1});
}
void describe_kernels(auto& v, OperatorConstants& c) {
  v.field(7,
          "memory_efficiency",
          c.memory_efficiency,
          {.doc = "Share of the HBM peak of streaming kernels.", .min = 0.01, .max = 1.0});
  v.field(
      8,
      "copy_efficiency",
      c.copy_efficiency,
      {.doc = "Share of the HBM peak of a device copy, read and write.", .min = 0.01, .max = 1.0});
  v.field(9,
          "kernel_latency",
          c.kernel_latency,
          {.doc = "Seconds of an elementwise kernel without data.", .min = 1e-8});
  v.field(
      10, "layer_kernels", c.layer_kernels, {.doc = "Elementwise kernels per layer.", .min = 1});
  v.field(
      11, "norm_bytes", c.norm_bytes, {.doc = "Bytes moved per element of a norm.", .min = 0.1});
  v.field(12,
          "activation_bytes",
          c.activation_bytes,
          {.doc = "Bytes moved per element of the gated activation.", .min = 0.1});
  v.field(13,
          "rotary_bytes",
          c.rotary_bytes,
          {.doc = "Bytes moved per query and key element of the rotary embedding.", .min = 0.1});
}
void describe_attention(auto& v, OperatorConstants& c) {
  v.field(14,
          "attention_rate",
          c.attention_rate,
          {.doc = "Share of the matrix peak of the two matrix products of attention.",
           .min = 0.01,
           .max = 0.9});
  v.field(15,
          "attention_softmax",
          c.attention_softmax,
          {.doc = "Seconds of the exponential per score.", .min = 1e-16});
  v.field(16,
          "attention_latency",
          c.attention_latency,
          {.doc = "Seconds to start attention over many queries.", .min = 1e-8});
  v.field(17,
          "attention_block_latency",
          c.attention_block_latency,
          {.doc = "Seconds per block of 128 keys, one after the other.", .min = 1e-10});
  v.field(18,
          "attention_backward",
          c.attention_backward,
          {.doc = "Time of attention backward over forward.", .min = 0.5});
  v.field(19,
          "attention_decode_efficiency",
          c.attention_decode_efficiency,
          {.doc = "Share of the HBM peak when reading keys and values.", .min = 0.01, .max = 1.0});
  v.field(20,
          "attention_decode_latency",
          c.attention_decode_latency,
          {.doc = "Seconds to start attention of one query.", .min = 1e-8});
  v.field(21,
          "attention_decode_depth",
          c.attention_decode_depth,
          {.doc = "Additional seconds per element of the head size.", .min = 1e-11});
}
void describe_ends(auto& v, OperatorConstants& c) {
  v.field(22,
          "sampling_bytes",
          c.sampling_bytes,
          {.doc = "Bytes moved per vocabulary entry by sampling.", .min = 1});
  v.field(23,
          "log_softmax_bytes",
          c.log_softmax_bytes,
          {.doc = "Bytes moved per vocabulary entry by a log-softmax.", .min = 1});
  v.field(24,
          "optimizer_bytes",
          c.optimizer_bytes,
          {.doc = "Bytes moved per parameter by AdamW with its states in BF16.", .min = 1});
  v.field(25,
          "optimizer_latency",
          c.optimizer_latency,
          {.doc = "Seconds of an optimizer step without parameters.", .min = 1e-8});
}
void describe_experts(auto& v, OperatorConstants& c) {
  v.field(26,
          "grouped_bandwidth",
          c.grouped_bandwidth,
          {.doc = "Share of the HBM peak of a grouped GEMM that is bound by reading its experts.",
           .min = 0.01,
           .max = 1.0});
  v.field(27,
          "grouped_rate",
          c.grouped_rate,
          {.doc = "Share of the matrix peak of a grouped GEMM, padding included.",
           .min = 0.01,
           .max = 1.0});
  v.field(28,
          "routing_latency",
          c.routing_latency,
          {.doc = "Seconds of the router's kernels without data.", .min = 1e-8});
  v.field(29,
          "routing_bytes",
          c.routing_bytes,
          {.doc = "Bytes moved per element of each routed copy of a token.", .min = 1});
  v.field(30,
          "sequence_expert_share",
          c.sequence_expert_share,
          {.doc = "Share of the experts that one sequence reaches with random weights.",
           .min = 0.01,
           .max = 1.0});
}
void describe_host(auto& v, OperatorConstants& c) {
  v.field(31,
          "host_kernel",
          c.host_kernel,
          {.doc = "Host seconds per eager kernel in inference.", .min = 1e-8});
  v.field(32,
          "host_train_kernel",
          c.host_train_kernel,
          {.doc = "Host seconds per eager kernel that autograd records.", .min = 1e-8});
  v.field(33, "host_step", c.host_step, {.doc = "Host seconds per step.", .min = 1e-8});
  v.field(34,
          "host_untuned_step",
          c.host_untuned_step,
          {.doc = "Seconds that an untuned host adds to a decode step of a rollout.", .min = 0.0});
  v.field(35,
          "reward_token",
          c.reward_token,
          {.doc = "Host seconds per token of a rule-based reward.", .min = 0.0});
}

}  // namespace detail

void describe(auto& v, OperatorConstants& c) {
  detail::describe_products(v, c);
  detail::describe_kernels(v, c);
  detail::describe_attention(v, c);
  detail::describe_ends(v, c);
  detail::describe_experts(v, c);
  detail::describe_host(v, c);
}

/// The contents of configs/calibration/NAME.yaml, which extend configs/hardware/NAME.yaml. Written
/// by `temper calibrate`.
struct Calibration {
  OperatorConstants operators;
  std::vector<FitRecord> fits;
  std::string taken_over_from{};  ///< Another hardware that these operators come from; empty:
                                  ///< fitted to this one.
};
void describe(auto& v, Calibration& c) {
  v.field(3,
          "taken_over_from",
          c.taken_over_from,
          {.doc = "Hardware that these constants were taken from."});
  v.field(1, "operators", c.operators, {.doc = "Constants of the operators of one device."});
  v.field(2, "fits", c.fits, {.doc = "Data and error of the fits."});
}

struct HardwareConstants {
  OperatorConstants operators;
  CollectiveConstants collectives;
};
void describe(auto& v, HardwareConstants& c) {
  v.field(1, "operators", c.operators, {.doc = "Constants of the operators of one device."});
  v.field(2, "collectives", c.collectives, {.doc = "Constants of communication."});
}

}  // namespace temper::sim_hw
