// Rules that recognize publications. Each rule looks at the text of the conditions, never at ids,
// so that new rows of the same form are recognized too.
#include "core/scalar_text.hpp"
#include "sim_hw/published/rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

namespace temper::sim_hw {
namespace {

RuleResult unused(std::string reason) {
  return {std::nullopt, std::move(reason)};
}

/// "op=GEMM BF16;m=16;n=7168;k=2048"
RuleOutcome gemm_rule(const PublishedRow& p, const Conditions& c, const std::string&) {
  if (!c.value("op").starts_with("GEMM"))
    return std::nullopt;
  const auto m = c.after("m=");
  const auto n = c.after("n=");
  const auto k = c.after("k=");
  if (!m || !n || !k || p.metric != "latency")
    return unused("conditions missing: m, n, k");
  if (!c.mentions("BF16"))
    return unused("kind not modelled: GEMM other than BF16");
  return published_request("gemm", fmt::format("m={};n={};k={};dtype=bf16", *m, *n, *k), "time");
}

/// "BF16;batch=16;kv_len=1023;TP1" of DeepSeek's latent attention.
RuleOutcome latent_attention_rule(const PublishedRow& p, const Conditions& c, const std::string&) {
  if (p.area != "operator" || p.model.find("MLA") == std::string::npos || p.metric != "latency")
    return std::nullopt;
  const auto batch = c.after("batch=");
  if (!batch || !c.mentions("BF16") || c.after("TP").value_or(1) != 1)
    return unused("conditions missing: batch, BF16, one device");
  if (const auto context = c.after("kv_len=")) {
    return published_request("attention_decode",
                             fmt::format("model=deepseek-v3;batch={};context={}", *batch, *context),
                             "time");
  }
  if (const auto seq = c.after("seq=")) {
    return published_request("attention_prefill",
                             fmt::format("model=deepseek-v3;batch={};seq={}", *batch, *seq),
                             "time");
  }
  return unused("conditions missing: context");
}

constexpr std::array<MetricName, 7> kCollectives{{{"allGather", "all_gather"},
                                                  {"reduceScatter", "reduce_scatter"},
                                                  {"allReduce", "all_reduce"},
                                                  {"all_gather", "all_gather"},
                                                  {"reduce_scatter", "reduce_scatter"},
                                                  {"all_reduce", "all_reduce"},
                                                  {"alltoall", "all_to_all"}}};

/// "op=allGather;ranks=16 dies;message=1.3MB (per-rank tensor, ...);mode=microbenchmark"
/// "op=all_reduce;ranks=8;nccl-tests size=2048 bytes (...)": a total, of which ranks share one
/// part.
RuleOutcome collective_rule(const PublishedRow& p, const Conditions& c, const std::string&) {
  const std::string kind(metric_of(kCollectives, c.value("op")));
  const auto ranks = c.after("ranks=");
  if (kind.empty() || !ranks || p.metric != "latency")
    return std::nullopt;
  const bool total = !c.value("size").empty();
  auto bytes = published_bytes(total ? c.value("size") : c.value("message"));
  if (!bytes)
    return unused("conditions missing: message");
  if (c.mentions("production profiler")) {
    return unused(
        "profiled inside a serving engine: contains its dispatch and the wait for the slowest "
        "rank");
  }
  if (total && (kind == "all_gather" || kind == "reduce_scatter"))
    *bytes /= *ranks;
  return published_request(kind, fmt::format("ranks={};bytes={}", *ranks, *bytes), "time");
}

constexpr int kNode =
    16;  ///< Dies per Atlas A3 node: the distance to the same die in the next node.

/// "op=RH2D (remote host DRAM to device);size=1 GB;1 GB=1e9 B"
RuleOutcome remote_copy_rule(const PublishedRow& p, const Conditions& c, const std::string&) {
  const std::string op = c.value("op");
  const auto bytes = published_bytes(c.value("size"));
  if (p.metric != "bandwidth" || !bytes)
    return std::nullopt;
  const auto host_copy = [&](std::string_view direction) {
    return published_request("host_copy",
                             fmt::format("bytes={};direction={};scope=remote", *bytes, direction),
                             "bandwidth");
  };
  if (op.starts_with("RH2D"))
    return host_copy("to_device");
  if (op.starts_with("D2RH"))
    return host_copy("from_device");
  // Reads and writes of a device in the next node: the model has one rate for both.
  if (op.starts_with("RD2D") || op.starts_with("D2RD"))
    return published_request(
        "p2p", fmt::format("bytes={};distance={}", *bytes, kNode), "bandwidth");
  return std::nullopt;
}

constexpr std::array<MetricName, 2> kExpertMetrics{
    {{"latency", "time"}, {"bandwidth_per_rank", "bandwidth_per_rank"}}};

/// "op=dispatch;EP=8;tokens_per_rank=128;hidden=7168;topk=8;payload=7680 B/token INT8"
RuleOutcome expert_rule(const PublishedRow& p, const Conditions& c, const std::string&) {
  const std::string op = c.value("op");
  const std::string_view metric = metric_of(kExpertMetrics, p.metric);
  const auto ranks = c.after("EP=");
  const auto tokens = c.after("tokens_per_rank=");
  const auto hidden = c.after("hidden=");
  const auto top_k = c.after("topk=");
  if ((op != "dispatch" && op != "combine") || metric.empty() || !ranks || !tokens || !hidden ||
      !top_k) {
    return std::nullopt;
  }
  const auto payload = c.after("payload=");
  return published_request(op,
                           fmt::format("ep={};tokens_per_rank={};topk={};hidden={}{}",
                                       *ranks,
                                       *tokens,
                                       *top_k,
                                       *hidden,
                                       payload ? fmt::format(";payload={}", *payload) : ""),
                           std::string(metric));
}

/// "RL rollout;256 dies;batch_per_DP=64;multi-shape graph=on"; off: always the largest graph.
RuleOutcome rollout_step_rule(const PublishedRow& p,
                              const Conditions& c,
                              const std::string& model) {
  const auto batch = c.after("batch_per_DP=");
  if (p.metric != "tpot" || !batch || !c.mentions("graph="))
    return std::nullopt;
  const std::size_t dies_at = c.text().find(" dies");
  std::size_t begin = dies_at;
  while (begin != std::string::npos && begin > 0 && c.text()[begin - 1] >= '0' &&
         c.text()[begin - 1] <= '9') {
    --begin;
  }
  const auto dies = dies_at == std::string::npos
                        ? std::nullopt
                        : Conditions::after("n" + c.text().substr(begin), "n");
  if (!dies || model.empty())
    return unused("conditions missing: dies or a described model");
  return published_request("decode_step",
                           fmt::format("model={};batch_per_dp={};tp=2;dp={};ep={};launch={}",
                                       model,
                                       *batch,
                                       *dies / 2,
                                       *dies,
                                       c.mentions("graph=off") ? "padded_graph" : "graph"),
                           "time");
}

// arXiv 2205.05198, table 3: the layouts that "same parallelism" of its memory figures refers to.
struct MegatronLayout {
  std::string_view model;
  std::string_view conditions;
};
constexpr std::array kMegatron{
    MegatronLayout{"megatron-22b", "TP8 PP1 DP1;batch=4;MBS=4;seq=2048"},
    MegatronLayout{"gpt-3-175b", "TP8 PP8 DP1;interleave=3;batch=64;MBS=1;seq=2048"},
    MegatronLayout{"turing-nlg-530b", "TP8 PP35 DP1;interleave=3;batch=280;MBS=1;seq=2048"},
    MegatronLayout{"megatron-1t", "TP8 PP64 DP1;batch=512;MBS=1;seq=2048"},
};

constexpr std::array<MetricName, 3> kTrainMetrics{
    {{"iteration_time", "time"},
     {"param_and_optimizer_memory_per_gpu", "param_and_optimizer_memory"},
     {"activation_memory_per_gpu", "activation_memory"}}};

std::string recompute_of(const Conditions& c) {
  if (c.mentions("full recompute"))
    return ";recompute=full";
  // The collectives of the tensor-parallel region become reduce-scatter and all-gather.
  if (c.mentions("selective"))
    return ";recompute=selective;sequence_parallel=on";
  return ";recompute=none";
}

/// "TP8 PP8 DP1;interleave=3;batch=64;MBS=1;seq=2048;FP16;full recompute"
RuleOutcome train_iteration_rule(const PublishedRow& p,
                                 const Conditions& c,
                                 const std::string& model) {
  const std::string_view metric = metric_of(kTrainMetrics, p.metric);
  if (p.area != "pretrain" || metric.empty() || model.empty())
    return std::nullopt;
  Conditions layout = c;
  if (c.mentions("same parallelism")) {
    for (const MegatronLayout& known : kMegatron) {
      if (known.model == model)
        layout = Conditions(known.conditions);
    }
  }
  const auto tp = layout.after("TP");
  const auto pp = layout.after("PP");
  const auto batch = layout.after("batch=");
  const auto micro = layout.after("MBS=");
  const auto seq = layout.after("seq=");
  if (!tp || !pp || !batch || !micro || !seq)
    return std::nullopt;
  const std::int64_t dp = layout.after("DP").value_or(1);
  RuleResult result = published_request(
      "train_iteration",
      fmt::format(
          "model={};tp={};pp={};dp={};vpp={};global_batch={};micro_batch={};seq={}{};memory=report",
          model,
          *tp,
          *pp,
          dp,
          layout.after("interleave=").value_or(1),
          *batch,
          *micro,
          *seq,
          recompute_of(c)),
      std::string(metric));
  result.question->devices = *tp * *pp * dp;
  return result;
}

constexpr std::array<MetricName, 5> kIterationMetrics{{{"rollout_time", "rollout"},
                                                       {"reward_time", "reward"},
                                                       {"ref_logprob_time", "reference_logprobs"},
                                                       {"actor_update_time", "update"},
                                                       {"step_total_time", "time"}}};

/// "batch=512x16;mean_in=75;out=3039.8 (forced length);rollout=DP128TP2EP256;train=TP4EP8PP8"
RuleOutcome rl_iteration_rule(const PublishedRow& p,
                              const Conditions& c,
                              const std::string& model) {
  const std::string rollout = c.value("rollout");
  const std::string train = c.value("train");
  const auto prompts = c.after("batch=");
  const std::string batch = c.value("batch");
  const auto group = Conditions::after(batch.substr(std::min(batch.find('x'), batch.size())), "x");
  const auto in = c.number("mean_in");
  const auto out = c.number("out");
  if (p.area != "rl_iteration" || model.empty() || rollout.empty() || train.empty() || !prompts ||
      !group || !in || !out || !c.mentions("forced length")) {
    return std::nullopt;
  }
  const std::string_view metric = metric_of(kIterationMetrics, p.metric);
  if (metric.empty()) {
    if (p.metric.find("throughput") != std::string::npos || p.metric == "generation_phase_time")
      return unused("a sum or quotient of the other rows of the same iteration");
    return unused("kind not modelled: work of the host (" + p.metric + ")");
  }
  const auto of = [](const std::string& layout, std::string_view label) {
    return Conditions::after(layout, label).value_or(1);
  };
  return published_request(
      "rl_iteration",
      fmt::format("model={};prompts={};group={};prompt_len={};response_len={};rollout_tp={};"
                  "rollout_dp={};rollout_ep={};train_tp={};train_pp={};train_ep={}",
                  model,
                  *prompts,
                  *group,
                  number_text(*in),
                  number_text(*out),
                  of(rollout, "TP"),
                  of(rollout, "DP"),
                  of(rollout, "EP"),
                  of(train, "TP"),
                  of(train, "PP"),
                  of(train, "EP")),
      std::string(metric));
}

/// "EP8xPP2" as parameters of one side of a reshard. Experts are spread over data-parallel ranks;
/// without EP a tensor-parallel group splits them like other weights.
std::string shard_params(std::string_view layout, std::string_view side, std::int64_t& devices) {
  // "8xPP2": a letter precedes the label, so each factor is parsed alone.
  std::int64_t tp = 1, pp = 1, dp = 1, ep = 1;
  while (!layout.empty()) {
    const std::size_t cut = layout.find('x');
    const std::string_view factor = layout.substr(0, cut);
    tp *= Conditions::after(factor, "TP").value_or(1);
    pp *= Conditions::after(factor, "PP").value_or(1);
    dp *= Conditions::after(factor, "DP").value_or(1);
    ep *= Conditions::after(factor, "EP").value_or(1);
    layout = cut == std::string_view::npos ? std::string_view() : layout.substr(cut + 1);
  }
  if (tp == 1)
    dp *= ep;
  ep = std::max(ep, tp);
  devices += tp * pp * dp;
  return fmt::format(";{0}_tp={1};{0}_pp={2};{0}_dp={3};{0}_ep={4}", side, tp, pp, dp, ep);
}

/// "precision=BF16;mapping=EP8xPP2 to TP8xDP2": trainer and engines on separate cards.
RuleOutcome reshard_rule(const PublishedRow& p, const Conditions& c, const std::string& model) {
  const std::string mapping = c.value("mapping");
  const std::size_t to = mapping.find(" to ");
  if (p.metric != "refit_time" || model.empty() || to == std::string::npos)
    return std::nullopt;
  if (c.value("precision") != "BF16")
    return unused("8-bit weights and activations: kind not modelled");
  std::int64_t devices = 0;
  const std::string params = "model=" + model +
                             shard_params(mapping.substr(0, to), "from", devices) +
                             shard_params(mapping.substr(to + 4), "to", devices);
  const std::string framework =
      p.system.starts_with("NeMo RL NCCL reshard") ? ";framework=nemo-rl" : "";
  RuleResult result = published_request("reshard", params + framework, "time");
  result.question->devices = devices;
  return result;
}

}  // namespace

std::optional<RuleResult> apply_rules(const PublishedRow& publication,
                                      const Conditions& conditions,
                                      const std::string& model) {
  constexpr std::array kRules{gemm_rule,
                              latent_attention_rule,
                              collective_rule,
                              remote_copy_rule,
                              expert_rule,
                              rollout_step_rule,
                              training_run_rule,
                              open_layout_rule,
                              train_iteration_rule,
                              rl_iteration_rule,
                              serving_rule,
                              rl_step_rule,
                              reshard_rule};
  for (const auto rule : kRules) {
    if (RuleOutcome outcome = rule(publication, conditions, model))
      return outcome;
  }
  return std::nullopt;
}

}  // namespace temper::sim_hw
