// Turns a list of operators into the terms of a Cost: names, counts, and equations with numbers.
// For display only; costs are computed elsewhere.
#pragma once

#include "sim_hw/framework/framework.hpp"
#include "sim_hw/operators/operators.hpp"
#include "sim_hw/queries/queries.hpp"
#include "sim_hw/request/cost.hpp"
#include "sim_hw/steps/step_cost.hpp"

#include <string>
#include <vector>

namespace temper::sim_hw {

std::string gemm_equation(const Device& d, Heat heat, OpSizes s);
/// `scale`: number of times that the whole list runs.
std::vector<Term> explain(const Device& d, const std::vector<OpTerm>& list, double scale = 1);

/// A time with its terms.
Metric time_metric(std::string name, double seconds, std::vector<Term> terms = {});
/// A cost with one time and one term.
Cost one_time(double seconds, std::string name, std::string equation);

/// Adds the stages of a publication by the parameter `framework` to a time. Error NotFound or
/// InvalidInput: its description.
Status add_framework(const CostContext& context,
                     const Params& params,
                     const MovedWeights& moved,
                     Metric& time);

}  // namespace temper::sim_hw
