// Request kinds of single operators and copies, as in h200.csv: gemm, attention_*, moe_layer,
// copies.
#include "sim_hw/operators/operators.hpp"
#include "sim_hw/queries/explain.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/request/choice.hpp"
#include "sim_hw/steps/step_model.hpp"

#include <fmt/format.h>

#include <array>

namespace temper::sim_hw {
namespace {

Result<Cost> cost_of_gemm(const CostContext& context, const Request& r) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(const double m, positive(r.params, "m"));
  TEMPER_TRY(const double n, positive(r.params, "n"));
  TEMPER_TRY(const double k, positive(r.params, "k"));
  TEMPER_TRY_STATUS(one_of<NumberFormat>(
      r.params, "dtype", {{"bf16", NumberFormat::Bf16}, {"fp16", NumberFormat::Fp16}}));
  const Device d = make_device(*hardware);
  const double seconds = gemm_seconds(d, Heat::Isolated, m, n, k);
  Cost out;
  out.metrics.push_back(time_metric(
      "time", seconds, {{"gemm", 1, seconds, gemm_equation(d, Heat::Isolated, {m, n, k})}}));
  out.metrics.push_back({"throughput", "FLOP/s", 2 * m * n * k / seconds, {}});
  return out;
}

Result<AttentionShape> attention_shape(const Params& p) {
  AttentionShape shape;
  TEMPER_TRY(shape.heads, positive(p, "heads"));
  TEMPER_TRY(shape.kv_heads, positive(p, "kv_heads"));
  TEMPER_TRY(shape.key_dim, positive(p, "head_dim"));
  shape.value_dim = shape.key_dim;
  return shape;
}

/// The part of the model on one of `tp` devices.
Result<StepModel> sliced_model(const CostContext& context, const Params& p) {
  TEMPER_TRY(const ModelSpec* model, model_of(context, p));
  TEMPER_TRY(const std::int64_t tp, p.integer("tp", 1));
  if (tp < 1 || model->heads % tp != 0)
    return invalid_input(
        fmt::format("tp={}: expected a divisor of the {} heads", tp, model->heads));
  return make_step_model(*model, static_cast<double>(tp));
}

Result<Cost> cost_of_attention_prefill(const CostContext& context, const Request& r) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(const double batch, positive(r.params, "batch"));
  TEMPER_TRY(const double seq, positive(r.params, "seq"));
  const Device d = make_device(*hardware);
  AttentionShape shape;
  if (r.params.has("model")) {
    TEMPER_TRY(const StepModel m, sliced_model(context, r.params));
    shape = m.attention;
    if (m.latent)  // Absorbed, like the kernels of serving engines: one latent per token.
      shape = {m.attention.heads, 1, m.kv_rank + m.rope, m.kv_rank};
  } else {
    TEMPER_TRY(shape, attention_shape(r.params));
  }
  return one_time(attention_prefill_seconds(d, shape, batch, seq),
                  "attention",
                  "latency + scores (2 (dk + dv) / rate + softmax) + traffic + seq / 128 block");
}

Result<Cost> cost_of_attention_decode(const CostContext& context, const Request& r) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(const double batch, positive(r.params, "batch"));
  TEMPER_TRY(const double length, positive(r.params, "context"));
  const Device d = make_device(*hardware);
  if (r.params.has("model")) {
    TEMPER_TRY(const StepModel m, sliced_model(context, r.params));
    if (m.latent) {
      return one_time(latent_decode_seconds(d, m.attention.heads, m.kv_rank, m.rope, batch, length),
                      "latent attention",
                      "latency + |latent bytes / bandwidth, FLOP / rate + softmax|4");
    }
    return one_time(attention_decode_seconds(d, m.attention, batch, length),
                    "attention",
                    "latency + KV bytes / bandwidth");
  }
  TEMPER_TRY(const AttentionShape shape, attention_shape(r.params));
  return one_time(attention_decode_seconds(d, shape, batch, length),
                  "attention",
                  "latency + depth head_dim + KV bytes / bandwidth");
}

