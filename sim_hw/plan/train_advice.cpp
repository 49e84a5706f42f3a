#include "sim_hw/plan/train_advice.hpp"

#include "sim_hw/model/numbers.hpp"
#include "sim_hw/plan/plan_words.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

namespace temper::sim_hw {
namespace {

/// The fastest plan of the request that meets its limits; none if there is none.
std::optional<TrainPlan> solve(const TrainProblem& problem, const TrainPlanRequest& request) {
  const TrainSearch search = search_train(problem, request.space, request.shape, {1, 1});
  if (search.best.empty())
    return std::nullopt;
  if (request.max_seconds && search.best.front().total() > *request.max_seconds)
    return std::nullopt;
  return search.best.front();
}

std::string solution(const TrainPlan& plan) {
  return fmt::format("{}, {:.4g} s, {:.2f} GiB",
                     layout_text(plan.scenario.layout),
                     plan.total(),
                     plan.memory.device.total() / kGib);
}

/// A change that makes the request solvable, as text; empty if none was found.
std::string working_change(const TrainProblem& problem, const TrainPlanRequest& request) {
  for (const std::string& key : request.given) {
    if (const auto plan = solve(problem, without_key(problem, request, key)))
      return fmt::format("without {}: {}", key, solution(*plan));
  }
  TrainProblem larger = problem;
  for (std::int64_t factor = 2; factor <= 1024; factor *= 2) {
    larger.devices = problem.devices * factor;
    TrainPlanRequest on_more = request;
    for (const std::string_view key : {"tp", "pp", "ep", "cp", "dp"}) {
      if (std::ranges::find(request.given, key) == request.given.end())
        on_more = without_key(larger, on_more, key);
    }
    if (const auto plan = solve(larger, on_more))
      return fmt::format(
          "{} devices instead of {}: {}", larger.devices, problem.devices, solution(*plan));
  }
  for (std::int64_t seq = request.shape.seq / 2; seq >= 1; seq /= 2) {
    TrainPlanRequest shorter = request;
    shorter.shape.seq = seq;
    if (const auto plan = solve(problem, shorter))
      return fmt::format("seq={} instead of {}: {}", seq, request.shape.seq, solution(*plan));
  }
  return {};
}

std::string nearest_change(const TrainProblem& problem, const TrainPlanRequest& request) {
  const std::string change = working_change(problem, request);
  return change.empty() ? "no single change of the request helps"
                        : "a change that works: " + change;
}

}  // namespace

Error no_plan(const TrainProblem& problem,
              const TrainPlanRequest& request,
              const TrainSearch& search) {
  if (!search.nearest)
    return empty_space(problem, request);
  return Error{
      ErrorCode::OutOfMemory,
      fmt::format("no layout of {} fits {} devices; the nearest, {}, needs {}; {}",
                  problem.model.name,
                  problem.devices,
                  layout_text(search.nearest->scenario.layout),
                  excess_text(search.nearest->memory, problem.device_memory, problem.host_memory),
                  nearest_change(problem, request))};
}

Error too_slow(const TrainProblem& problem,
               const TrainPlanRequest& request,
               const TrainPlan& best) {
  return invalid_input(
      fmt::format("no layout meets max_time={:.4g} s; the nearest, {}, takes {:.4g} s, "
                  "{:.4g} s more; {}",
                  *request.max_seconds,
                  layout_text(best.scenario.layout),
                  best.total(),
                  best.total() - *request.max_seconds,
                  nearest_change(problem, request)));
}

}  // namespace temper::sim_hw
