#include "orchestrator/worker/laboratory.hpp"

namespace temper::orchestrator {

std::vector<WorkerCommand> declare_laboratory(CLI::App&) {
  return {};
}

}  // namespace temper::orchestrator
