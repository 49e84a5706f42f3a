#include "orchestrator/pipeline/lora_rules.hpp"

#include "actors/model_folder/adapter_layout.hpp"
#include "actors/task/tokenizer.hpp"

#include <fmt/format.h>

namespace temper::orchestrator {
namespace {

using actors::EngineKind;

/// The classes of the Python package that know adapters.
constexpr std::string_view kPythonRoles = "temper.torch:";

/// Servers that load an adapter while they serve.
bool loads_adapters(EngineKind kind) {
  return kind == EngineKind::Vllm || kind == EngineKind::Sglang;
}

bool knows_adapters(std::string_view role, const actors::EngineConfig& engine) {
  return engine.kind == EngineKind::Native || (loads_adapters(engine.kind) && role == "rollout") ||
         (engine.kind == EngineKind::Python && engine.use.starts_with(kPythonRoles));
}

void check_engine(const std::string& role,
                  std::string_view name,
                  const actors::EngineConfig& engine,
                  Rules& rules) {
  rules.require(knows_adapters(role, engine),
                {"model.lora", role + ".engine.kind", role + ".engine.use"},
                fmt::format("requires an engine that knows adapters in `{}`: expected `native`, {}"
                            "or `python` with use: {}{}, found `{}`{}; use one of these or remove "
                            "model.lora",
                            role,
                            role == "rollout" ? "`vllm`, `sglang`, " : "",
                            kPythonRoles,
                            name,
                            name_of(engine.kind),
                            engine.use.empty() ? "" : " with use: " + engine.use));
}

}  // namespace

void check_lora(const PipelineConfig& c, Rules& rules) {
  if (!c.model.lora)
    return;
  if (c.hardware == HardwareKind::Simulated) {  // The targets: check_simulation().
    return rules.require(c.policy == actors::PolicyKind::Synthetic,
                         {"model.lora", "policy"},
                         "not supported in a twin (`policy: torch` on simulated hardware), whose "
                         "two models have different layers; remove model.lora, or set `policy: "
                         "synthetic`");
  }
  const bool own_model =
      c.rollout.engine.kind == EngineKind::Python && c.trainer.engine.kind == EngineKind::Python;
  rules.require(c.policy == actors::PolicyKind::Torch || own_model,
                {"model.lora", "policy"},
                "requires `policy: torch`; `synthetic` has no weights to adapt");
  check_engine("rollout", "Engine", c.rollout.engine, rules);
  rules.require(!actors::is_server(c.rollout.engine.kind) || !traits_of(c.placement.mode).shares,
                {"model.lora", "placement.mode", "rollout.engine.kind"},
                fmt::format("requires exclusive cards for a server (`placement.mode: separate`), "
                            "found `{}`: a server that releases its weights loses the base",
                            name_of(c.placement.mode)));
  check_engine("trainer", "Trainer", c.trainer.engine, rules);
  if (c.policy != actors::PolicyKind::Torch)
    return;  // The Python roles check the targets against their own model.
  const std::int32_t tokens = actors::Tokenizer::for_task(c.task).vocabulary();
  const auto layout = actors::Layout::make(c.model, tokens);
  if (!layout)
    return;  // Reported as an issue of the model.
  const auto adapter = actors::AdapterLayout::make(*layout, *c.model.lora);
  if (adapter)
    return;
  const std::string& why = adapter.error().context;  // "rank: ...", "targets: ..."
  const std::size_t colon = why.find(": ");
  rules.require(false, {"model.lora." + why.substr(0, colon), "model.path"}, why.substr(colon + 2));
}

}  // namespace temper::orchestrator