Result<Cost> cost_of_moe_layer(const CostContext& context, const Request& r) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(const std::string name, r.params.text("model"));
  TEMPER_TRY(const ModelSpec* model, context.catalog.model(name));
  TEMPER_TRY(const double tokens, positive(r.params, "tokens"));
  TEMPER_TRY(const double zipf, r.params.number("zipf", 0));
  if (zipf < 0)
    return invalid_input(fmt::format("zipf={}: must be 0 or more", zipf));
  if (!model->moe)
    return invalid_input(fmt::format("model={}: expected a model with routed experts", name));
  const Device d = make_device(*hardware);
  const StepModel m = make_step_model(*model);
  const double router = gemm_seconds(d, Heat::Sustained, tokens, m.all_experts, m.hidden);
  const Routing routing = skewed_routing(m.all_experts, m.top_k, tokens, zipf);
  const double copies = tokens * m.top_k;
  const double experts = grouped_seconds(d, {m.hidden, m.expert_ffn}, routing, copies);
  ListSink list;
  list(Op::Router, Pass::Forward, 1, router, {tokens, m.all_experts, m.hidden});
  list(Op::Experts, Pass::Forward, 1, experts, {copies, routing.experts, routing.tiles});
  Cost out;
  out.metrics.push_back(time_metric("time", router + experts, explain(d, list.terms)));
  return out;
}

Result<Cost> cost_of_device_copy(const CostContext& context, const Request& r) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(const double bytes, positive(r.params, "bytes"));
  const std::string counts = r.params.text("counts", "read+write");
  if (counts != "read+write")
    return invalid_input(fmt::format("counts={}: expected read+write", counts));
  const Device d = make_device(*hardware);
  const double seconds = d.k.kernel_latency + 2 * bytes / d.copy_bandwidth;
  Cost out = one_time(seconds, "copy", "kernel + 2 bytes / copy bandwidth");
  out.metrics.push_back({"bandwidth", "B/s", 2 * bytes / seconds, {}});
  return out;
}

enum class CopyDirection { ToDevice, FromDevice };

Result<Cost> cost_of_host_copy(const CostContext& context, const Request& r, CopyDirection way) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(r.hardware));
  TEMPER_TRY(const double bytes, positive(r.params, "bytes"));
  const HostSpec& host = hardware->host;
  const double rate = (way == CopyDirection::ToDevice ? host.to_device : host.from_device).count();
  const double seconds = ::temper::seconds(host.latency) + bytes / rate;
  Cost out = one_time(
      seconds,
      "copy",
      fmt::format(
          "{:.1f}us + bytes / {:.2f}GB/s", ::temper::seconds(host.latency) * 1e6, rate / 1e9));
  out.metrics.push_back({"bandwidth", "B/s", bytes / seconds, {}});
  return out;
}

Result<Cost> cost_of_to_device(const CostContext& context, const Request& r) {
  return cost_of_host_copy(context, r, CopyDirection::ToDevice);
}
Result<Cost> cost_of_from_device(const CostContext& context, const Request& r) {
  return cost_of_host_copy(context, r, CopyDirection::FromDevice);
}

Result<Cost> cost_of_launch(const CostContext& context, const Request& r) {
  TEMPER_TRY(const HardwareSpec* hardware, context.catalog.hardware(r.hardware));
  return one_time(hardware->constants.operators.host_train_kernel, "launch", "host per kernel");
}

constexpr std::array kOperatorKinds{
    Kind{"attention_decode",
         "One query per sequence over cached keys and values.",
         "batch; context; heads; kv_heads; head_dim | model; tp",
         cost_of_attention_decode},
    Kind{"attention_prefill",
         "Causal self-attention over whole sequences.",
         "batch; seq; heads; kv_heads; head_dim | model; tp",
         cost_of_attention_prefill},
    Kind{"device_copy",
         "Copy inside device memory.",
         "bytes; counts=read+write",
         cost_of_device_copy},
    Kind{"device_to_host", "Copy to pinned host memory.", "bytes", cost_of_from_device},
    Kind{"gemm", "y = x W^T.", "m; n; k; dtype=bf16", cost_of_gemm},
    Kind{"host_to_device", "Copy from pinned host memory.", "bytes", cost_of_to_device},
    Kind{"kernel_launch_eager", "A one-element kernel, back to back.", "", cost_of_launch},
    Kind{"moe_layer",
         "Router, sort, two grouped GEMMs, combine.",
         "model; tokens; zipf=0",
         cost_of_moe_layer},
};

}  // namespace

std::span<const Kind> operator_kinds() {
  return kOperatorKinds;
}

}  // namespace temper::sim_hw
