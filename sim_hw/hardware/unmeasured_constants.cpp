#include "sim_hw/hardware/unmeasured_constants.hpp"

#include "core/split.hpp"
#include "sim_hw/hardware/constant_list.hpp"

#include <algorithm>
#include <optional>
#include <string_view>

namespace temper::sim_hw {
namespace {

bool is_ideal(const CollectiveOperation& c) {
  const CollectiveOperation ideal;
  return c.start_up == ideal.start_up && c.per_peer == ideal.per_peer &&
         c.efficiency == ideal.efficiency && c.segment == ideal.segment;
}

/// Whether a comma-separated list of constants contains this name or its whole group.
bool list_contains(std::string_view list, std::string_view group, const std::string& name) {
  return std::ranges::any_of(split(list, ", "),
                             [&](std::string_view each) { return each == name || each == group; });
}

/// None: measured on this hardware.
std::optional<ConstantOrigin> origin_of(const HardwareSpec& hardware,
                                        std::string_view group,
                                        const std::string& name,
                                        bool is_default) {
  bool recorded = false;
  for (const FitRecord& fit : hardware.fits) {
    if (!list_contains(fit.constants, group, name))
      continue;
    if (fit.rows > 0 && !fit.source.starts_with("taken over"))
      return std::nullopt;
    recorded = true;
  }
  if (recorded)
    return ConstantOrigin::TakenOver;
  return is_default ? ConstantOrigin::Default : ConstantOrigin::Given;
}

}  // namespace

std::vector<UnmeasuredConstant> unmeasured_constants(const HardwareSpec& hardware) {
  std::vector<UnmeasuredConstant> out;
  OperatorConstants operators = hardware.constants.operators;
  OperatorConstants defaults;
  const std::vector<NamedConstant> before = constants_of(defaults);
  const std::vector<NamedConstant> now = constants_of(operators);
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (std::ranges::find(kCountedConstants, now[i].name) != kCountedConstants.end())
      continue;
    const std::string name = in_group(kOperatorGroup, now[i].name);
    if (const auto what =
            origin_of(hardware, kOperatorGroup, name, *now[i].value == *before[i].value))
      out.push_back({name, *what});
  }
  CollectiveConstants collectives = hardware.constants.collectives;
  for (const auto& [operation, value] : operations_of(collectives)) {
    const std::string name = in_group(kCollectiveGroup, operation);
    if (const auto what = origin_of(hardware, kCollectiveGroup, name, is_ideal(*value)))
      out.push_back({name, *what});
  }
  return out;
}

}  // namespace temper::sim_hw
