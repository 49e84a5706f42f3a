// Ablation rows of one device and its host: activations, kernels, dispatch.
#include "sim_hw/ablation/rows.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/parallel/activation_choice.hpp"
#include "sim_hw/parallel/host_dispatch.hpp"
#include "sim_hw/steps/steps.hpp"

#include <fmt/format.h>

#include <bit>

namespace temper::sim_hw {
namespace {

double first_stage_activations(const MoeSystem& m) {
  return train_ledger(*m.model, m.layout, m.shape, 0).activations;
}

MoeSystem dispatched(const MoeSystem& base, HostDispatch host, SplitCounts counts) {
  return with(base, [&](MoeSystem& m) {
    m.shape.mechanisms.host_dispatch = host;
    m.shape.mechanisms.split_counts = counts;
  });
}

/// A host whose cores are not bound, and that waits for sizes at once, compared with a tuned one.
AblationRow dispatch_row(std::string mechanism,
                         std::string_view conditions,
                         const MoeSystem& base,
                         std::optional<double> published) {
  return throughput_row(std::move(mechanism),
                        conditions,
                        dispatched(base, HostDispatch::Eager, SplitCounts::FetchedOnce),
                        dispatched(base, HostDispatch::Tuned, SplitCounts::FetchedOnce),
                        published);
}

AblationRow stalls_row(std::string mechanism,
                       std::string_view conditions,
                       const MoeSystem& base,
                       HostDispatch host,
                       std::optional<double> published) {
  return throughput_row(std::move(mechanism),
                        conditions,
                        dispatched(base, host, SplitCounts::FetchedEach),
                        dispatched(base, host, SplitCounts::FetchedOnce),
                        published);
}

/// Share of matrix products, attention and vector operators in a layer's compute.
double accelerated_share(const MoeSystem& m) {
  const StageTime& t = m.expert_layer().time;
  const double compute = t.matmul + t.attention + t.elementwise + t.experts;
  const double sorted = as_double(m.model->moe->top_k) * m.device.k.routing_bytes *
                        as_double(m.model->hidden) * as_double(m.shape.seq * m.shape.micro_batch) /
                        as_double(m.layout.tp) / m.device.bandwidth;
  return 1 - 3 * sorted / compute;  // Sort and combine: once forward, twice backward.
}

constexpr std::string_view kSmall = "718B as above, but 1 x 256 tokens per micro-batch";

/// Host dispatch with the published micro-batch, and with small ones.
void add_dispatch_rows(const AblationSystems& systems, const MoeSystem& small, AblationRows& rows) {
  AblationRow row = dispatch_row(
      "host-device dispatch", kPanguConditions, systems.pangu, systems.published.host_dispatch);
  const double launch = systems.pangu.device.k.host_train_kernel;
  const double kernels =
      kForwardKernels + kBackwardKernels + kRecomputeKernels + 4 * kRoutingKernels;
  const auto ahead = dispatched(systems.pangu, HostDispatch::Ahead, SplitCounts::Known);
  const double layer = ahead.expert_layer().time.total();
  const double waits = dispatched(systems.pangu, HostDispatch::Eager, SplitCounts::FetchedOnce)
                           .expert_layer()
                           .time.host;
  row.why = fmt::format(
      "The {:.0f} kernels of a layer, as counted in eager PyTorch, at {:.0f} us each, take the "
      "host {:.1f} ms and the device {:.0f} ms with 16384 tokens. So a host is ahead again soon "
      "after it waited for the sizes of a dispatch, and a layer waits {:.0f} us. A gain of "
      "{:.0f} % needs {:.1f} ms: other processes on the host and devices that arrive late are not "
      "modeled.",
      kernels,
      launch * 1e6,
      kernels * launch * 1e3,
      layer * 1e3,
      waits * 1e6,
      systems.published.host_dispatch * 100,
      systems.published.host_dispatch * layer * 1e3);
  rows.push_back(row);
  row = dispatch_row(
      "host-device dispatch, small batches", kSmall, small, systems.published.host_dispatch);
  row.input = AblationInput::Assumed;
  const auto part = [&](HostDispatch host) {
    return dispatched(small, host, SplitCounts::FetchedOnce).tokens_per_second();
  };
  row.why = fmt::format(
      "Dispatch-bound, as the authors report for small batches; their batch is not published. A "
      "launch takes {:.3f} times as long from cores that are not bound. With launches that take "
      "no time, the gain would be {}.",
      kUnboundLaunch,
      effect_text(part(HostDispatch::Ahead) / part(HostDispatch::Eager) - 1));
  rows.push_back(row);
}

}  // namespace

void add_activation_rows(const AblationSystems& systems, AblationRows& rows) {
  const MoeSystem kept =
      with(systems.pangu, [](MoeSystem& m) { m.shape.recompute = Recompute::None; });
  const MoeSystem chosen = with_chosen_activations(systems.pangu);
  AblationRow row;
  row.mechanism = "selective recompute and swap: memory";
  row.conditions = "as above, without full recompute";
  row.figure = "activations of stage 0";
  row.off = fmt::format("{:.1f} GiB", first_stage_activations(kept) / kGib);
  row.on = fmt::format("{:.1f} GiB", first_stage_activations(chosen) / kGib);
  row.predicted = first_stage_activations(chosen) / first_stage_activations(kept) - 1;
  row.published = systems.published.activation_memory;
  row.why = fmt::format(
      "Tensors are dropped until the ledger fits {:.1f} GiB, so the memory that weights and states "
      "leave decides: in a layer with experts, {} tensors are recomputed and {} swapped.",
      memory_limits(*systems.pangu.hardware).device / kGib,
      std::popcount(chosen.shape.activations.experts.recomputed),
      std::popcount(chosen.shape.activations.experts.swapped));
  rows.push_back(row);
  const MoeSystem single = with(systems.pangu, [](MoeSystem& m) {
    m.shape.micro_batch = 1;  // Keeps the tokens per step.
  });
  row = throughput_row("selective recompute and swap: micro-batch doubled",
                       "as above; off: one sequence per micro-batch, full recompute",
                       single,
                       chosen,
                       systems.published.doubled_micro_batch);
  row.why = fmt::format(
      "Doubling the micro-batch alone gives {}, because the bubble grows; the rest is recompute "
      "that is saved. The authors' baseline recomputed less than everything.",
      effect_text(systems.pangu.tokens_per_second() / single.tokens_per_second() - 1));
  rows.push_back(row);
}

void add_host_rows(const AblationSystems& systems, AblationRows& rows) {
  const double published = systems.published.reused_counts;
  AblationRow row = stalls_row("AlltoAllV counts reused: stalls of a layer 4 -> 1",
                               kDeepSeekConditions,
                               systems.deepseek,
                               HostDispatch::Ahead,
                               published);
  const double stall =
      systems.deepseek.fabric.host_latency + systems.deepseek.device.k.host_train_kernel;
  row.why = fmt::format(
      "A stall is a copy to the host and a launch, {:.0f} us (6 stalls with full recompute); a "
      "layer takes {:.0f} ms. Gaining {:.0f} % needs stalls of {:.1f} ms: slowly filling queues "
      "and devices that arrive late are not modeled.",
      stall * 1e6,
      systems.deepseek.expert_layer().time.total() * 1e3,
      published * 100,
      published * systems.deepseek.expert_layer().time.total() / 5 * 1e3);
  rows.push_back(row);
  const MoeSystem small = with(systems.pangu, [](MoeSystem& m) {
    m.shape.micro_batch = 1;
    m.shape.global_batch /= 2;
    m.shape.seq = 256;
  });
  row = stalls_row("the same, small batches and a host that launches each kernel",
                   kSmall,
                   small,
                   HostDispatch::Eager,
                   published);
  row.input = AblationInput::Assumed;
  row.why = fmt::format("A layer takes {:.0f} ms, and each stall also ends the host's lead.",
                        small.expert_layer().time.total() * 1e3);
  rows.push_back(row);
  add_dispatch_rows(systems, small, rows);
}

void add_operator_rows(const AblationSystems& systems, AblationRows& rows) {
  const auto plain = [](const MoeSystem& base) {
    return with(base, [](MoeSystem& m) { m.shape.mechanisms.operators = OperatorKernels::Plain; });
  };
  const MoeSystem& pangu = systems.pangu;
  AblationRow row = throughput_row(
      "operator acceleration", kPanguConditions, plain(pangu), pangu, systems.published.operators);
  const MoeSystem hidden = with(
      pangu, [](MoeSystem& m) { m.shape.mechanisms.schedule = PipelineSchedule::AdaptivePipe; });
  row.why = fmt::format(
      "From the separate gains of attention, matrix products and vector operators, which are {} of "
      "compute here (authors: over 75 %). With expert communication hidden: {}.",
      percent_text(accelerated_share(plain(pangu)), 1),
      effect_text(hidden.tokens_per_second() / plain(hidden).tokens_per_second() - 1));
  rows.push_back(row);
}

}  // namespace temper::sim_hw
