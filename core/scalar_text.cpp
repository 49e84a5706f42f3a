#include "core/scalar_text.hpp"

#include <fmt/format.h>

namespace temper {

std::string number_text(double value) {
  return fmt::format("{}", value);
}
std::string number_text(float value) {
  return fmt::format("{}", value);
}

std::string quoted_list(const std::vector<std::string>& names) {
  std::string out;
  for (const std::string& name : names)
    out += fmt::format("{}`{}`", out.empty() ? "" : ", ", name);
  return out;
}

}  // namespace temper
