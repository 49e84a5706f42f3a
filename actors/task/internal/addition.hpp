// The built-in task: "123+456=" and its sum.
//
// Operands are written with exactly n digits (zero-padded) and the sum with n + 1, least
// significant digit first if `reverse_answer`, so digit k of the answer depends on the digits of
// the prompt at fixed places. All ordered pairs are equally likely. A pair and its mirror image
// (b+a) are held out together, so evaluation problems were never seen in either order.
#pragma once

#include "actors/task/prompts.hpp"

namespace temper::actors {

/// `source`: name of the source; empty: none. Requires: task.kind is Addition. Error: digits out of
/// range.
Result<std::unique_ptr<PromptSource>> make_addition_source(const TaskConfig& task,
                                                           std::uint64_t seed,
                                                           const std::string& source = {});

}  // namespace temper::actors
