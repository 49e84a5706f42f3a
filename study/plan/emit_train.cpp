#include "study/plan/internal/emit_words.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::study {
namespace {

using sim_hw::Recompute;
using sim_hw::Zero;

constexpr std::string_view kMegatron = "actor_rollout_ref.actor.megatron.";

}  // namespace

void note_trainer(Script& script, const Trainer& t) {
  const sim_hw::Layout& l = t.layout;
  script.notes.push_back(fmt::format("training of {}: {} devices = tp {} x pp {} x cp {} x dp {}",
                                     t.model,
                                     l.devices(),
                                     l.tp,
                                     l.pp,
                                     l.cp,
                                     l.dp));
  if (t.chosen_tensors) {
    script.notes.emplace_back(
        "the plan recomputes or swaps single tensors, for which there is no flag: plan with "
        "activations=as_recompute");
  }
  if (t.uneven()) {
    script.notes.push_back(
        fmt::format("layers of the stages: {}", fmt::join(t.stage_layers, ", ")));
  }
}

Script megatron_script(const Trainer& t) {
  const sim_hw::Layout& l = t.layout;
  Script out;
  note_trainer(out, t);
  out.command = fmt::format("torchrun --nnodes {} --nproc-per-node {} pretrain_gpt.py",
                            (l.devices() + t.node - 1) / t.node,
                            std::min(l.devices(), t.node));
  const auto add = [&](std::string_view flag, std::int64_t value) {
    out.flags.push_back(fmt::format("{} {}", flag, value));
  };
  out.flags.emplace_back("--bf16");
  add("--tensor-model-parallel-size", l.tp);
  add("--pipeline-model-parallel-size", l.pp);
  if (l.vpp > 1)
    add("--num-virtual-stages-per-pipeline-rank", l.vpp);
  if (t.uneven() && l.vpp == 1)
    add("--decoder-last-pipeline-num-layers", t.stage_layers.back());
  else if (t.uneven())
    out.notes.emplace_back("set these layers with --pipeline-model-parallel-layout");
  add("--context-parallel-size", l.cp);
  if (t.experts) {
    add("--expert-model-parallel-size", l.ep);
    add("--expert-tensor-parallel-size", l.expert_tp);
  }
  if (l.sequence_parallel == sim_hw::SequenceParallel::On && l.tp > 1)
    out.flags.emplace_back("--sequence-parallel");
  if (l.zero == Zero::Optimizer)
    out.flags.emplace_back("--use-distributed-optimizer");
  if (l.zero == Zero::Gradients || l.zero == Zero::Weights) {
    out.flags.emplace_back("--use-megatron-fsdp");
    out.flags.push_back(
        fmt::format("--data-parallel-sharding-strategy {}",
                    l.zero == Zero::Gradients ? "optim_grads" : "optim_grads_params"));
  }
  if (t.recompute == Recompute::Full) {
    out.flags.emplace_back("--recompute-granularity full");
    out.flags.emplace_back("--recompute-method uniform");
    add("--recompute-num-layers", t.recompute_every);
  } else if (t.recompute == Recompute::Selective) {
    out.flags.emplace_back("--recompute-granularity selective");
  }
  if (t.expert_overlap)
    out.flags.emplace_back("--overlap-moe-expert-parallel-comm");
  if (t.optimizer_on_host) {
    out.notes.emplace_back(
        "the plan moves optimizer states to the device for the update; Megatron updates on the "
        "host");
    out.flags.emplace_back("--optimizer-cpu-offload");
  }
  if (t.seq > 0)
    add("--seq-length", t.seq);
  if (t.micro_batch > 0)
    add("--micro-batch-size", t.micro_batch);
  else
    out.notes.push_back(
        fmt::format("micro-batches are packed up to {} tokens", t.micro_batch_tokens));
  if (t.global_batch > 0)
    add("--global-batch-size", t.global_batch);
  return out;
}

void add_verl(Script& out, const Trainer& t) {
  const sim_hw::Layout& l = t.layout;
  const auto add = [&](std::string_view section, std::string_view key, const auto& value) {
    out.flags.push_back(fmt::format("{}{}={}", section, key, value));
  };
  add(kVerlActor, "strategy", "megatron");
  add(kMegatron, "tensor_model_parallel_size", l.tp);
  add(kMegatron, "pipeline_model_parallel_size", l.pp);
  if (l.vpp > 1)
    add(kMegatron, "virtual_pipeline_model_parallel_size", l.vpp);
  add(kMegatron, "context_parallel_size", l.cp);
  if (t.experts) {
    add(kMegatron, "expert_model_parallel_size", l.ep);
    add(kMegatron, "expert_tensor_parallel_size", l.expert_tp);
  }
  add(kMegatron, "sequence_parallel", l.sequence_parallel == sim_hw::SequenceParallel::On);
  add(kMegatron, "use_distributed_optimizer", l.zero != Zero::None);
  add(kMegatron, "optimizer_offload", t.optimizer_on_host);
  if (t.uneven() && l.vpp == 1) {
    add(kMegatron,
        "override_transformer_config.num_layers_in_last_pipeline_stage",
        t.stage_layers.back());
  } else if (t.uneven()) {
    out.notes.emplace_back(
        "set these layers with override_transformer_config.pipeline_model_parallel_layout");
  }
  if (t.recompute != Recompute::None) {
    const bool full = t.recompute == Recompute::Full;
    add(kMegatron,
        "override_transformer_config.recompute_granularity",
        full ? "full" : "selective");
    if (full) {
      add(kMegatron, "override_transformer_config.recompute_method", "uniform");
      add(kMegatron, "override_transformer_config.recompute_num_layers", t.recompute_every);
    }
  }
  if (t.micro_batch > 0) {
    add(kVerlActor, "ppo_micro_batch_size_per_gpu", t.micro_batch);
  } else {
    add(kVerlActor, "use_dynamic_bsz", true);
    add(kVerlActor, "ppo_max_token_len_per_gpu", t.micro_batch_tokens / l.cp);
  }
}

}  // namespace temper::study
