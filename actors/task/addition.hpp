// The built-in task: "045+873=" is answered "0918", or "8190" least significant digit first. Both
// summands are uniform over all numbers of n digits, zero-padded; the sum is padded to n + 1.
#pragma once

#include "actors/task/prompts.hpp"

namespace temper::actors {

/// The held-out problems depend on nothing but the digits and the share: whatever the run's seed,
/// the same ones are never trained on. An epoch of train() has each of the others once.
/// Requires: 1 <= task.digits <= 9.
std::unique_ptr<PromptSource> make_addition(const TaskConfig& task, std::uint64_t seed);

}  // namespace temper::actors
