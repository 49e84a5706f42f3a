// What drafts the tokens that a decode step verifies. Costs: sim_hw/steps/drafts.hpp.
#pragma once

#include "core/describe.hpp"

#include <array>
#include <string_view>
#include <utility>

namespace temper::sim_hw {

enum class Draft { None, Mtp, Eagle, Ngram };

}  // namespace temper::sim_hw

template <>
struct temper::EnumNames<temper::sim_hw::Draft> {
  using E = temper::sim_hw::Draft;
  static constexpr std::array<std::pair<E, std::string_view>, 4> value{
      {{E::None, "none"}, {E::Mtp, "mtp"}, {E::Eagle, "eagle"}, {E::Ngram, "ngram"}}};
};
