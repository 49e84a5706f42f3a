#include "cli/launch/worker_command.hpp"

#include "actors/runtime/place.hpp"
#include "cli/command/exit_code.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/run/processes/key_ring.hpp"
#include "orchestrator/run/processes/launch.hpp"
#include "orchestrator/run/role_configs.hpp"
#include "orchestrator/start/start_run.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <utility>

namespace temper::cli {
namespace {

namespace fs = std::filesystem;

struct WorkerArguments {
  std::string connect;
  std::string key;
  std::string role;
  std::string slot;
  std::optional<double> rank;
  double patience = 600;
};

/// The slot that a worker requests by rank or name. Ranks count the attached slots in actor order.
const orchestrator::ActorSpec* find_slot(const orchestrator::ResolvedPipeline& pipeline,
                                         const std::string& place) {
  std::size_t number = 0;
  for (const orchestrator::ActorSpec& slot : pipeline.slots) {
    if (!slot.attached)
      continue;
    const bool of_rank = place == fmt::format("#{}", number++);
    if (of_rank || orchestrator::covers(place, slot.name))
      return &slot;
  }
  return nullptr;
}

/// The engine that the worker starts, from config.yaml beside the endpoint file. If `--connect` is
/// an address, there is no such file, and the built-in engine is used.
Result<actors::EngineConfig> engine_for(const WorkerArguments& arguments,
                                        const std::string& place) {
  if (arguments.connect.find("://") != std::string::npos)
    return actors::EngineConfig{};
  const fs::path file = fs::path(arguments.connect).parent_path() / "config.yaml";
  const auto patience = std::chrono::duration<double>(arguments.patience);
  const RealClock clock;
  constexpr int kLookMs = 200;
  bool said = false;
  while (!fs::exists(file) || !fs::exists(arguments.connect)) {
    if (!std::exchange(said, true)) {
      fmt::print(stderr,
                 "temper: waiting up to {} s for the run: {} does not exist yet; a run with "
                 "transport.kind=tcp writes it when it starts\n",
                 arguments.patience,
                 fs::absolute(arguments.connect).string());
    }
    if (clock.now().time_since_epoch() >= patience) {
      return Error{ErrorCode::Timeout,
                   fmt::format("{} did not appear within {} s; check that the run has started "
                               "and that this host shares its file system",
                               arguments.connect,
                               arguments.patience)};
    }
    ::poll(nullptr, 0, kLookMs);
  }
  TEMPER_TRY(const orchestrator::LoadedConfig loaded, orchestrator::read_config(file, {}));
  const orchestrator::ResolvedPipeline pipeline = orchestrator::resolve_cards(loaded.config());
  const orchestrator::ActorSpec* slot = find_slot(pipeline, place);
  return slot == nullptr ? actors::EngineConfig{}
                         : orchestrator::engine_of(pipeline.config, slot->role, slot->teacher);
}

Error exec_worker(const WorkerArguments& arguments) {
  std::optional<std::int64_t> rank;
  if (arguments.rank)
    rank = static_cast<std::int64_t>(*arguments.rank);
  auto place = actors::place_of(
      arguments.slot, arguments.role, rank, [](const char* name) { return std::getenv(name); });
  if (!place)
    return std::move(place).error();
  auto engine = engine_for(arguments, *place);
  if (!engine)
    return std::move(engine).error();
  auto command = orchestrator::actor_command(orchestrator::worker_program(), *engine);
  if (!command)
    return std::move(command).error();
  std::vector<std::string> words = *std::move(command);
  const bool own_program = engine->kind == actors::EngineKind::Command;
  if (!own_program) {
    words.insert(words.end(), {"--connect", arguments.connect, "--key", arguments.key});
    words.insert(words.end(), {"--patience", fmt::format("{}", arguments.patience)});
    if (place->starts_with('#')) {
      words.insert(words.end(), {"--rank", place->substr(1)});
    } else if (!arguments.slot.empty()) {
      words.insert(words.end(), {"--slot", arguments.slot});
    } else if (!arguments.role.empty()) {
      words.insert(words.end(), {"--role", arguments.role});
    }
  }
  ::setenv("TEMPER_ENDPOINT", arguments.connect.c_str(), 1);
  ::setenv("TEMPER_CREDENTIALS", arguments.key.c_str(), 1);
  ::setenv("TEMPER_NAME", place->c_str(), 1);
  ::setenv("OMP_WAIT_POLICY", "passive", 0);
  std::vector<char*> raw;
  raw.reserve(words.size() + 1);
  for (std::string& word : words)
    raw.push_back(word.data());
  raw.push_back(nullptr);
  ::execv(raw.front(), raw.data());
  return Error{ErrorCode::Io,
               fmt::format("cannot run {}: {}", words.front(), std::strerror(errno))};
}

}  // namespace

Handler worker_command(Flags& flags) {
  const auto options = std::make_shared<WorkerArguments>();
  flags.text(
      "--connect", options->connect, "RUN_DIR/endpoint, or the orchestrator's address (required)");
  flags.text("--key", options->key, "Key file from `temper keys make` (required)");
  flags.text("--role", options->role, "Take any free slot of this role");
  flags.text("--slot", options->slot, "Take this slot, e.g. rollout-3");
  flags.number("--rank",
               options->rank,
               "Take the attached slot with this number, from 0 (default: the rank that srun, "
               "torchrun, mpirun or an indexed job gives this process)");
  flags.number("--patience", options->patience, "Seconds to wait for the run and for a free slot");
  return [options] {
    std::signal(SIGUSR1, SIG_IGN);  // Slurm's warning is for the orchestrator; exec keeps this
    if (options->connect.empty() || options->key.empty()) {
      std::fputs("temper: a worker needs --connect RUN_DIR/endpoint and --key FILE\n", stderr);
      return kBadInput;
    }
    return fail(exec_worker(*options));
  };
}

}  // namespace temper::cli
