// Runs independent numbered tasks on several threads. Each task writes its result to its own place
// (an element of a vector, for example), so results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <functional>

namespace temper {

/// Returns `wanted`, or the number of cores of this machine if `wanted` is not positive.
int worker_threads(int wanted);

/// Calls work(0) to work(count - 1), each once, on up to `threads` threads including the caller's,
/// and returns when all are done. Tasks start in order of their index. Requires: `work` is safe to
/// call from several threads at once and does not throw.
void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace temper
