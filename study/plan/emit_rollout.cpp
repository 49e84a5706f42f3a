#include "study/plan/internal/emit_words.hpp"

#include <fmt/format.h>

namespace temper::study {

void note_engine(Script& script, const Engine& e) {
  script.notes.push_back(fmt::format("rollout of {}: {} engine{} of {} device{} each, started with",
                                     e.model,
                                     e.engines,
                                     e.engines == 1 ? "" : "s",
                                     e.devices,
                                     e.devices == 1 ? "" : "s"));
  if (e.devices > e.node) {
    script.notes.push_back(
        fmt::format("an engine spans {} nodes: add the flags of its nodes and addresses",
                    (e.devices + e.node - 1) / e.node));
  }
}

Script vllm_script(const Engine& e) {
  Script out;
  note_engine(out, e);
  out.command = "vllm serve \"$MODEL\"";
  out.flags = {"--dtype bfloat16", fmt::format("--tensor-parallel-size {}", e.tp)};
  if (e.replicas() > 1)
    out.flags.push_back(fmt::format("--data-parallel-size {}", e.replicas()));
  if (e.experts && e.ep > 1) {
    out.flags.emplace_back("--enable-expert-parallel");
    if (e.ep != e.devices) {
      out.notes.push_back(
          fmt::format("vLLM spreads experts over all {} devices of an engine; the plan over {}",
                      e.devices,
                      e.ep));
    }
  } else if (e.experts && e.tp > 1) {
    out.notes.emplace_back(
        "vLLM splits experts over the tensor-parallel devices; the plan does not");
  }
  out.flags.push_back(fmt::format("--max-num-seqs {}", e.slots));
  out.flags.push_back(fmt::format("--max-num-batched-tokens {}", e.prefill_tokens));
  if (e.longest > 0)
    out.flags.push_back(fmt::format("--max-model-len {}", e.longest));
  out.flags.push_back(fmt::format("--kv-cache-memory-bytes {:.0f}", e.kv_bytes));
  return out;
}

Script sglang_script(const Engine& e) {
  Script out;
  note_engine(out, e);
  out.command = "python -m sglang.launch_server --model-path \"$MODEL\"";
  // Attention replicas share the devices, so tensor parallelism counts all of them.
  out.flags = {"--dtype bfloat16", fmt::format("--tp-size {}", e.devices)};
  if (e.replicas() > 1) {
    out.flags.push_back(fmt::format("--dp-size {}", e.replicas()));
    out.flags.emplace_back("--enable-dp-attention");
  }
  if (e.experts && e.ep > 1)
    out.flags.push_back(fmt::format("--ep-size {}", e.ep));
  else if (e.experts && e.tp > 1)
    out.notes.emplace_back(
        "SGLang splits experts over the tensor-parallel devices; the plan does not");
  out.flags.push_back(fmt::format("--max-running-requests {}", e.slots * e.replicas()));
  out.flags.push_back(fmt::format("--max-prefill-tokens {}", e.prefill_tokens));
  if (e.longest > 0)
    out.flags.push_back(fmt::format("--context-length {}", e.longest));
  out.flags.push_back(fmt::format("--mem-fraction-static {:.3f}", e.static_share));
  if (e.kv_tokens > 0)
    out.flags.push_back(fmt::format("--max-total-tokens {:.0f}", e.kv_tokens));
  return out;
}

void add_verl(Script& out, const Engine& e) {
  const auto add = [&](std::string_view key, const auto& value) {
    out.flags.push_back(fmt::format("{}{}={}", kVerlRollout, key, value));
  };
  add("name", "vllm");
  add("dtype", "bfloat16");
  add("tensor_model_parallel_size", e.tp);
  add("data_parallel_size", e.replicas());
  if (e.experts)
    add("expert_parallel_size", e.ep);
  add("max_num_seqs", e.slots);
  add("max_num_batched_tokens", e.prefill_tokens);
  if (e.longest > 0)
    add("max_model_len", e.longest);
  add("gpu_memory_utilization", fmt::format("{:.3f}", e.static_share));
}

}  // namespace temper::study
