// Rules of training as frameworks report it. Assumed where a row is silent:
//   - a LoRA row without a rank has the cost of any small rank;
//   - partial recompute (of norms, activation functions, or one layer per stage) costs nothing;
//   - "Ascend NPU, type not stated" is a 910B;
//   - GPT-3 175B: TP8 PP8, as MegaScale (arXiv 2402.15627) and Megatron (arXiv 2205.05198) have it,
//     with an open interleaving, recompute and micro-batch.
#include "sim_hw/published/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>

namespace temper::sim_hw {
namespace {

constexpr std::array<MetricName, 7> kRunMetrics{{{"throughput_per_gpu", "throughput_per_device"},
                                                 {"throughput_per_device", "throughput_per_device"},
                                                 {"iteration_time", "time"},
                                                 {"train_step_time", "time"},
                                                 {"train_microbatch_time", "time"},
                                                 {"train_throughput", "throughput"},
                                                 {"peak_memory", "peak_memory"}}};
constexpr std::array<MetricName, 4> kOpenMetrics{{{"iteration_time", "time"},
                                                  {"throughput_total", "throughput"},
                                                  {"mfu", "mfu"},
                                                  {"linearity", ""}}};

std::string precision_of(const Conditions& c) {
  if (c.mentions("MXFP8"))
    return "mxfp8";
  if (c.mentions("FP8 blockwise"))
    return "fp8_block";
  if (c.mentions("FP8"))
    return "fp8";
  return c.mentions("FP16") ? "fp16" : "bf16";
}

std::string recompute_word(const Conditions& c) {
  const std::string text = c.value("recompute");
  if (text.starts_with("full") && text.find("block") == std::string::npos)
    return "full";
  if (text.starts_with("selective"))
    return "selective";
  return text.empty() && c.mentions(";recompute;") ? "full" : "none";
}

std::string sharding_of(const PublishedRow& p, const Conditions& c) {
  if (c.mentions("FSDP") || p.system.starts_with("prime-rl"))  // Which shards by FSDP only.
    return "3";
  return c.mentions("distributed optimizer") ? "1" : "0";
}

bool is_training(const Conditions& c) {
  for (const char* word : {"pretrain;", "LoRA", "SFT", "RL LoRA", "RL full", "SFT full"}) {
    if (c.text().starts_with(word))
      return true;
  }
  return false;
}

}  // namespace

RuleOutcome training_run_rule(const PublishedRow& p,
                              const Conditions& c,
                              const std::string& model) {
  const std::string_view metric = metric_of(kRunMetrics, p.metric);
  const auto seq = c.after("seq=");
  if (metric.empty() || model.empty() || !is_training(c) || !seq)
    return std::nullopt;
  const auto devices = static_cast<std::int64_t>(std::lround(published_devices(p)));
  const std::int64_t tp = c.after("TP").value_or(1);
  const std::int64_t pp = c.after("PP").value_or(1);
  const std::int64_t cp = c.after("CP").value_or(1);
  const std::int64_t dp =
      c.after("DP").value_or(std::max<std::int64_t>(1, devices / (tp * pp * cp)));
  const std::int64_t batch = c.after("batch=").value_or(dp);
  RuleResult result = published_request(
      "training_run",
      fmt::format(
          "model={};tp={};pp={};cp={};dp={};ep={};vpp={};batch={};mbs={};seq={};"
          "recompute={};zero={};precision={}{}{};memory=report",
          model,
          tp,
          pp,
          cp,
          dp,
          c.after("EP").value_or(1),
          c.after("interleave=").value_or(1),
          batch,
          c.after("MBS=").value_or(1),
          *seq,
          recompute_word(c),
          sharding_of(p, c),
          precision_of(c),
          c.mentions("LoRA") ? ";lora=16" : "",
          c.mentions("fused LM head") || c.mentions("chunked cross") ? ";head=chunked" : ""),
      std::string(metric));
  result.question->devices = devices;
  return result;
}

RuleOutcome open_layout_rule(const PublishedRow& p, const Conditions& c, const std::string& model) {
  const auto devices = static_cast<std::int64_t>(std::lround(published_devices(p)));
  if (p.area != "pretrain" || model.empty() || c.after("TP"))
    return std::nullopt;
  if (model == "gpt-3-175b" && devices % 64 == 0) {
    const std::string_view metric = metric_of(kOpenMetrics, p.metric);
    if (metric.empty())
      return std::nullopt;
    const auto batch = c.after("batch=");
    const auto global = batch ? batch : c.after("global_batch=");
    const std::int64_t dp = devices / 64;
    return published_request(
        "training_run",
        fmt::format("model={};tp=8;pp=8;dp={};vpp=1..6;batch={};mbs=1..2;seq={};"
                    "recompute=selective..none;attention=fused;zero=1;memory=report",
                    model,
                    dp,
                    global ? fmt::format("{}", *global) : fmt::format("{}..{}", 16 * dp, 128 * dp),
                    c.after("seq=").value_or(2048)),
        std::string(metric));
  }
  const auto pp = c.after("PP");
  const auto ep = c.after("EP");
  const auto mbs = c.after("MBS");
  if (!pp || !ep || !mbs)
    return std::nullopt;
  const std::int64_t dp = devices / *pp;
  const std::int64_t step = dp * *mbs;
  const std::int64_t batch = (c.after("GBS").value_or(8192) + step - 1) / step * step;
  constexpr std::array<MetricName, 2> kMetrics{{{"model_tflops_per_gpu", "model_flops_per_device"},
                                                {"throughput_per_gpu", "throughput_per_device"}}};
  const std::string_view metric = metric_of(kMetrics, p.metric);
  if (metric.empty())
    return std::nullopt;
  return published_request("training_run",
                           fmt::format("model={};tp=1;pp={};dp={};ep={};vpp={}..1;batch={};mbs={};"
                                       "seq=4096..8192;zero=1;precision={};memory=report",
                                       model,
                                       *pp,
                                       dp,
                                       *ep,
                                       c.after("VPP").value_or(1),
                                       batch,
                                       *mbs,
                                       precision_of(c)),
                           std::string(metric));
}

RuleResult published_request(std::string kind, std::string params, std::string metric) {
  return {PublishedRequest{std::move(kind), std::move(params), std::move(metric), std::nullopt},
          ""};
}

std::optional<double> number_before(std::string_view text, std::string_view unit) {
  const std::size_t end = text.find(unit);
  if (end == std::string_view::npos)
    return std::nullopt;
  std::size_t begin = end;
  while (begin > 0 && (std::isdigit(static_cast<unsigned char>(text[begin - 1])) != 0 ||
                       text[begin - 1] == '.')) {
    --begin;
  }
  double value = 0;
  const auto [stop, errc] = std::from_chars(text.data() + begin, text.data() + end, value);
  return errc == std::errc{} && begin < end ? std::optional(value) : std::nullopt;
}

double published_devices(const PublishedRow& p) {
  double cards = 1;
  std::from_chars(p.cards.data(), p.cards.data() + p.cards.size(), cards);
  const bool two_dies =
      p.hardware.find("A3") != std::string::npos || p.hardware.find("910C") != std::string::npos;
  return std::max(1.0, cards * (two_dies ? 2 : 1));
}

}  // namespace temper::sim_hw
