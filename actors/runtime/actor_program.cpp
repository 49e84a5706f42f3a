#include "actors/runtime/actor_program.hpp"

#include "actors/runtime/attach.hpp"
#include "actors/runtime/process.hpp"
#include "core/log.hpp"

#include <cstdio>
#include <cstdlib>
#include <utility>

namespace temper::actors {

int run_actor_program(const std::string& program,
                      const ActorArguments& arguments,
                      WorkerOptions options,
                      const RoleFactory& make_role) {
  const auto fail = [&program](const Error& error) {
    fmt::print(stderr, "{}: {}\n", program, error.context);
    return 1;
  };
  if (arguments.parent != 0) {
    if (Status status = die_with_parent(arguments.parent); !status)
      return fail(status.error());
  }
  const RealClock clock;
  const Log log = Log::to_stderr(clock);
  if (!arguments.key.empty()) {
    const auto status = run_attached(arguments, std::move(options), make_role, clock, log);
    return status ? *status : fail(status.error());
  }
  if (arguments.name.empty() || arguments.credentials.empty()) {
    return fail(invalid_input(
        "--key is required to attach to a run; `temper keys make RUN_DIR` creates one"));
  }
  name_process(arguments.name);
  auto credentials = read_credentials(arguments.credentials);
  if (!credentials)
    return fail(credentials.error());
  options.endpoint = arguments.connect;
  options.name = arguments.name;
  options.credentials = *std::move(credentials);
  // The orchestrator is gone and the role is still busy: there is nothing to report to.
  options.abandon = [fail](const Error& error) {
    fail(error);
    std::fflush(nullptr);
    std::_Exit(1);
  };
  const Status status = run_worker(options, make_role, clock, log);
  return status ? 0 : fail(status.error());
}

}  // namespace temper::actors
