// Computes the Cost of a Request through one table of kinds. Each kind is declared once, with its
// parameters and metrics, and serves the command line, the validation and the documentation.
#pragma once

#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/request/cost.hpp"
#include "sim_hw/request/request.hpp"

#include <filesystem>
#include <span>
#include <string_view>

namespace temper::sim_hw {

/// Inputs of a handler. `folder`: folder of the file that the request came from, for side files
/// (`lengths=`).
struct CostContext {
  Catalog& catalog;
  std::filesystem::path folder;
};

/// The model that the parameter `model` names. Errors: none is named, or it is unknown.
Result<const ModelSpec*> model_of(const CostContext& context, const Params& params);

struct Kind {
  std::string_view name;
  std::string_view doc;         ///< One sentence.
  std::string_view parameters;  ///< "batch; context; launch=graph|eager"
  Result<Cost> (*cost)(const CostContext& context, const Request& request);
};

/// Every kind, sorted by name.
std::span<const Kind> kinds();
/// Kinds of one area; kinds() joins them.
std::span<const Kind> operator_kinds();   ///< gemm, attention_*, moe_layer, copies.
std::span<const Kind> step_kinds();       ///< decode_step, prefill, logprob_pass, train_step.
std::span<const Kind> network_kinds();    ///< collectives, transfers.
std::span<const Kind> scenario_kinds();   ///< fluid flows, as SimGrid has them.
std::span<const Kind> parallel_kinds();   ///< train_iteration, memory of a layout, reshard.
std::span<const Kind> iteration_kinds();  ///< rl_iteration.
std::span<const Kind> serving_kinds();    ///< serving.
std::span<const Kind> training_kinds();   ///< training_run, rl_step.

/// An unknown kind, parameter or value is an error that names it and the nearest valid one.
Result<Cost> cost_of(const CostContext& context, const Request& request);
/// The same with a table of kinds other than kinds().
Result<Cost> cost_of(const CostContext& context,
                     const Request& request,
                     std::span<const Kind> known);

}  // namespace temper::sim_hw
