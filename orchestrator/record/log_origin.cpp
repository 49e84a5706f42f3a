#include "orchestrator/record/log_origin.hpp"

#include "core/version.hpp"

namespace temper::orchestrator {

LogOrigin this_program() {
  return {std::string(program_version()), kLogFormat};
}

}  // namespace temper::orchestrator
