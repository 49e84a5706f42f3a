#include "orchestrator/worker/server/server_roles.hpp"

#include "actors/model_folder/stored_tensors.hpp"
#include "actors/roles/reference_role.hpp"
#include "actors/runtime/loading.hpp"
#include "actors/runtime/process.hpp"
#include "actors/runtime/with_clock.hpp"
#include "actors/server/server_reference.hpp"
#include "core/blob.hpp"
#include "core/files.hpp"
#include "rollout/gateway/with_agent.hpp"
#include "rollout/rollout_role.hpp"
#include "rollout/server/engine.hpp"
#include "rollout/settings.hpp"
#include "trainer/settings.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <charconv>
#include <filesystem>

namespace temper::orchestrator {
namespace {

using actors::RoleConfig;
using RoleResult = Result<std::unique_ptr<actors::Role>>;

/// Concurrent requests of a reference.
constexpr std::size_t kScoring = 64;
/// Context of a synthetic policy, which has no network.
constexpr Tokens kNoLimit{1 << 30};

/// One connection per request may exceed the default limit of open files.
void allow_many_files() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0)
    return;
  limit.rlim_cur = limit.rlim_max;
  ::setrlimit(RLIMIT_NOFILE, &limit);
}

/// Clock and log of this process; they outlive its role.
struct WorkerContext {
  explicit WorkerContext(const actors::Welcome& welcome) : clock(welcome.epoch_monotonic_ns) {}
  RealClock clock;
  Log log = Log::to_stderr(clock);
};

Result<actors::ServerOptions> options_of(const RoleConfig& role, const std::string& name) {
  actors::ServerOptions options;
  options.config = role.engine;
  options.index = number_of_slot(name);
  options.name = name;
  options.log = actors::server_log(name);
  options.on_wait = actors::note_progress;
  options.model = {.synthetic = role.policy == actors::PolicyKind::Synthetic,
                   .shape = role.model,
                   .vocabulary = role.vocabulary.size,
                   .gguf = traits_of(role.engine.kind).reads_gguf};
  if (options.model.synthetic) {
    options.model.shape.context = kNoLimit;
  } else {
    TEMPER_TRY(options.model.config_json,
               read_file(std::filesystem::path(role.base_weights) / actors::kConfigFile));
  }
  if (role.kind != actors::RoleKind::Rollout)
    options.model.shape.lora.reset();  // The reference is the base.
  options.sampling.adapters = options.model.shape.lora;
  options.sampling.end_tokens = role.vocabulary.ends;
  options.sampling.vocabulary = role.vocabulary.size;
  return options;
}

std::span<const std::byte> bytes_of(const std::string& image) {
  return std::as_bytes(std::span(image));
}

/// The base weights as one image, from any number of shards and types.
Result<std::string> base_image(const RoleConfig& role) {
  if (role.policy == actors::PolicyKind::Synthetic)
    return std::string("synthetic weights");
  TEMPER_TRY(const auto layout, actors::Layout::make(role.model, role.vocabulary.size));
  TEMPER_TRY(const auto folder, actors::ModelFolder::open(role.base_weights, role.model.ignore));
  return actors::read_image(folder, layout);
}

RoleResult make_rollout(const RoleConfig& role, const std::string& name, const WorkerContext& s) {
  TEMPER_TRY(const auto settings, decode_blob<rollout::RolloutSettings>(role.settings));
  TEMPER_TRY(actors::ServerOptions options, options_of(role, name));
  options.sampling.temperature = settings.sampling.temperature;
  options.sampling.top_p = settings.sampling.top_p;
  options.takes_turns = role.takes_turns;
  options.connections = static_cast<std::size_t>(settings.concurrency) + 4;
  std::string image;
  if (!options.config.start.empty()) {
    TEMPER_TRY(image, base_image(role));
  }
  TEMPER_TRY(auto server, actors::Server::create(std::move(options), s.clock, s.log));
  rollout::ServerEngineOptions engine_options;
  engine_options.sampling = settings.sampling;
  engine_options.concurrency = static_cast<std::size_t>(settings.concurrency);
  engine_options.seed = role.seed;
  TEMPER_TRY(auto served,
             rollout::make_server_engine(std::move(server), engine_options, bytes_of(image)));
  TEMPER_TRY(auto engine, rollout::with_agent(std::move(served), role, settings, s.clock));
  return std::unique_ptr<actors::Role>(
      std::make_unique<actors::WithClock<rollout::RolloutRole>>(s.clock, std::move(engine)));
}

RoleResult make_reference(const RoleConfig& role, const std::string& name, const WorkerContext& s) {
  TEMPER_TRY(const auto settings, decode_blob<trainer::TrainerSettings>(role.settings));
  if (settings.temperature != 1) {
    return Error{
        ErrorCode::Unsupported,
        fmt::format("a server scores only at temperature 1, but sampling.temperature is {}; use "
                    "reference.engine.kind: native",
                    settings.temperature)};
  }
  TEMPER_TRY(actors::ServerOptions options, options_of(role, name));
  options.connections = kScoring;
  const auto make = [options, role, &s]() -> Result<std::unique_ptr<actors::ReferenceEngine>> {
    TEMPER_TRY(const std::string image, base_image(role));
    TEMPER_TRY(auto server, actors::Server::create(options, s.clock, s.log));
    return actors::make_server_reference(std::move(server), bytes_of(image));
  };
  std::unique_ptr<actors::ReferenceEngine> engine;
  if (!role.takes_turns) {
    TEMPER_TRY(engine, make());
  }
  return std::unique_ptr<actors::Role>(
      std::make_unique<actors::WithClock<actors::ReferenceRole>>(s.clock, std::move(engine), make));
}

}  // namespace

std::size_t number_of_slot(const std::string& name) {
  const std::size_t dash = name.rfind('-');
  std::size_t number = 0;
  if (dash != std::string::npos)
    std::from_chars(name.data() + dash + 1, name.data() + name.size(), number);
  return number;
}

RoleResult make_server_role(const actors::Welcome& welcome, const std::string& name) {
  const RoleConfig& role = welcome.role;
  static const std::vector<std::uint32_t> given = actors::usable_cores();  // Before any pinning.
  TEMPER_TRY_STATUS(actors::pin_to_cards(role.cards, given));
  allow_many_files();
  static const WorkerContext context(welcome);
  switch (role.kind) {
    case actors::RoleKind::Rollout:
      return make_rollout(role, name, context);
    case actors::RoleKind::Reference:
      return make_reference(role, name, context);
    case actors::RoleKind::Reward:
    case actors::RoleKind::Trainer:
      break;
  }
  return invalid_input(fmt::format("an inference server cannot work as a {}", name_of(role.kind)));
}

}  // namespace temper::orchestrator
