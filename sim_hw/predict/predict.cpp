#include "sim_hw/predict/predict.hpp"

#include "core/nearest_name.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace temper::sim_hw {
namespace {

std::vector<Kind> join_areas() {
  std::vector<Kind> all;
  for (const auto area :
       {operator_kinds(), step_kinds(), network_kinds(), parallel_kinds(), iteration_kinds()}) {
    all.insert(all.end(), area.begin(), area.end());
  }
  std::sort(all.begin(), all.end(), [](const Kind& a, const Kind& b) { return a.name < b.name; });
  return all;
}

}  // namespace

std::span<const Kind> kinds() {
  static const std::vector<Kind> all = join_areas();
  return all;
}

Result<Prediction> predict(const PredictContext& context, const Request& request) {
  return predict(context, request, kinds());
}

Result<Prediction> predict(const PredictContext& context,
                           const Request& request,
                           std::span<const Kind> known) {
  for (const Kind& kind : known) {
    if (kind.name != request.kind)
      continue;
    Result<Prediction> prediction = kind.predict(context, request);
    if (!prediction)
      return std::move(prediction).error().within(kind.name);
    if (Status used = request.params.all_used(); !used)
      return std::move(used).error().within(kind.name);
    return prediction;
  }
  std::vector<std::string> names;
  for (const Kind& kind : known)
    names.emplace_back(kind.name);
  const auto nearest = nearest_name(request.kind, names);
  return Error{ErrorCode::NotFound,
               nearest
                   ? fmt::format("unknown kind `{}`; did you mean `{}`?", request.kind, *nearest)
                   : fmt::format("unknown kind `{}`", request.kind)};
}

}  // namespace temper::sim_hw
