// Rules of inference engines. Assumed where a row is silent:
//   - "TP16 DP16" on 16 devices is attention data parallelism: each replica has TP / DP devices;
//   - experts are spread over all devices of the instance, unless EP is stated;
//   - a speculative row without an accepted length accepts each draft with a chance of 0.5 to 0.9;
//   - an offline run at its maximum load fills 50 to 100 % of the cache;
//   - rollouts of CM384 without a layout have TP1 to TP4 and experts on all dies.
#include "sim_hw/published/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::sim_hw {
namespace {

constexpr std::array<MetricName, 14> kServingMetrics{
    {{"tpot", "tpot"},
     {"tpot_upper_bound", "tpot_upper_bound"},
     {"decode_step_latency", "step_time"},
     {"mean_decode_forward", "step_time"},
     {"output_throughput", "output_throughput"},
     {"output_throughput_per_gpu", "output_throughput_per_device"},
     {"decode_throughput_per_card", "output_throughput_per_card"},
     {"decode_throughput_total", "output_throughput"},
     {"ttft", "ttft"},
     {"prefill_latency", "prefill_latency"},
     {"prefill_throughput_total", "prefill_throughput"},
     {"prefill_throughput_per_card", "prefill_throughput_per_card"},
     {"request_throughput", "request_throughput"},
     {"decode_throughput", "output_throughput"}}};

std::string formats_of(const Conditions& c) {
  const std::string text = c.value("precision");
  if (text.starts_with("W8A8C8"))
    return ";weights=int8;cache=int8";
  if (text.starts_with("W8A8") || text.starts_with("INT8"))
    return ";weights=int8";
  if (text.starts_with("W4A16"))
    return ";weights=w4a16;format_of=experts";
  if (text.starts_with("W4A8"))
    return ";weights=w4a8";
  if (text.starts_with("FP8 (weights and KV)"))
    return ";weights=fp8;cache=fp8";
  if (text.starts_with("FP8"))
    return ";weights=fp8_block";
  if (text.starts_with("FP16"))
    return ";weights=fp16";
  return text.empty() ? ";weights=int8..bf16" : "";
}

std::string speculation_of(const Conditions& c) {
  const std::string text = c.value("speculation");
  const auto depth = text.find("depth ") == std::string::npos ? c.after("MTP=")
                                                              : Conditions::after(text, "depth ");
  if (!depth || *depth == 0)
    return "";
  std::string accepted = ";acceptance=0.5..0.9";
  const auto length = text.find("accepted length ");
  if (length != std::string::npos)
    accepted = ";tokens_per_step=" + text.substr(length + 16, text.find(',', length) - length - 16);
  if (const auto tokens = c.number("tokens_per_step"))
    accepted = fmt::format(";tokens_per_step={:g}", *tokens);
  if (const auto drafts = c.number("accepted_per_step"))
    accepted = fmt::format(";tokens_per_step={:g}", 1 + *drafts);
  if (const auto chance = c.number("accept"))
    accepted = fmt::format(";acceptance={:g}", *chance);
  return fmt::format(";draft={};depth={}{}",
                     text.find("EAGLE") == std::string::npos ? "mtp" : "eagle",
                     *depth,
                     accepted);
}

struct Instance {
  std::int64_t tp = 1;
  std::int64_t dp = 1;
  std::int64_t ep = 1;
  std::int64_t devices = 1;
  bool split = false;  ///< Prefill has its own devices.
  std::string text;    ///< Its layout as parameters.
};

/// The layout of the decode instance. None: the row states none.
std::optional<Instance> instance_of(const PublishedRow& p, const Conditions& c) {
  Instance out;
  std::string text = c.text();
  const auto devices = static_cast<std::int64_t>(std::lround(published_devices(p)));
  out.devices = devices;
  const bool two_dies = p.hardware.find("910C") != std::string::npos;
  if (const std::size_t at = text.find("decode ");
      c.mentions("PD split") && at != std::string::npos) {
    text = text.substr(at);
    out.split = true;
    if (const auto cards = number_before(text, " cards"))
      out.devices = static_cast<std::int64_t>(*cards) * (two_dies ? 2 : 1);
  }
  const auto tp = Conditions::after(text, "TP");
  const auto dp = Conditions::after(text, "DP");
  const auto ep = Conditions::after(text, "EP");
  if (!tp && !dp && !ep) {
    if (devices > 1 && devices < 32)
      return std::nullopt;
    out.text = devices == 1 ? "tp=1;dp=1"
                            : fmt::format("tp/dp/ep=1/{0}/{0}..2/{1}/{0}..4/{2}/{0};devices={0}",
                                          devices,
                                          devices / 2,
                                          devices / 4);
    return out;
  }
  out.tp = tp.value_or(1);
  out.dp = dp.value_or(tp ? 1 : out.devices);
  if (tp && dp && *tp * *dp > out.devices && *tp >= *dp)
    out.tp = *tp / *dp;
  const bool experts = p.model.find("A3B") != std::string::npos || out.dp > 1 || ep;
  out.ep = ep.value_or(experts ? out.tp * out.dp : out.tp);
  out.text = fmt::format("tp={};dp={};ep={};devices={}", out.tp, out.dp, out.ep, devices);
  return out;
}

/// Running sequences of all replicas; empty: not stated.
std::string batch_of(const PublishedRow& p, const Conditions& c, const Instance& instance) {
  if (c.mentions("maximum load"))
    return "fit;cache_share=0.5..1";
  if (const auto per_die = c.number("batch_per_die"))
    return fmt::format("{:g}", *per_die * published_devices(p));
  if (const auto group = Conditions::after(c.value("batch"), "x"); group && c.mentions("max_out"))
    return "";
  if (c.mentions(" per card") && c.number("batch"))
    return fmt::format("{:g}", *c.number("batch") * published_devices(p));
  for (const char* key : {"global_batch", "batch"}) {
    if (const auto value = c.number(key))
      return fmt::format("{:g}", *value);
  }
  const auto concurrency = c.number("concurrency");
  if (!concurrency)
    return "";
  const auto slots = number_before(c.text(), " slots");
  if (!slots)
    return fmt::format("{:g}", *concurrency);
  const double all = *slots * (c.mentions("slots per DP") ? static_cast<double>(instance.dp) : 1.0);
  return fmt::format("{:g}", std::min(*concurrency, all));
}

std::string lengths_of(const PublishedRow& p, const Conditions& c) {
  const auto either = [&](const char* a, const char* b) {
    const auto first = c.number(a);
    return first ? first : c.number(b);
  };
  const auto input = either("input", "mean_input");
  const auto output = either("output", "mean_output");
  const bool stream = c.mentions("concurrency") || p.metric.find("throughput") != std::string::npos;
  if (const auto tokens = number_before(c.text(), " tokens"); tokens && p.area == "serving_prefill")
    return fmt::format(";input={:g};output=1", *tokens);
  if (p.area == "serving_prefill" && input)
    return fmt::format(";input={:g};output=1", *input);
  if (input && output && stream)
    return fmt::format(";input={:g};output={:g}", *input, *output);
  if (input)
    return fmt::format(";context={:g}", *input + output.value_or(0) / 2);
  if (const auto seq = c.number("seq"))
    return fmt::format(";context={:g}", *seq);
  return c.mentions("max_out=32K") ? ";context=2048..8192..16384" : "";
}

}  // namespace

