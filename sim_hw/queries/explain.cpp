#include "sim_hw/queries/explain.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::sim_hw {
namespace {

std::string equation(const Device& d, const OpTerm& t) {
  const OpSizes& s = t.sizes;
  switch (t.op) {
    case Op::Attention:
      return fmt::format(
          "batch={} length={} heads={}: many queries {:.1f}us + scores (FLOP / {:.0f}TFLOP/s + "
          "{:.2g}ps) + traffic{}; one query {:.1f}us + KV bytes / {:.2f}TB/s",
          s.a,
          s.b,
          s.c,
          d.k.attention_latency * 1e6,
          1e-12 / d.attention_cost,
          d.k.attention_softmax * 1e12,
          t.pass == Pass::Backward ? fmt::format(", all x {:.2f}", d.k.attention_backward) : "",
          d.k.attention_decode_latency * 1e6,
          d.decode_bandwidth / 1e12);
    case Op::Experts:
      return fmt::format(
          "{:.1f}us + sqrt((weights of {:.1f} experts / {:.2f}TB/s)^2 + ({:.1f} tiles of 128 rows "
          "at {:.0f}TFLOP/s)^2) + {:.0f} copies x ({:.0f} hidden + {:.0f} ffn) bytes / {:.2f}TB/s",
          d.k.routing_latency * 1e6,
          s.b,
          d.grouped_bandwidth / 1e12,
          s.c,
          1e-12 / d.grouped_cost,
          s.a,
          d.k.routing_bytes,
          d.k.activation_bytes,
          d.bandwidth / 1e12);
    case Op::Elementwise:
    case Op::Sampling:
    case Op::LogSoftmax:
    case Op::HeadGradient:
      return fmt::format("{:.0f} x {:.2f}us + {:.3f}MB / {:.2f}TB/s",
                         s.a,
                         d.k.kernel_latency * 1e6,
                         s.b / 1e6,
                         d.bandwidth / 1e12);
    case Op::Optimizer:
      return fmt::format("{:.2f}ms + {:.4g} parameters x {:.1f}B / {:.2f}TB/s",
                         d.k.optimizer_latency * 1e3,
                         s.a,
                         d.k.optimizer_bytes,
                         d.bandwidth / 1e12);
    case Op::TensorParallel:
    case Op::Dispatch:
    case Op::Combine:
      return fmt::format("{:.0f} ranks, {:.1f}kB per rank", s.a, s.b / 1e3);
    case Op::Other:
      return "";
    default:
      if (t.pass != Pass::Backward)
        return gemm_equation(d, Heat::Sustained, s);
      return fmt::format("{:.2f} x ({} and {})",
                         d.k.matmul_backward,
                         gemm_equation(d, Heat::Sustained, {s.a, s.c, s.b}),
                         gemm_equation(d, Heat::Sustained, {s.b, s.c, s.a}));
  }
}

}  // namespace

std::string gemm_equation(const Device& d, Heat heat, OpSizes s) {
  const double cost = gemm_cost(d, heat, s.a, s.b, s.c);
  return fmt::format(
      "m={} n={} k={}: {:.2f}us + |2 x {:.0f} nk / {:.0f}TFLOP/s, 2(mk + nk) / {:.2f}TB/s|4 + 2mn "
      "/ {:.2f}TB/s",
      s.a,
      s.b,
      s.c,
      gemm_latency(d, s.c) * 1e6,
      padded_rows(s.a),
      1e-12 / cost,
      d.bandwidth / 1e12,
      d.bandwidth / 1e12);
}

std::vector<Term> explain(const Device& d, const std::vector<OpTerm>& list, double scale) {
  std::vector<Term> terms;
  for (const OpTerm& t : list) {
    std::string name(op_name(t.op));
    if (t.pass != Pass::Forward)
      name += fmt::format(", {}", pass_name(t.pass));
    terms.push_back(
        {std::move(name), t.count * scale, t.count * scale * t.seconds, equation(d, t)});
  }
  return terms;
}

Metric time_metric(std::string name, double seconds, std::vector<Term> terms) {
  // Host time beyond the device's operators is a term of its own, so that the terms add up.
  double sum = 0;
  for (const Term& t : terms)
    sum += t.value;
  if (!terms.empty() && seconds > sum * (1 + 1e-9))
    terms.push_back({"waiting for the host", 1, seconds - sum, "host launch time - device time"});
  return {std::move(name), "s", seconds, std::move(terms)};
}

Cost one_time(double seconds, std::string name, std::string equation) {
  Cost out;
  out.metrics.push_back(
      time_metric("time", seconds, {{std::move(name), 1, seconds, std::move(equation)}}));
  return out;
}

Status add_framework(const CostContext& context,
                     const Params& params,
                     const MovedWeights& moved,
                     Metric& time) {
  const std::string name = params.text("framework", kIdealFramework);
  if (name == kIdealFramework)
    return {};
  TEMPER_TRY(const FrameworkSpec* framework, context.catalog.framework(name));
  for (const FrameworkStage& stage : framework->publication) {
    const double added = stage_seconds(stage, moved);
    time.value += added;
    time.terms.push_back({stage.stage, 1, added, equation(stage, moved)});
  }
  return {};
}

}  // namespace temper::sim_hw
