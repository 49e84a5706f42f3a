// Switches of a training step. Each turns one mechanism of MoE training systems on or off, so that
// an ablation can measure its effect. Effects on time, bytes and memory are modeled where these are
// computed (layer_cost.hpp, train_iteration.hpp, sim_hw/memory/ledger.hpp); no switch is a factor
// taken from a published gain. The defaults are the plain step. Effects of load and length traces
// enter TrainShape as numbers. Values only; no threads.
#pragma once

#include "core/describe.hpp"

#include <cstdint>

namespace temper::sim_hw {

/// Path of tokens to their experts and back.
enum class ExpertPath {
  Fastest,       ///< Flat or hierarchical, whichever is faster.
  Flat,          ///< One copy per chosen expert, directly to its device.
  Hierarchical,  ///< One copy per node that needs the token, forwarded inside the node.
  Gathered,  ///< Every token to every node in one all-gather, then an exchange inside each node.
};

/// Copies sent for a token that several experts of one device need.
enum class TokenCopies { PerExpert, PerDevice };

/// Order of the forward and backward passes of micro-batches.
enum class PipelineSchedule {
  OneForwardOneBackward,  ///< Interleaved with more than one chunk per stage.
  DualPipe,      ///< From both ends at once on two copies of the weights; passes overlap in pairs.
  AdaptivePipe,  ///< Interleaved, one copy; a forward pass overlaps the backward of another
                 ///< micro-batch.
};

/// Kernels of attention, matrix products and vector operators (sim_hw/operators/device.hpp).
enum class OperatorKernels {
  Fused,  ///< As the hardware's constants describe them.
  Plain,  ///< Before fusion and pipelining.
};

/// How the host launches kernels (sim_hw/parallel/host_dispatch.hpp).
enum class HostDispatch {
  Ahead,  ///< Launches take no time.
  Eager,  ///< One by one, in the order of the program, from cores that are not bound.
  Tuned,  ///< From bound cores; what depends on no sizes is launched before a wait for them.
};

/// How the host learns the sizes of an uneven all-to-all. Each fetch drains the device before the
/// host can launch again.
enum class SplitCounts {
  Known,        ///< No fetch: fixed capacities.
  FetchedOnce,  ///< Fetched at dispatch; combine and the backward pass reuse them.
  FetchedEach,  ///< Fetched for every all-to-all.
};

/// Tokens over which the load-balance loss counts the load of experts.
enum class BalanceLoss {
  MicroBatch,  ///< Tokens of one device: no exchange.
  ExpertGroup,
  Everywhere,  ///< Tokens of all replicas.
};

struct Mechanisms {
  ExpertPath expert_path = ExpertPath::Fastest;
  TokenCopies token_copies = TokenCopies::PerExpert;
  PipelineSchedule schedule = PipelineSchedule::OneForwardOneBackward;
  OperatorKernels operators = OperatorKernels::Fused;
  HostDispatch host_dispatch = HostDispatch::Ahead;
  SplitCounts split_counts = SplitCounts::Known;
  BalanceLoss balance_loss = BalanceLoss::MicroBatch;

  bool operator==(const Mechanisms&) const = default;
};
void describe(auto& v, Mechanisms& c) {
  v.field(1,
          "expert_path",
          c.expert_path,
          {.doc = "Path of tokens to experts; auto: flat or hierarchical, whichever is faster."});
  v.field(
      2,
      "token_copies",
      c.token_copies,
      {.doc = "Copies of a token: one per chosen expert, or one per device with chosen experts."});
  v.field(3,
          "schedule",
          c.schedule,
          {.doc = "Pipeline schedule: 1f1b (interleaved with vpp > 1), dualpipe or adaptive."});
  v.field(
      4, "operators", c.operators, {.doc = "Fused kernels, or plain kernels before acceleration."});
  v.field(5,
          "host_dispatch",
          c.host_dispatch,
          {.doc = "How the host launches kernels. `ahead`: in no time; `eager`: one by one, from "
                  "cores that are not bound; `tuned`: from bound cores, shared experts before a "
                  "wait for sizes."});
  v.field(6,
          "split_counts",
          c.split_counts,
          {.doc = "How often the host fetches the sizes of uneven all-to-alls."});
  v.field(7,
          "balance_loss",
          c.balance_loss,
          {.doc = "Devices over which the load-balance loss counts tokens."});
}

}  // namespace temper::sim_hw

template <>
struct temper::EnumNames<temper::sim_hw::ExpertPath> {
  using E = sim_hw::ExpertPath;
  static constexpr std::array<std::pair<E, std::string_view>, 4> value{
      {{E::Fastest, "auto"},
       {E::Flat, "flat"},
       {E::Hierarchical, "hierarchical"},
       {E::Gathered, "gathered"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::TokenCopies> {
  using E = sim_hw::TokenCopies;
  static constexpr std::array<std::pair<E, std::string_view>, 2> value{
      {{E::PerExpert, "per_expert"}, {E::PerDevice, "per_device"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::PipelineSchedule> {
  using E = sim_hw::PipelineSchedule;
  static constexpr std::array<std::pair<E, std::string_view>, 3> value{
      {{E::OneForwardOneBackward, "1f1b"},
       {E::DualPipe, "dualpipe"},
       {E::AdaptivePipe, "adaptive"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::OperatorKernels> {
  using E = sim_hw::OperatorKernels;
  static constexpr std::array<std::pair<E, std::string_view>, 2> value{
      {{E::Fused, "fused"}, {E::Plain, "plain"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::HostDispatch> {
  using E = sim_hw::HostDispatch;
  static constexpr std::array<std::pair<E, std::string_view>, 3> value{
      {{E::Ahead, "ahead"}, {E::Eager, "eager"}, {E::Tuned, "tuned"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::SplitCounts> {
  using E = sim_hw::SplitCounts;
  static constexpr std::array<std::pair<E, std::string_view>, 3> value{
      {{E::Known, "known"}, {E::FetchedOnce, "fetched_once"}, {E::FetchedEach, "fetched_each"}}};
};
template <>
struct temper::EnumNames<temper::sim_hw::BalanceLoss> {
  using E = sim_hw::BalanceLoss;
  static constexpr std::array<std::pair<E, std::string_view>, 3> value{
      {{E::MicroBatch, "micro_batch"},
       {E::ExpertGroup, "expert_group"},
       {E::Everywhere, "everywhere"}}};
};
