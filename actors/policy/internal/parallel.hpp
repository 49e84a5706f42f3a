// Loops over long arrays and many rows on the threads of set_compute_threads().
#pragma once

#include "actors/model_folder/bfloat16.hpp"

#include <cstdint>
#include <functional>

namespace temper::actors {

/// Calls f(begin, end) for the parts of [0, n), several at a time. The parts do not depend on the
/// number of threads.
void for_each_part(std::int64_t n, const std::function<void(std::int64_t, std::int64_t)>& f);

/// Calls f(begin, end) for ranges of [0, n), several at a time if the work is worth it. `cost`: of
/// one item, about as many floats as it reads. The ranges do not depend on the number of threads.
void for_each_range(std::int64_t n,
                    std::int64_t cost,
                    const std::function<void(std::int64_t, std::int64_t)>& f);

/// The sum of f(begin, end) over the same parts, added in their order. f returns any values.
double sum_of_parts(std::int64_t n, const std::function<double(std::int64_t, std::int64_t)>& f);

/// Rounds n values to bfloat16. Requires: both arrays have n elements.
void round_array(const float* x, Bfloat16* y, std::int64_t n);

}  // namespace temper::actors
