// Ids of what is generated for an evaluation. They are a space of their own, from kFirstEvaluation
// on, so that nothing of an evaluation is ever taken for training, and so that problem number p has
// the same ids, and with them the same random numbers, in every evaluation.
#pragma once

#include "core/ids.hpp"

#include <cstdint>

namespace temper::orchestrator {

inline constexpr std::uint64_t kFirstEvaluation = std::uint64_t{1} << 40;

constexpr bool is_evaluation(GroupId group) {
  return group.value() >= kFirstEvaluation;
}
constexpr bool is_evaluation(ResponseId response) {
  return response.value() >= kFirstEvaluation;
}
constexpr bool is_evaluation(LeaseId lease) {
  return lease.value() >= kFirstEvaluation;
}
/// Requires: is_evaluation(group).
constexpr std::uint64_t problem_of(GroupId group) {
  return group.value() - kFirstEvaluation;
}

}  // namespace temper::orchestrator
