// The parts of a plan that emit.cpp passes on, and the options of each engine. Private to this
// folder.
#pragma once

#include "sim_hw/layout/layout.hpp"

#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

namespace temper::study {

inline constexpr std::string_view kVerlActor = "actor_rollout_ref.actor.";
inline constexpr std::string_view kVerlRollout = "actor_rollout_ref.rollout.";

/// Comments, then a command over several lines; or only comments and flags.
struct Script {
  std::vector<std::string> notes;
  std::string command;  ///< Empty: each flag is a line.
  std::vector<std::string> flags;

  std::string text() const {
    std::string out;
    for (const std::string& note : notes)
      out += "# " + note + "\n";
    if (command.empty()) {
      for (const std::string& flag : flags)
        out += flag + "\n";
      return out;
    }
    out += command;
    for (const std::string& flag : flags)
      out += " \\\n  " + flag;
    return out + "\n";
  }
};

/// A rollout engine of a plan.
struct Engine {
  std::string model;
  std::int64_t engines = 1;
  std::int64_t devices = 1;  ///< Per engine.
  std::int64_t node = 1;     ///< Devices per node.
  std::int64_t tp = 1;
  std::int64_t ep = 1;
  bool experts = false;
  std::int64_t slots = 1;    ///< Per replica.
  double kv_bytes = 0;       ///< Per device.
  double kv_tokens = 0;      ///< Per replica; 0: unknown.
  double static_share = 0;   ///< Share of a device's memory for weights, keys and values.
  std::int64_t longest = 0;  ///< Prompt and response; 0: unknown.
  std::int64_t prefill_tokens = 8192;

  std::int64_t replicas() const { return devices / tp; }
};

/// The trainer of a plan.
struct Trainer {
  std::string model;
  std::int64_t node = 1;
  sim_hw::Layout layout;
  std::vector<std::int64_t> stage_layers;
  bool experts = false;
  sim_hw::Recompute recompute = sim_hw::Recompute::None;
  std::int64_t recompute_every = 1;
  bool chosen_tensors = false;  ///< Recomputed or swapped one by one.
  bool optimizer_on_host = false;
  bool expert_overlap = false;
  std::int64_t global_batch = 0;  ///< 0: unknown.
  std::int64_t seq = 0;
  std::int64_t micro_batch = 0;         ///< Sequences; 0: packed.
  std::int64_t micro_batch_tokens = 0;  ///< For packed micro-batches.

  bool uneven() const {
    return std::set<std::int64_t>(stage_layers.begin(), stage_layers.end()).size() > 1;
  }
};

void note_engine(Script& script, const Engine& engine);
Script vllm_script(const Engine& engine);
Script sglang_script(const Engine& engine);
void add_verl(Script& script, const Engine& engine);

void note_trainer(Script& script, const Trainer& trainer);
Script megatron_script(const Trainer& trainer);
void add_verl(Script& script, const Trainer& trainer);

}  // namespace temper::study
