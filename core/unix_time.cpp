#include "core/unix_time.hpp"

#include <ctime>

namespace temper {

double unix_time() {
  timespec now{};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

}  // namespace temper
