// temper-worker: runs one actor, or several simulated ones (started by the orchestrator), or
// pretrains a base checkpoint, or computes logits of a model folder, or judges responses for a
// reward actor in Python. With the laboratory, it also times the engines. The only program that
// links the torch engines.
#include "actors/runtime/actor_program.hpp"
#include "core/exception_error.hpp"
#include "orchestrator/run/virtual/simulated_actors.hpp"
#include "orchestrator/worker/laboratory.hpp"
#include "orchestrator/worker/logits_command.hpp"
#include "orchestrator/worker/pretrain_command.hpp"
#include "orchestrator/worker/roles/role_factory.hpp"
#include "orchestrator/worker/roles/simulated_worker.hpp"
#include "orchestrator/worker/verify_command.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <cstdio>
#include <exception>
#include <string>
#include <utility>
#include <vector>

namespace temper::orchestrator {
namespace {

/// Generous, because hundreds of workers may start at once on few cores.
constexpr Duration kSimulatedRegistration = std::chrono::minutes(2);

int run_actor(const actors::ActorArguments& arguments, bool simulated) {
  actors::WorkerOptions options;
  actors::RoleFactory make = make_role;
  if (simulated) {
    options.threads = actors::WorkerOptions::Threads::Inline;
    options.registration_deadline = kSimulatedRegistration;
    make = [](const actors::Welcome&) -> Result<std::unique_ptr<actors::Role>> {
      return std::unique_ptr<actors::Role>(std::make_unique<SimulatedWorker>(SimulatedActors()));
    };
  }
  return actors::run_actor_program("temper-worker", arguments, std::move(options), make);
}

}  // namespace
}  // namespace temper::orchestrator

int main(int argc, char** argv) {  // NOLINT(bugprone-exception-escape): CLI11 throws from tables
  using namespace temper::orchestrator;
  CLI::App app("One actor of a Temper run; started by `temper run`.", "temper-worker");
  app.require_subcommand(1);

  temper::actors::ActorArguments actor;
  bool simulated = false;
  auto* actor_command = app.add_subcommand("actor", "Run an actor until its orchestrator stops it");
  temper::actors::declare_actor_flags(*actor_command, actor);
  actor_command->add_flag("--simulated", simulated, "Run simulated actors");

  PretrainArguments pretrain;
  auto* pretrain_command = app.add_subcommand("pretrain", "Pretrain a base checkpoint");
  pretrain_command->add_option("--config", pretrain.config, "Resolved pipeline YAML")->required();
  pretrain_command->add_option("--out", pretrain.out, "Model folder to write (Hugging Face format)")
      ->required();
  pretrain_command->add_option("--parent", pretrain.parent, "Exit when this process exits (pid)");

  LogitsArguments logits;
  auto* logits_command = app.add_subcommand("logits", "Compute the logits of a model folder");
  logits_command->add_option("--model", logits.model, "Model folder")->required();
  logits_command->add_option("--folder", logits.folder, "Folder of request.json and of the logits")
      ->required();
  logits_command->add_option("--ignore", logits.ignore, "Key of config.json to ignore");

  auto* verify_command = app.add_subcommand("verify", "Judge responses for a Python reward actor");

  const std::vector<WorkerCommand> laboratory = declare_laboratory(app);

  CLI11_PARSE(app, argc, argv);
  temper::report_uncaught_exceptions();
  try {
    for (const WorkerCommand& command : laboratory) {
      if (command.declared->parsed())
        return command.run();
    }
    if (*logits_command)
      return run_logits(logits);
    if (*verify_command)
      return run_verify();
    return *actor_command ? run_actor(actor, simulated) : run_pretrain(pretrain);
  } catch (const std::exception& exception) {
    fmt::print(stderr, "temper-worker: {}\n", temper::error_of(exception).context);
    return 1;
  }
}
