// What both tests of DistQueue say.
#pragma once

#include "orchestrator/scheduler/queue/dist_queue.hpp"

#include <vector>

namespace temper::orchestrator {

enum class References { None, Needed };

using Responses = std::vector<ResponseId>;

inline Responses ready(const DistQueue& queue, Task task) {
  Responses out;
  for (const ResponseId r : queue.ready(task))
    out.push_back(r);
  return out;
}

}  // namespace temper::orchestrator
