// Sizes of the messages of a live run, and the memory that the orchestrator needs for them.
//
// Upper bounds: every response has its full length, as many groups are outstanding as the staleness
// bound allows, and all responses of an engine end together.
//
//   update    groups x responses x (12 tokens + 4 prompt + 64) bytes; 8 per token without
//             reference, and 8 K more with algorithm.distillation_top_k: K
//   report    concurrency x 8 tokens
//   payloads  (bound + 1) x update
//   head      payloads, the larger of two updates (the batch and its encoding) and one copy of the
//             payloads (a checkpoint), and a send window for each actor
#pragma once

#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/pipeline/validate.hpp"

#include <algorithm>
#include <optional>
#include <string>

namespace temper::orchestrator {

struct MessageSizes {
  Bytes update;    ///< Largest trainer.train.
  Bytes report;    ///< Largest rollout.generated.
  Bytes payloads;  ///< All groups that may be outstanding.
  Bytes head;      ///< Memory of the orchestrator's process.

  Bytes largest() const { return std::max(update, report); }
};

MessageSizes message_sizes(const PipelineConfig& config, Tokens longest_prompt);

/// Memory that this process may use: that of the machine, or of its container; none if unknown.
std::optional<Bytes> memory_here();

/// Reports an issue if the orchestrator needs more than `memory`.
std::optional<BrokenRule> check_head_memory(const MessageSizes& sizes, std::optional<Bytes> memory);

/// One line for the terminal: "largest message 2.4 GB (trainer.train), ...".
std::string sizes_text(const MessageSizes& sizes);

}  // namespace temper::orchestrator
