// Work that splits into numbered parts which share nothing, on several threads. What a part gives
// belongs in its own place (of a vector, say): then results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <functional>

namespace temper {

/// `wanted`, or where that is not positive one for each core of this machine.
int worker_threads(int wanted);

/// Calls work(0) to work(count - 1), each once, on up to `threads` threads, of which the caller's
/// is one; returns when all are done. Parts begin in their order. `work` is called on several
/// threads at once and throws nothing.
void for_each_index(std::size_t count, int threads, const std::function<void(std::size_t)>& work);

}  // namespace temper
