// Reads the parameters of `task=train`: the search space, the shape and the limits. A key that the
// search chooses may be one value or a list ("tp=4,8"); a missing key is free. Values only; no
// threads.
#pragma once

#include "sim_hw/plan/train_search.hpp"
#include "sim_hw/request/request.hpp"

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

inline constexpr std::string_view kTrainPlanParameters =
    "model; cards (default: all of the hardware); batch; seq; to narrow the search, each a value "
    "or a list: tp; pp; vpp; ep; expert_tp; cp; dp; mbs; zero=0|1|2|3 (default 0,1); "
    "recompute=none|selective|full; sequence_parallel=on|off; optimizer=device|host; "
    "schedule=1f1b|dualpipe|adaptive (default 1f1b); layer_balance=last_short|even|counted; "
    "activations=as_recompute|chosen; limits: "
    "memory=60GB; host_memory=1TB (of a node); max_time=10s; compare=tp8,pp16,vpp2,ep32; of the "
    "step: recompute_every; attention; dtype; states; expert_imbalance; attention_imbalance; "
    "expert_overlap; expert_path; token_copies; operators; host_dispatch; split_counts; "
    "balance_loss";

struct TrainPlanRequest {
  TrainShape shape;
  TrainSpace space;
  std::vector<std::string> given;     ///< Search keys that the request narrows.
  std::optional<double> max_seconds;  ///< Limit on a step.
};

/// Applies memory limits to `problem`. Errors name the key, the problem and the expected value.
Result<TrainPlanRequest> train_plan_request(const Params& params,
                                            const HardwareSpec& hardware,
                                            TrainProblem& problem);

/// The request with one narrowed key free again.
TrainPlanRequest without_key(const TrainProblem& problem,
                             const TrainPlanRequest& request,
                             std::string_view key);

/// The best plan of the request with the keys of `text` ("tp8,pp16,vpp2") at these values and the
/// other keys as in the request. If none fits the memory: the best of those within 2 % of the
/// nearest.
Result<TrainPlan> plan_with(const TrainProblem& problem,
                            const TrainPlanRequest& request,
                            std::string_view text);

/// "tp8 pp16 vpp2 ep32 expert_tp1 cp1 dp48".
std::string layout_text(const Layout& layout);

/// Explains a space without any layout that can run: the first of its layouts, and its problem.
Error empty_space(const TrainProblem& problem, const TrainPlanRequest& request);

}  // namespace temper::sim_hw
