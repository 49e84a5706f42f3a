// The constants by name, for fitting, comparison and provenance reports.
#pragma once

#include "sim_hw/hardware/collective_constants.hpp"
#include "sim_hw/hardware/constants.hpp"

#include <array>
#include <string>
#include <string_view>
#include <utility>
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

/// The groups of constants, as FitRecord::constants names them.
inline constexpr std::string_view kOperatorGroup = "operators";
inline constexpr std::string_view kCollectiveGroup = "collectives";

/// "operators.matmul_boost"
inline std::string in_group(std::string_view group, std::string_view name) {
  return std::string(group) + "." + std::string(name);
}

using NamedOperation = std::pair<std::string_view, CollectiveOperation*>;

/// Operations by name; borrows from `constants`.
inline std::array<NamedOperation, 7> operations_of(CollectiveConstants& constants) {
  return {{{"all_gather", &constants.all_gather},
           {"reduce_scatter", &constants.reduce_scatter},
           {"all_reduce", &constants.all_reduce},
           {"all_to_all", &constants.all_to_all},
           {"dispatch", &constants.dispatch},
           {"combine", &constants.combine},
           {"p2p", &constants.p2p}}};
}

}  // namespace temper::sim_hw
