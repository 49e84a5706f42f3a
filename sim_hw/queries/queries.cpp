#include "sim_hw/queries/queries.hpp"

#include "core/nearest_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

namespace temper::sim_hw {
namespace {

std::vector<Kind> join_areas() {
  std::vector<Kind> all;
  for (const auto area : {operator_kinds(),
                          step_kinds(),
                          network_kinds(),
                          scenario_kinds(),
                          parallel_kinds(),
                          iteration_kinds(),
                          serving_kinds(),
                          training_kinds()}) {
    all.insert(all.end(), area.begin(), area.end());
  }
  std::sort(all.begin(), all.end(), [](const Kind& a, const Kind& b) { return a.name < b.name; });
  return all;
}

constexpr std::int64_t kMostCards = 10'000'000;

/// Rejects a result that is not finite: a parameter was far outside the range of the equations.
Status check_finite(const Cost& cost) {
  for (const Metric& metric : cost.metrics) {
    if (!std::isfinite(metric.value)) {
      return invalid_input(fmt::format(
          "{} is not a finite number; a parameter is too large or too small", metric.name));
    }
  }
  return {};
}

}  // namespace

Result<const ModelSpec*> model_of(const CostContext& context, const Params& params) {
  TEMPER_TRY(const std::string name, params.text("model"));
  return context.catalog.model(name);
}

std::span<const Kind> kinds() {
  static const std::vector<Kind> all = join_areas();
  return all;
}

Result<Cost> cost_of(const CostContext& context, const Request& request) {
  return cost_of(context, request, kinds());
}

Result<Cost> cost_of(const CostContext& context,
                     const Request& request,
                     std::span<const Kind> known) {
  for (const Kind& kind : known) {
    if (kind.name != request.kind)
      continue;
    if (request.cards < 1 || request.cards > kMostCards) {
      return invalid_input(
          fmt::format("{}: cards={}: expected 1 to {}", kind.name, request.cards, kMostCards));
    }
    Result<Cost> cost = kind.cost(context, request);
    if (!cost)
      return std::move(cost).error().within(kind.name);
    if (Status finite = check_finite(*cost); !finite)
      return std::move(finite).error().within(kind.name);
    if (Status used = request.params.all_used(); !used)
      return std::move(used).error().within(kind.name);
    return cost;
  }
  std::vector<std::string> names;
  for (const Kind& kind : known)
    names.emplace_back(kind.name);
  const auto nearest = nearest_name(request.kind, names);
  return Error{
      ErrorCode::NotFound,
      nearest ? fmt::format("unknown kind `{}`; did you mean `{}`?", request.kind, *nearest)
              : fmt::format("unknown kind `{}`; `temper cost --list` lists them", request.kind)};
}

}  // namespace temper::sim_hw
