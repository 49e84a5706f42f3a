#include "core/version.hpp"

namespace temper {

std::string_view program_version() {
  return TEMPER_VERSION;
}

}  // namespace temper