RuleOutcome serving_rule(const PublishedRow& p, const Conditions& c, const std::string& model) {
  const std::string_view metric = metric_of(kServingMetrics, p.metric);
  if (!p.area.starts_with("serving") || metric.empty() || model.empty())
    return std::nullopt;
  if (c.mentions("on the CPU") || c.mentions("production"))
    return std::nullopt;
  const std::optional<Instance> instance = instance_of(p, c);
  const std::string lengths = lengths_of(p, c);
  if (!instance || lengths.empty())
    return std::nullopt;
  std::string batch = batch_of(p, c, *instance);
  if (batch.empty() && c.mentions("batch=512x16"))
    batch = "8192";
  if (batch.empty())
    return std::nullopt;
  std::string cached;
  if (const auto hit = c.after("cache hit="))
    cached = fmt::format(";cached={:g}", static_cast<double>(*hit) / 100);
  RuleResult result = published_request(
      "serving",
      fmt::format("model={};{};batch={}{}{}{}{}{}",
                  model,
                  instance->text,
                  batch,
                  lengths,
                  formats_of(c),
                  speculation_of(c),
                  cached,
                  instance->split && lengths.starts_with(";input") ? ";prefill=separate" : ""),
      std::string(metric));
  result.question->devices = static_cast<std::int64_t>(std::lround(published_devices(p)));
  return result;
}

}  // namespace temper::sim_hw
