// Reads the parameters of `task=rollout`, and explains why a search found no plan. Values only; no
// threads.
#pragma once

#include "sim_hw/plan/rollout_search.hpp"
#include "sim_hw/request/request.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

inline constexpr std::string_view kRolloutPlanParameters =
    "model; cards (default: all of the hardware); prompt; response (mean); p99_over_median "
    "(default 1); cap (default: 4 x response, or response); or lengths=FILE for responses; to "
    "narrow the search: tp; ep, each a value or a list; engine_cards; slots (of a replica); "
    "limits: memory=60GB; host_memory=1TB (of a node); max_token_time=50ms; prefill_tokens; "
    "staging=host|none; compare=tp4,ep64,slots48";

struct RolloutPlanRequest {
  RolloutSpace space;
  std::vector<std::string> given;  ///< Search keys that the request narrows.
};

/// Puts lengths and limits into `problem`. `folder`: base of side file paths.
Result<RolloutPlanRequest> rollout_plan_request(const Params& params,
                                                const std::filesystem::path& folder,
                                                RolloutProblem& problem);

/// "tp4,ep64,slots48": the best plan of the request with these values, whatever its time per token;
/// if none fits the memory, the nearest one.
Result<RolloutPlan> plan_with(const RolloutProblem& problem,
                              const RolloutPlanRequest& request,
                              std::string_view text);

/// Requires: a search of the request that found no plan.
Error no_plan(const RolloutProblem& problem,
              const RolloutPlanRequest& request,
              const RolloutSearch& search);

}  // namespace temper::sim_hw
