#include "sim_hw/plan/rollout_request.hpp"

#include "core/split.hpp"
#include "sim_hw/iteration/lengths.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/plan/plan_words.hpp"
#include "sim_hw/request/choice.hpp"
#include "sim_hw/steps/rollout_layout.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <numeric>

namespace temper::sim_hw {
namespace {

constexpr std::array<std::string_view, 4> kSpaceKeys{"tp", "ep", "engine_cards", "slots"};

Status narrow(const RolloutProblem& problem,
              RolloutSpace& space,
              std::string_view key,
              std::string_view text) {
  TEMPER_TRY(const std::vector<std::int64_t> values, counts_of(key, text));
  if (key == "tp") {
    space.tp = values;
  } else if (key == "ep") {
    space.ep = values;
  } else if (values.size() > 1) {
    return invalid_input(fmt::format("{}={}: expected one value", key, text));
  } else if (key == "slots") {
    space.slots = values.front();
  } else {
    space.engine_devices = values.front() * problem.hardware.dies_per_card;
  }
  return {};
}

Result<std::vector<double>> responses_of(const Params& params,
                                         const std::filesystem::path& folder) {
  constexpr std::size_t kQuantiles = 4096;
  if (params.has("lengths")) {
    TEMPER_TRY(const std::string file, params.text("lengths"));
    return read_lengths(folder / file);
  }
  TEMPER_TRY(const double mean, at_least_one(params, "response"));
  TEMPER_TRY(const double spread, params.number("p99_over_median", 1));
  if (spread < 1)
    return invalid_input(fmt::format("p99_over_median={}: must be 1 or more", spread));
  TEMPER_TRY(const double cap, params.number("cap", spread > 1 ? 4 * mean : mean));
  return lognormal_lengths(kQuantiles, mean, cap, spread);
}

std::string change_that_works(const RolloutProblem& problem, const RolloutPlanRequest& request) {
  const auto solution = [](const RolloutProblem& p, const RolloutSpace& s) {
    const RolloutSearch search = search_rollout(p, s, 1);
    return search.best.empty()
               ? std::string()
               : fmt::format(
                     "tp{} ep{} on engines of {} devices, {:.4g} tokens/s, {:.4g} ms per "
                     "token",
                     search.best.front().scenario.tp,
                     search.best.front().scenario.ep,
                     search.best.front().scenario.engine_devices,
                     search.best.front().tokens_per_second(),
                     1e3 * search.best.front().token_seconds());
  };
  const RolloutSpace full = full_rollout_space(problem);
  for (const std::string& key : request.given) {
    RolloutSpace space = request.space;
    if (key == "tp")
      space.tp = full.tp;
    if (key == "ep")
      space.ep = full.ep;
    if (key == "engine_cards")
      space.engine_devices.reset();
    if (key == "slots")
      space.slots.reset();
    if (const std::string works = solution(problem, space); !works.empty())
      return fmt::format("without {}: {}", key, works);
  }
  RolloutProblem larger = problem;
  for (std::int64_t factor = 2; factor <= 1024; factor *= 2) {
    larger.devices = problem.devices * factor;
    RolloutSpace space = full_rollout_space(larger);
    space.engine_devices = request.space.engine_devices;
    space.slots = request.space.slots;
    if (const std::string works = solution(larger, space); !works.empty())
      return fmt::format("{} devices instead of {}: {}", larger.devices, problem.devices, works);
  }
  return {};
}

/// Explains an empty space: the first of its layouts, and the split that divides nothing.
Error nothing_divides(const RolloutProblem& problem, const RolloutPlanRequest& request) {
  const RolloutSpace& s = request.space;
  const std::int64_t dies = problem.hardware.dies_per_card;
  const auto given = [&](std::string_view key) {
    return std::ranges::find(request.given, key) != request.given.end();
  };
  const std::int64_t tp = given("tp") ? s.tp.front() : 1;
  const std::int64_t ep = given("ep") ? s.ep.front() : 1;
  // If engines may have any size, use one that every divisor of the model divides.
  const std::int64_t any =
      std::lcm(std::lcm(tp, ep), dies) * (problem.model.moe ? problem.model.moe->experts : 1);
  const std::int64_t devices = s.engine_devices.value_or(any);
  if (s.engine_devices && devices > problem.devices) {
    return invalid_input(
        fmt::format("no layout can run: an engine of {} devices exceeds the cluster; nearest: "
                    "engine_cards={}",
                    devices,
                    problem.devices / dies));
  }
  const Status status =
      check_rollout_layout(problem.model, problem.hardware, devices / dies, {tp, devices / tp, ep});
  if (!status)
    return Error(status.error()).within("no layout can run");
  return invalid_input(
      fmt::format("no layout can run: no combination of the given {} divides {} "
                  "devices",
                  fmt::join(request.given, ", "),
                  problem.devices));
}

}  // namespace

Result<RolloutPlanRequest> rollout_plan_request(const Params& params,
                                                const std::filesystem::path& folder,
                                                RolloutProblem& problem) {
  RolloutPlanRequest request;
  TEMPER_TRY(const double prompt, at_least_one(params, "prompt"));
  TEMPER_TRY(const std::vector<double> responses, responses_of(params, folder));
  problem.lengths = rollout_lengths(prompt, responses);
  TEMPER_TRY(problem.device_memory,
             byte_limit(params, "memory", problem.device_memory, problem.hardware));
  const double node = as_double(problem.hardware.devices_per_node());
  TEMPER_TRY(const double host,
             byte_limit(params,
                        "host_memory",
                        as_double(problem.hardware.host.memory.count()),
                        problem.hardware));
  problem.host_memory = host / node;
  TEMPER_TRY(problem.max_token_seconds, time_limit(params, "max_token_time"));
  if (params.has("prefill_tokens")) {
    TEMPER_TRY(problem.prefill_tokens, at_least_one(params, "prefill_tokens"));
  }
  TEMPER_TRY(
      problem.staging,
      one_of<WeightStaging>(
          params, "staging", {{"host", WeightStaging::Host}, {"none", WeightStaging::None}}));
  request.space = full_rollout_space(problem);
  for (const std::string_view key : kSpaceKeys) {
    if (!params.has(key))
      continue;
    TEMPER_TRY(const std::string text, params.text(key));
    TEMPER_TRY_STATUS(narrow(problem, request.space, key, text));
    request.given.emplace_back(key);
  }
  for (const char* key :
       {"model", "hardware", "task", "compare", "p99_over_median", "cap", "lengths", "response"})
    (void)params.has(key);
  TEMPER_TRY_STATUS(params.all_used());
  return request;
}

Result<RolloutPlan> plan_with(const RolloutProblem& problem,
                              const RolloutPlanRequest& request,
                              std::string_view text) {
  RolloutPlanRequest narrowed = request;
  for (const std::string_view part : split(text, ",")) {
    const auto key = std::ranges::find_if(
        kSpaceKeys, [&](std::string_view each) { return part.starts_with(each); });
    if (key == kSpaceKeys.end()) {
      return invalid_input(fmt::format(
          "compare: expected a layout such as tp4,ep64,slots48, found `{}`; known keys: "
          "{}",
          part,
          fmt::join(kSpaceKeys, ", ")));
    }
    TEMPER_TRY_STATUS(narrow(problem, narrowed.space, *key, part.substr(key->size())));
    narrowed.given.emplace_back(*key);
  }
  RolloutProblem any_speed = problem;
  any_speed.max_token_seconds.reset();
  const RolloutSearch search = search_rollout(any_speed, narrowed.space, 1);
  if (!search.best.empty())
    return search.best.front();
  if (search.least)
    return *search.least;
  return no_plan(any_speed, narrowed, search).within("compare");
}

Error no_plan(const RolloutProblem& problem,
              const RolloutPlanRequest& request,
              const RolloutSearch& search) {
  if (!search.nearest && !search.least)
    return nothing_divides(problem, request);
  const std::string change = change_that_works(problem, request);
  const std::string advice =
      change.empty() ? "no single change of the request helps" : "a change that works: " + change;
  if (search.nearest) {
    const double took = 1e3 * search.nearest->token_seconds();
    const double most = 1e3 * *problem.max_token_seconds;
    return invalid_input(fmt::format(
        "no layout meets max_token_time={:.4g} ms; the nearest, tp{} ep{} with {} slots per "
        "replica, takes {:.4g} ms, {:.4g} ms more; {}",
        most,
        search.nearest->scenario.tp,
        search.nearest->scenario.ep,
        search.nearest->scenario.slots,
        took,
        took - most,
        advice));
  }
  const RolloutScenario& s = search.least->scenario;
  return Error{
      ErrorCode::OutOfMemory,
      fmt::format("no engine of {} fits {} devices; the nearest, tp{} ep{} with {} {} per "
                  "replica, needs {}; {}",
                  problem.model.name,
                  problem.devices,
                  s.tp,
                  s.ep,
                  s.slots,
                  s.slots == 1 ? "slot" : "slots",
                  excess_text(search.least->memory, problem.device_memory, problem.host_memory),
                  advice)};
}

}  // namespace temper::sim_hw
