#include "rollout/engine.hpp"

#include <fmt/format.h>

namespace temper::rollout {

Status require_idle(std::size_t load, std::string_view what) {
  if (load == 0)
    return {};
  return invalid_input(
      fmt::format("{}: the engine must be idle, but has {} responses", what, load));
}

}  // namespace temper::rollout
