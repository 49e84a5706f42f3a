// temper-worker: the program that runs one actor, or several simulated ones with a thread each
// (started by the orchestrator), or makes a base checkpoint. The only program that links the torch
// engines.
#include "actors/runtime/process.hpp"
#include "actors/runtime/worker.hpp"
#include "core/log.hpp"
#include "orchestrator/worker/pretrain_command.hpp"
#include "orchestrator/worker/role_factory.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

namespace temper::orchestrator {
namespace {

struct ActorArguments {
  std::string connect;
  std::vector<std::string> names;
  bool simulated = false;
  std::int64_t parent = 0;
};

int fail(const Error& error) {
  fmt::print(stderr, "temper-worker: {}\n", error.context);
  return 1;
}

int run_actor(const ActorArguments& arguments) {
  if (arguments.parent != 0) {
    if (Status status = actors::die_with_parent(arguments.parent); !status) {
      return fail(status.error());
    }
  }
  actors::name_process(arguments.names.front());
  const RealClock clock;
  const Log log = Log::to_stderr(clock);
  actors::WorkerOptions options;
  options.endpoint = arguments.connect;
  if (const char* secret = std::getenv("TEMPER_SECRET"))
    options.secret = secret;
  // The orchestrator is gone and the role is still computing: nobody is left to report to.
  options.abandon = [](const Error& error) {
    fmt::print(stderr, "temper-worker: {}\n", error.context);
    std::fflush(nullptr);
    std::_Exit(1);
  };
  const auto run_one = [&](const std::string& name) {
    actors::WorkerOptions own = options;
    own.name = name;
    if (arguments.simulated)
      own.threads = actors::WorkerOptions::Threads::Inline;
    const Status status = actors::run_worker(own, make_role, clock, log);
    return status ? 0 : fail(status.error());
  };
  if (arguments.names.size() == 1)
    return run_one(arguments.names.front());
  std::vector<int> codes(arguments.names.size());
  std::vector<std::thread> threads;
  for (std::size_t i = 0; i < codes.size(); ++i)
    threads.emplace_back([&, i] { codes[i] = run_one(arguments.names[i]); });
  for (std::thread& thread : threads)
    thread.join();
  return *std::max_element(codes.begin(), codes.end());
}

}  // namespace
}  // namespace temper::orchestrator

int main(int argc, char** argv) {
  using namespace temper::orchestrator;
  CLI::App app("One actor of a Temper run; started by `temper run`.", "temper-worker");
  app.require_subcommand(1);

  ActorArguments actor;
  auto* actor_command = app.add_subcommand("actor", "Run an actor until its orchestrator stops it");
  actor_command->add_option("--connect", actor.connect, "Endpoint of the orchestrator")->required();
  actor_command->add_option("--name", actor.names, "Actor slot; several share the process")
      ->required()
      ->allow_extra_args(false);
  actor_command->add_flag("--simulated", actor.simulated, "The actors only simulate");
  actor_command->add_option("--parent", actor.parent, "Process to die with");

  PretrainArguments pretrain;
  auto* pretrain_command = app.add_subcommand("pretrain", "Make a base checkpoint");
  pretrain_command->add_option("--config", pretrain.config, "Resolved pipeline YAML")->required();
  pretrain_command->add_option("--out", pretrain.out, "Safetensors file to write")->required();
  pretrain_command->add_option("--parent", pretrain.parent, "Process to die with");

  CLI11_PARSE(app, argc, argv);
  return *actor_command ? run_actor(actor) : run_pretrain(pretrain);
}
