// Rules of RL steps whose responses have a spread of lengths. Assumed where a row is silent:
//   - the 99th percentile of the lengths is 1.5 to 4 times their median;
//   - without a mean length, responses have 1/32 to 1/4 of their limit on average;
//   - prompts of mathematical problems have 128 tokens; a group has 16 responses;
//   - engines of H20 and H800 have TP1 or TP2, those of CM384 TP1 to TP4 with experts on all dies;
//   - trainers without a layout shard everything over all their devices (FSDP);
//   - "max_out=34K" counts in thousands of 1024.
#include "sim_hw/published/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <vector>

namespace temper::sim_hw {
namespace {

constexpr std::array<MetricName, 16> kStepMetrics{
    {{"step_time", "time"},
     {"step_total_time", "time"},
     {"gen_time", "rollout"},
     {"rollout_time", "rollout"},
     {"actor_update_time", "update"},
     {"train_time", "update"},
     {"old_logprob_time", "logprobs"},
     {"reward_time", "reward"},
     {"time_100_steps", "run_time"},
     {"training_hours", "run_time"},
     {"throughput_per_gpu", "throughput_per_device"},
     {"throughput_per_device", "throughput_per_device"},
     {"generation_throughput", "generation_throughput"},
     {"inference_throughput", "generation_throughput_per_card"},
     {"update_throughput", "update_throughput_per_card"},
     {"system_throughput", "throughput_per_card"}}};

/// The numbers of "[16,1]" after `key`; "-" counts as 1.
std::vector<std::int64_t> list_after(const std::string& text, std::string_view key) {
  std::vector<std::int64_t> out;
  std::size_t at = text.find(key);
  if (at == std::string::npos)
    return out;
  at += key.size();
  const std::size_t end = text.find(']', at);
  while (at < end) {
    std::int64_t value = 1;
    std::from_chars(text.data() + at, text.data() + end, value);
    out.push_back(value);
    const std::size_t comma = text.find(',', at);
    at = std::min(end, comma == std::string::npos ? end : comma + 1);
  }
  return out;
}

/// Tokens of "28K", "34816".
std::optional<double> tokens_of(const Conditions& c, std::string_view key) {
  const auto value = c.number(key);
  if (!value)
    return std::nullopt;
  return c.value(key).find('K') == std::string::npos ? *value : *value * 1024;
}

/// "GRPO;...;rollout_batch=512;gen[TP,PP]=[16,1];train[TP,CP,EP,PP,VPP]=[1,1,16,16,-]"
RuleOutcome nemo_rule(const PublishedRow& p, const Conditions& c, const std::string& model) {
  const std::vector<std::int64_t> engine = list_after(c.text(), "gen[TP,PP]=[");
  const std::vector<std::int64_t> trainer = list_after(c.text(), "train[TP,CP,EP,PP,VPP]=[");
  const auto samples = c.number("rollout_batch");
  const auto mean = c.number("mean_seq");
  const auto most = c.number("max_seq");
  if (engine.empty() || trainer.size() < 4 || !samples || !mean || !most)
    return std::nullopt;
  const std::int64_t devices = std::llround(published_devices(p));
  const bool separate = c.mentions("1-step off");
  const double group = c.number("n").value_or(16);
  const std::string_view metric = metric_of(kStepMetrics, p.metric);
  if (metric.empty())
    return std::nullopt;
  return published_request(
      "rl_step",
      fmt::format("model={};prompts={:g};group={:g};prompt_len=128;mean_out={:g};max_out={:g};"
                  "p99_over_median=1.5..4;logprob_passes=2;rollout_devices={};rollout_tp={};"
                  "train_tp={};train_cp={};train_ep={};train_pp={}{}",
                  model,
                  *samples / group,
                  group,
                  *mean - 128,
                  *most,
                  separate ? devices / 2 : devices,
                  engine[0],
                  trainer[0],
                  trainer[1],
                  trainer[2],
                  trainer[3],
                  c.mentions("FP8 vLLM") ? ";weights=fp8_block" : ""),
      std::string(metric));
}

struct StepLayout {
  std::string engine;
  std::string trainer;
  std::int64_t rollout_devices = 1;
};

/// The layouts of a row, with open parameters where it is silent.
StepLayout layout_of(const PublishedRow& p, const Conditions& c, bool experts) {
  StepLayout out;
  const std::int64_t devices = std::llround(published_devices(p));
  out.rollout_devices = devices;
  // "fully async 64:64": the first number are the trainer's devices.
  if (const std::size_t at = c.text().find("fully async "); at != std::string::npos)
    out.rollout_devices = devices - Conditions::after(c.text().substr(at), "async ").value_or(0);
  if (c.mentions("75/25"))
    out.rollout_devices = devices * 3 / 4;
  std::string engine = c.value("parallel");
  if (engine.empty())
    engine = c.value("gen");
  if (const auto tp = Conditions::after(engine, "TP")) {
    out.engine =
        fmt::format("rollout_tp={}{}", *tp, experts ? fmt::format(";rollout_ep={}", devices) : "");
  } else if (experts) {
    out.engine = fmt::format("rollout_tp=1..2..4;rollout_ep={}", devices);
  } else {
    out.engine =
        p.hardware.find("NVIDIA") == std::string::npos ? "rollout_tp=2..4" : "rollout_tp=1..2";
  }
  const std::string train = c.value("train");
  const auto of = [&](std::string_view label) {
    return Conditions::after(train, label).value_or(1);
  };
  if (train.empty() && experts)
    out.trainer = "train_tp=4;train_pp=4;train_cp=4;train_ep=32";
  else if (train.empty())
    out.trainer = "zero=3";
  else
    out.trainer = fmt::format(
        "train_tp={};train_pp={};train_cp={};train_ep={}", of("TP"), of("PP"), of("CP"), of("EP"));
  return out;
}

std::string prompts_of(const Conditions& c) {
  const std::string batch = c.value("batch");
  const auto group = Conditions::after(batch.substr(std::min(batch.find('x'), batch.size())), "x");
  const double responses = group ? static_cast<double>(*group) : c.number("n").value_or(16);
  auto prompts = c.number("batch");
  for (const char* key : {"global_batch", "train_batch"}) {
    if (!prompts)
      prompts = c.number(key);
  }
  // Filtered groups are generated again, in up to `gen_batches` rounds.
  const double rounds = c.number("gen_batches").value_or(1);
  if (!prompts)
    return fmt::format("prompts=64..512;group={:g}", responses);
  if (rounds > 1)
    return fmt::format("prompts={:g}..{:g};group={:g}", *prompts, *prompts * rounds, responses);
  return fmt::format("prompts={:g};group={:g}", *prompts, responses);
}

}  // namespace

RuleOutcome rl_step_rule(const PublishedRow& p, const Conditions& c, const std::string& model) {
  if (p.area != "rl_iteration" || model.empty())
    return std::nullopt;
  if (RuleOutcome nemo = nemo_rule(p, c, model))
    return nemo;
  const std::string_view metric = metric_of(kStepMetrics, p.metric);
  auto most = tokens_of(c, "max_out");
  if (!most)
    most = tokens_of(c, "max_gen");
  const bool speculation = c.mentions("SAM") && (c.mentions("=on") || c.mentions("SAM depth"));
  const bool known = p.hardware.find("not stated") == std::string::npos;
  if (metric.empty() || !known || (!most && !c.mentions("SAM") && !c.mentions("interruptible")))
    return std::nullopt;
  const double limit = most.value_or(p.system.starts_with("cann") ? 34816 : 27648);
  const auto mean = c.number("mean_out");
  const bool experts =
      p.model.find("A22B") != std::string::npos || p.model.find("671B") != std::string::npos;
  const StepLayout layout = layout_of(p, c, experts);
  const auto steps = c.number("steps");
  double prompt = c.number("prompt").value_or(128);
  prompt = c.number("mean_in").value_or(prompt);
  RuleResult result = published_request(
      "rl_step",
      fmt::format("model={};{};prompt_len={:g};mean_out={};max_out={:g};p99_over_median=1.5..4;"
                  "rollout_devices={};{};{}{}{}",
                  model,
                  prompts_of(c),
                  std::round(prompt),
                  mean ? fmt::format("{:g}", *mean)
                       : fmt::format("{:g}..{:g}..{:g}", limit / 32, limit / 12, limit / 4),
                  limit,
                  layout.rollout_devices,
                  layout.engine,
                  layout.trainer,
                  speculation ? ";draft=ngram;depth=3;tokens_per_step=1.1..2" : "",
                  steps && *steps > 5 ? fmt::format(";steps={:g}", *steps) : ""),
      std::string(metric));
  result.question->devices = std::llround(published_devices(p));
  return result;
}

}  // namespace temper::sim_hw
