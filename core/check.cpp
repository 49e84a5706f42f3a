#include "core/check.hpp"

#include <cstdio>
#include <cstdlib>

namespace temper {

void check_failed(const char* file, int line, const char* condition, const char* why) {
  std::fprintf(stderr, "%s:%d: bug: %s (%s)\n", file, line, why, condition);
  std::abort();
}

}  // namespace temper
