// The operator constants by name, for fitting, comparison and provenance reports.
#pragma once

#include "sim_hw/hardware/constants.hpp"

#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace temper::sim_hw {

/// Constants that count an engine's reads and writes rather than physics; never fitted.
inline constexpr std::array<std::string_view, 7> kCountedConstants{"layer_kernels",
                                                                   "norm_bytes",
                                                                   "activation_bytes",
                                                                   "rotary_bytes",
                                                                   "sampling_bytes",
                                                                   "host_untuned_step",
                                                                   "reward_token"};

struct NamedConstant {
  std::string name;
  double* value = nullptr;
  double min = 0;
  double max = 0;
};

namespace detail {
struct ConstantVisitor {
  std::vector<NamedConstant> constants;
  void field(int, std::string_view name, double& value, const FieldMeta<double>& meta) {
    constants.push_back(
        {std::string(name), &value, meta.min.value_or(1e-300), meta.max.value_or(1e300)});
  }
};
}  // namespace detail

/// In declaration order; borrows from `constants`.
inline std::vector<NamedConstant> constants_of(OperatorConstants& constants) {
  detail::ConstantVisitor visitor;
  describe(visitor, constants);
  return std::move(visitor.constants);
}

}  // namespace temper::sim_hw
