#include "sim_hw/plan/train_request.hpp"

#include "core/split.hpp"
#include "sim_hw/model/numbers.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/parallel/layout_request.hpp"
#include "sim_hw/plan/plan_words.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <utility>

namespace temper::sim_hw {
namespace {

using Counts = std::vector<std::int64_t> TrainSpace::*;

/// All other keys.
constexpr std::array<std::string_view, 7> kChoices{"zero",
                                                   "recompute",
                                                   "sequence_parallel",
                                                   "optimizer",
                                                   "schedule",
                                                   "layer_balance",
                                                   "activations"};
/// Search keys whose values are counts.
constexpr std::array<std::pair<std::string_view, Counts>, 8> kCounts{
    {{"tp", &TrainSpace::tp},
     {"pp", &TrainSpace::pp},
     {"vpp", &TrainSpace::vpp},
     {"ep", &TrainSpace::ep},
     {"expert_tp", &TrainSpace::expert_tp},
     {"cp", &TrainSpace::cp},
     {"dp", &TrainSpace::dp},
     {"mbs", &TrainSpace::micro_batch}}};

template <class E, std::size_t N>
using Names = std::array<std::pair<std::string_view, E>, N>;

constexpr Names<Zero, 4> kZeros{
    {{"0", Zero::None}, {"1", Zero::Optimizer}, {"2", Zero::Gradients}, {"3", Zero::Weights}}};
constexpr Names<SequenceParallel, 2> kSequences{
    {{"off", SequenceParallel::Off}, {"on", SequenceParallel::On}}};
constexpr Names<Activations, 2> kActivations{
    {{"as_recompute", Activations::AsRecompute}, {"chosen", Activations::Chosen}}};
constexpr Names<TrainerState, 2> kStates{
    {{"device", TrainerState::Active}, {"host", TrainerState::OptimizerOnHost}}};

template <class E, std::size_t N>
Status choose(std::string_view key,
              std::string_view text,
              const Names<E, N>& names,
              std::vector<E>& out) {
  out.clear();
  for (const std::string_view part : split(text, ",")) {
    const auto found = std::ranges::find(names, part, [](const auto& name) { return name.first; });
    if (found == names.end()) {
      std::string known;
      for (const auto& name : names)
        known += (known.empty() ? "" : ", ") + std::string(name.first);
      return invalid_input(fmt::format("{}: expected {}, found `{}`", key, known, part));
    }
    out.push_back(found->second);
  }
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return {};
}

template <NamedEnum E>
Status choose(std::string_view key, std::string_view text, std::vector<E>& out) {
  Names<E, EnumNames<E>::value.size()> names;
  for (std::size_t i = 0; i < names.size(); ++i)
    names[i] = {EnumNames<E>::value[i].second, EnumNames<E>::value[i].first};
  return choose(key, text, names, out);
}

/// Sets the values of one of space_keys().
Status narrow(TrainSpace& space, std::string_view key, std::string_view text) {
  for (const auto& [name, values] : kCounts) {
    if (name != key)
      continue;
    TEMPER_TRY(space.*values, counts_of(key, text));
    return {};
  }
  if (key == "zero")
    return choose(key, text, kZeros, space.zero);
  if (key == "recompute")
    return choose(key, text, space.recompute);
  if (key == "sequence_parallel")
    return choose(key, text, kSequences, space.sequence_parallel);
  if (key == "schedule")
    return choose(key, text, space.schedule);
  if (key == "activations")
    return choose(key, text, kActivations, space.activations);
  if (key == "layer_balance")
    return choose(key, text, space.layer_balance);
  return choose(key, text, kStates, space.state);
}

std::vector<std::string> space_keys() {
  std::vector<std::string> out;
  out.reserve(std::size(kCounts) + std::size(kChoices));
  for (const auto& [name, values] : kCounts)
    out.emplace_back(name);
  for (const std::string_view name : kChoices)
    out.emplace_back(name);
  return out;
}

void copy_key(const TrainSpace& from, TrainSpace& to, std::string_view key) {
  for (const auto& [name, values] : kCounts) {
    if (name == key)
      to.*values = from.*values;
  }
  if (key == "zero")
    to.zero = from.zero;
  if (key == "recompute")
    to.recompute = from.recompute;
  if (key == "sequence_parallel")
    to.sequence_parallel = from.sequence_parallel;
  if (key == "optimizer")
    to.state = from.state;
  if (key == "schedule")
    to.schedule = from.schedule;
  if (key == "layer_balance")
    to.layer_balance = from.layer_balance;
  if (key == "activations")
    to.activations = from.activations;
}

Status apply_limits(const Params& params,
                    const HardwareSpec& hardware,
                    TrainProblem& problem,
                    TrainPlanRequest& request) {
  TEMPER_TRY(problem.device_memory, byte_limit(params, "memory", problem.device_memory, hardware));
  TEMPER_TRY(const double host,
             byte_limit(params, "host_memory", as_double(hardware.host.memory.count()), hardware));
  problem.host_memory = host / as_double(hardware.devices_per_node());
  TEMPER_TRY(request.max_seconds, time_limit(params, "max_time"));
  return {};
}

/// The request with the keys of `text` set to its values.
Result<TrainPlanRequest> pinned(const TrainPlanRequest& request, std::string_view text) {
  TrainPlanRequest out = request;
  const std::vector<std::string> keys = space_keys();
  for (const std::string_view part : split(text, ",")) {
    std::string_view key;  // The longest key that is a prefix.
    for (const std::string& each : keys) {
      if (part.starts_with(each) && each.size() > key.size())
        key = each;
    }
    if (key.empty()) {
      return invalid_input(
          fmt::format("compare: expected a layout such as tp8,pp16,vpp2,ep32, found `{}`; known "
                      "keys: {}",
                      part,
                      fmt::join(keys, ", ")));
    }
    TEMPER_TRY_STATUS(narrow(out.space, key, part.substr(key.size())));
    out.given.emplace_back(key);
  }
  return out;
}

}  // namespace

Result<TrainPlanRequest> train_plan_request(const Params& params,
                                            const HardwareSpec& hardware,
                                            TrainProblem& problem) {
  std::map<std::string, std::string> rest = params.values();
  const std::vector<std::string> keys = space_keys();
  for (const std::string& key : keys)
    rest.erase(key);
  for (const char* key : {"memory", "host_memory", "max_time", "compare"})
    rest.erase(key);
  const Params shape(std::move(rest));
  TEMPER_TRY_STATUS(params.integer("batch"));  // Required: has no default here.
  TEMPER_TRY(const TrainShape rest_of_shape, train_shape(shape, problem.model));
  for (const std::string& key : keys)
    (void)shape.has(key);  // Registers the key for "did you mean".
  for (const char* key :
       {"memory", "host_memory", "max_time", "model", "hardware", "cards", "task", "compare"})
    (void)shape.has(key);
  TEMPER_TRY_STATUS(shape.all_used());

  TrainPlanRequest request;
  request.shape = rest_of_shape;
  TEMPER_TRY_STATUS(apply_limits(params, hardware, problem, request));
  request.space = full_space(problem, request.shape);
  for (const std::string& key : keys) {
    if (!params.has(key))
      continue;
    TEMPER_TRY(const std::string text, params.text(key));
    TEMPER_TRY_STATUS(narrow(request.space, key, text));
    request.given.push_back(key);
  }
  return request;
}

TrainPlanRequest without_key(const TrainProblem& problem,
                             const TrainPlanRequest& request,
                             std::string_view key) {
  TrainPlanRequest out = request;
  copy_key(full_space(problem, request.shape), out.space, key);
  std::erase(out.given, key);
  return out;
}

Result<TrainPlan> plan_with(const TrainProblem& problem,
                            const TrainPlanRequest& request,
                            std::string_view text) {
  TEMPER_TRY(const TrainPlanRequest narrowed, pinned(request, text));
  const TrainSearch search = search_train(problem, narrowed.space, narrowed.shape, {1, 1});
  if (!search.best.empty())
    return search.best.front();
  if (search.nearest) {  // The fastest of those about as near.
    constexpr double kAbout = 1.02;
    TrainProblem roomier = problem;
    const PlacedLedger& least = search.nearest->memory;
    roomier.device_memory = std::max(problem.device_memory, kAbout * least.device.total());
    roomier.host_memory = std::max(problem.host_memory, kAbout * least.host.total());
    return search_train(roomier, narrowed.space, narrowed.shape, {1, 1}).best.front();
  }
  return Error(empty_space(problem, narrowed)).within("compare");
}

std::string layout_text(const Layout& l) {
  return fmt::format("tp{} pp{} vpp{} ep{} expert_tp{} cp{} dp{}",
                     l.tp,
                     l.pp,
                     l.vpp,
                     l.ep,
                     l.expert_tp,
                     l.cp,
                     l.dp);
}

Error empty_space(const TrainProblem& problem, const TrainPlanRequest& request) {
  TrainScenario first{{}, request.shape, TrainerState::Active};
  const auto is_given = [&](std::string_view key) {
    return std::ranges::find(request.given, key) != request.given.end();
  };
  const auto set = [&](std::string_view key, std::int64_t& to, const std::vector<std::int64_t>& v) {
    if (is_given(key))
      to = v.front();
  };
  const TrainSpace& s = request.space;
  Layout& l = first.layout;
  set("tp", l.tp, s.tp);
  set("pp", l.pp, s.pp);
  set("vpp", l.vpp, s.vpp);
  set("ep", l.ep, s.ep);
  set("expert_tp", l.expert_tp, s.expert_tp);
  set("cp", l.cp, s.cp);
  set("mbs", first.shape.micro_batch, s.micro_batch);
  const std::int64_t others = l.tp * l.pp * l.cp;
  l.sequence_parallel = l.tp > 1 ? s.sequence_parallel.back() : SequenceParallel::Off;
  if (is_given("dp")) {
    l.dp = s.dp.front();
  } else if (l.ep * l.expert_tp > l.tp * l.cp) {  // As many as the experts need.
    l.dp = (l.ep * l.expert_tp + l.tp * l.cp - 1) / (l.tp * l.cp);
  }
  const Status status = check_layout(problem.model, l.devices(), l, first.shape);
  if (!status)
    return Error(status.error()).within("no layout can run");
  if (l.devices() > problem.devices) {
    return invalid_input(
        fmt::format("no layout can run: {} takes tp * pp * cp * dp = {} * {} * {} * {} = {} "
                    "devices, but there are {}; nearest: dp={}",
                    layout_text(l),
                    l.tp,
                    l.pp,
                    l.cp,
                    l.dp,
                    l.devices(),
                    problem.devices,
                    std::max<std::int64_t>(1, problem.devices / others)));
  }
  return invalid_input(fmt::format(
      "no layout can run: no combination of {} divides the model, a batch of {} and "
      "{} devices",
      request.given.empty() ? "degrees"
                            : fmt::format("the given {}", fmt::join(request.given, ", ")),
      first.shape.global_batch,
      problem.devices));
}

}  // namespace temper::sim_hw
