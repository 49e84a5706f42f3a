// What `task=train` asks of the search, from the parameters of a question: the space, the shape and
// the limits. Keys that the search chooses may be given, each as one value or a list ("tp=4,8");
// what is not given is free. Values only; no threads.
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
  std::vector<std::string> given;     ///< Keys of the space that the question narrows.
  std::optional<double> max_seconds;  ///< Of a step.
};

/// Applies memory limits to `problem`. Errors name the key, what is wrong and what is expected.
Result<TrainPlanRequest> train_plan_request(const Params& params,
                                            const HardwareSpec& hardware,
                                            TrainProblem& problem);

/// The request with one key of its space as free as if it had not been given.
TrainPlanRequest freed(const TrainProblem& problem,
                       const TrainPlanRequest& request,
                       std::string_view key);

/// The best plan of the request with the keys of `text` ("tp8,pp16,vpp2") at those values and the
/// rest as free as it was; where none of them fits the memory, the best of those that come within
/// 2 % of the nearest.
Result<TrainPlan> plan_with(const TrainProblem& problem,
                            const TrainPlanRequest& request,
                            std::string_view text);

/// "tp8 pp16 vpp2 ep32 expert_tp1 cp1 dp48".
std::string layout_text(const Layout& layout);

/// Why a space holds nothing that can run: the first of its layouts, and what is wrong with it.
Error empty_space(const TrainProblem& problem, const TrainPlanRequest& request);

}  // namespace temper::sim_hw
