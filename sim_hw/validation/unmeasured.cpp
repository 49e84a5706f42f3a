#include "sim_hw/validation/unmeasured.hpp"

#include "sim_hw/hardware/constant_list.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace temper::sim_hw {
namespace {

bool has(const std::vector<UnmeasuredConstant>& list, std::string_view name) {
  return std::ranges::any_of(list,
                             [&](const UnmeasuredConstant& each) { return each.name == name; });
}

double* operator_of(OperatorConstants& constants, std::string_view name) {
  for (const NamedConstant& each : constants_of(constants)) {
    if (in_group(kOperatorGroup, each.name) == name)
      return each.value;
  }
  return nullptr;
}

CollectiveOperation* operation_of(CollectiveConstants& constants, std::string_view name) {
  for (const auto& [each, operation] : operations_of(constants)) {
    if (in_group(kCollectiveGroup, each) == name)
      return operation;
  }
  return nullptr;
}

/// Names of constants with this origin; whole groups as "operators.*".
std::string constant_names(std::span<const UnmeasuredConstant> all, ConstantOrigin origin) {
  std::string out;
  for (const std::string_view group : {kOperatorGroup, kCollectiveGroup}) {
    const auto of_group = [&](const UnmeasuredConstant& each) {
      return each.name.starts_with(group);
    };
    std::vector<std::string> names;
    for (const UnmeasuredConstant& each : all) {
      if (each.origin == origin && of_group(each))
        names.push_back(each.name);
    }
    OperatorConstants operators;
    CollectiveConstants collectives;
    const std::size_t whole = group == kOperatorGroup
                                  ? constants_of(operators).size() - kCountedConstants.size()
                                  : operations_of(collectives).size();
    if (names.size() == whole)
      names = {in_group(group, "*")};
    for (const std::string& name : names)
      out += (out.empty() ? "" : ", ") + name;
  }
  return out;
}

/// Repeats a request with changed constants.
class RequestRepeater {
 public:
  RequestRepeater(const CostContext& context, const Request& request, const HardwareSpec& hardware)
      : catalog_(context.catalog.configs()),
        folder_(context.folder),
        request_(request),
        hardware_(hardware) {
    request_.hardware = "what-if";
  }

  const HardwareSpec& hardware() const { return hardware_; }

  /// Value of the first metric; none if the changed request has no answer.
  std::optional<double> answer_with(HardwareSpec changed) {
    changed.name = request_.hardware;
    changed.aliases.clear();
    catalog_.put(std::move(changed));
    const auto cost = cost_of({catalog_, folder_}, request_);
    if (!cost || cost->metrics.empty())
      return std::nullopt;
    return cost->metrics.front().value;
  }

 private:
  Catalog catalog_;
  std::filesystem::path folder_;
  Request request_;
  const HardwareSpec& hardware_;
};

/// The hardware with this constant reduced by 1 %, to test whether the answer depends on it.
HardwareSpec perturbed(const HardwareSpec& hardware, std::string_view name) {
  HardwareSpec out = hardware;
  if (double* const value = operator_of(out.constants.operators, name))
    *value *= 0.99;
  else if (CollectiveOperation* const operation = operation_of(out.constants.collectives, name))
    operation->efficiency *= 0.99;
  return out;
}

/// Shipped hardware with its unmeasured constants.
using MeasuredHardware = std::vector<std::pair<HardwareSpec, std::vector<UnmeasuredConstant>>>;

MeasuredHardware measured_hardware(Catalog& catalog, const std::string& but) {
  MeasuredHardware out;
  for (const std::string& name : catalog.hardware_names()) {
    const auto spec = catalog.hardware(name);
    if (spec && (*spec)->name != but)
      out.emplace_back(**spec, unmeasured_constants(**spec));
  }
  return out;
}

std::optional<ConstantEffect> effect_of(RequestRepeater& repeater,
                                        const MeasuredHardware& others,
                                        const UnmeasuredConstant& constant,
                                        double answer) {
  const auto differs = [&](std::optional<double> value) {
    return value && std::abs(*value - answer) > 1e-9 * std::abs(answer);
  };
  if (!differs(repeater.answer_with(perturbed(repeater.hardware(), constant.name))))
    return std::nullopt;
  ConstantEffect out{constant.name, constant.origin, std::nullopt, {}, {}, answer, answer};
  HardwareSpec own = repeater.hardware();
  if (const double* const used = operator_of(own.constants.operators, constant.name))
    out.used = *used;
  for (const auto& [other, unmeasured] : others) {
    if (has(unmeasured, constant.name))
      continue;
    HardwareSpec changed = repeater.hardware();
    copy_constant(changed, other, constant.name);
    const std::optional<double> value = repeater.answer_with(changed);
    if (!value)
      continue;
    out.least = std::min(out.least, *value);
    out.most = std::max(out.most, *value);
    if (const double* const with = operator_of(changed.constants.operators, constant.name)) {
      out.low = std::min(out.low.value_or(*with), *with);
      out.high = std::max(out.high.value_or(*with), *with);
    }
  }
  return out;
}

}  // namespace

