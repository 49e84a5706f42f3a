// temper-server-worker: runs one actor that uses an inference server; the orchestrator starts one
// for each server. It does not link libtorch, so that it starts at once.
#include "actors/runtime/actor_program.hpp"
#include "core/exception_error.hpp"
#include "orchestrator/worker/server/server_roles.hpp"

#include <CLI/CLI.hpp>

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): CLI11 throws from tables
  using namespace temper;
  CLI::App app("One actor of a Temper run over an inference server; started by `temper run`.",
               "temper-server-worker");
  actors::ActorArguments actor;
  actors::declare_actor_flags(app, actor);
  CLI11_PARSE(app, argc, argv);
  report_uncaught_exceptions();
  return actors::run_actor_program(
      "temper-server-worker", actor, {}, [&](const actors::Welcome& welcome) {
        return orchestrator::make_server_role(welcome, welcome.name);
      });
}