void copy_constant(HardwareSpec& to, const HardwareSpec& from, std::string_view name) {
  HardwareSpec source = from;
  if (double* const value = operator_of(to.constants.operators, name))
    *value = *operator_of(source.constants.operators, name);
  else if (CollectiveOperation* const operation = operation_of(to.constants.collectives, name))
    *operation = *operation_of(source.constants.collectives, name);
}

std::string constant_names(std::span<const UnmeasuredConstant> constants) {
  std::string out;
  const auto add = [&](std::string_view what, ConstantOrigin origin) {
    if (const std::string names = constant_names(constants, origin); !names.empty())
      out += fmt::format("{}{}: {}", out.empty() ? "" : "; ", what, names);
  };
  add("defaults", ConstantOrigin::Default);
  add("given without a source", ConstantOrigin::Given);
  add("taken over or estimated", ConstantOrigin::TakenOver);
  return out;
}

std::string UnmeasuredNote::text() const {
  return fmt::format(
      "{}predictions were off by {}\n  {} constant{} not measured on {}; names: temper cost "
      "hardware={} --explain\n",
      spread.substituted ? "with these constants in place of measured ones, " : "",
      spread.text(),
      constants.size(),
      constants.size() == 1 ? "" : "s",
      hardware,
      source);
}

Result<std::optional<UnmeasuredNote>> unmeasured_note(Catalog& catalog,
                                                      const HardwareSpec& hardware,
                                                      std::span<const KindMetric> kinds) {
  const std::vector<std::string> shipped = catalog.hardware_names();
  const bool by_name = std::ranges::find(shipped, hardware.name) != shipped.end();
  UnmeasuredNote note{
      hardware.name, by_name ? hardware.name : "FILE", unmeasured_constants(hardware), {}};
  if (note.constants.empty())
    return std::optional<UnmeasuredNote>();
  TEMPER_TRY(note.spread, error_spread(catalog, hardware, kinds));
  return std::optional<UnmeasuredNote>(std::move(note));
}

std::string simulated_run_note(const HardwareSpec& hardware) {
  static constexpr std::array<KindMetric, 6> kRuns{{{"train_iteration", "time"},
                                                    {"train_step", "time"},
                                                    {"logprob_pass", "time"},
                                                    {"decode_step", "time"},
                                                    {"rl_iteration", "update"},
                                                    {"rl_iteration", "rollout"}}};
  Catalog catalog = Catalog::shipped();
  const auto note = unmeasured_note(catalog, hardware, kRuns);
  if (!note)
    return fmt::format("constants of {}: {}\n", hardware.name, note.error().context);
  return *note ? (*note)->text() : "";
}

std::string simulated_run_note(std::span<const HardwareSpec* const> hardware) {
  std::string out;
  for (std::size_t i = 0; i < hardware.size(); ++i) {
    const auto before = hardware.first(i);
    if (std::ranges::find(
            before, hardware[i]->name, [](const HardwareSpec* h) -> const auto& {
              return h->name;
            }) == before.end())
      out += simulated_run_note(*hardware[i]);
  }
  return out;
}

std::string simulated_run_note(std::string_view hardware) {
  Catalog catalog = Catalog::shipped();
  const auto spec = catalog.hardware(hardware);
  return spec ? simulated_run_note(**spec) : spec.error().context + "\n";
}

UnmeasuredConstants analyze_unmeasured(const CostContext& context,
                                       const Request& request,
                                       const Cost& cost) {
  UnmeasuredConstants out;
  const auto hardware = context.catalog.hardware(request.hardware);
  if (!hardware || cost.metrics.empty())
    return out;
  out.hardware = (*hardware)->name;
  const double answer = cost.metrics.front().value;
  RequestRepeater repeater(context, request, **hardware);
  const MeasuredHardware others = measured_hardware(context.catalog, out.hardware);
  for (const UnmeasuredConstant& constant : unmeasured_constants(**hardware)) {
    if (auto effect = effect_of(repeater, others, constant, answer))
      out.constants.push_back(*std::move(effect));
  }
  std::ranges::stable_sort(out.constants, std::ranges::greater(), [](const ConstantEffect& d) {
    return d.most - d.least;
  });
  for (const auto& [other, unmeasured] : others) {
    HardwareSpec changed = **hardware;
    bool any = false;
    for (const ConstantEffect& effect : out.constants) {
      if (has(unmeasured, effect.name))
        continue;
      copy_constant(changed, other, effect.name);
      any = true;
    }
    if (!any)
      continue;
    if (const auto value = repeater.answer_with(std::move(changed)))
      out.together.emplace_back(other.name, *value);
  }
  return out;
}

}  // namespace temper::sim_hw
