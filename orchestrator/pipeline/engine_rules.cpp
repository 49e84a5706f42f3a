#include "orchestrator/pipeline/engine_rules.hpp"

#include "actors/server/reload.hpp"
#include "actors/server/url.hpp"
#include "orchestrator/pipeline/verifier_rules.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Checks the server keys of a section.
void check_servers(actors::RoleKind role,
                   const std::string& section,
                   const actors::EngineConfig& engine,
                   std::int32_t replicas,
                   Rules& rules) {
  const std::string key = section + ".engine.";
  const bool possible = role == actors::RoleKind::Rollout || role == actors::RoleKind::Reference;
  rules.require(
      possible,
      {key + "kind"},
      fmt::format("an inference server cannot work as a {}; use `native`, `python` or `command`",
                  name_of(role)));
  if (!possible)
    return;
  const auto count = static_cast<std::size_t>(std::max(1, replicas));
  rules.require(!engine.data.empty() || !engine.start.empty(),
                {key + "data", key + "kind"},
                "required: the servers' addresses, or a command in `start`");
  for (const auto& [name, addresses] :
       {std::pair("data", &engine.data), std::pair("control", &engine.control)}) {
    if (addresses->empty())
      continue;
    const Status fits = actors::check_servers(*addresses, count);
    rules.require(fits.has_value(),
                  {key + name, section + ".replicas"},
                  fits ? std::string() : fits.error().context);
  }
  rules.require(engine.start.empty() || !engine.data.empty() ||
                    engine.start.find("{port}") != std::string::npos,
                {key + "start", key + "data"},
                "must contain {port}, or `data` must give the address of the server");
}

/// Checks servers without routes for loading weights, and without a way to list their models.
void check_weights_of_servers(const PipelineConfig& c,
                              actors::RoleKind role,
                              const std::string& section,
                              const actors::EngineConfig& engine,
                              Rules& rules) {
  using actors::EngineTraits;
  using actors::RoleKind;
  using actors::ServerLoading;
  const std::string key = section + ".engine.";
  const EngineTraits& kind = traits_of(engine.kind);
  const bool by_request = kind.loading == ServerLoading::Request;
  rules.require(by_request || engine.reload.empty(),
                {key + "reload", key + "kind"},
                fmt::format("only for `kind: openai`, found `{}`", kind.name));
  if (by_request || kind.loading == ServerLoading::Restart) {
    if (!engine.reload.empty()) {
      const auto reload = actors::parse_reload(engine.reload);
      rules.require(
          reload.has_value(), {key + "reload"}, reload ? std::string() : reload.error().context);
    }
    rules.require(
        engine.restarts_server() ||
            (by_request && (!engine.reload.empty() || role == RoleKind::Reference)),
        {key + "start", key + "reload", key + "kind"},
        by_request
            ? "this server has no way to load new weights; give a command in `start` that contains "
              "{model}, which is run again for each version, or a request in `reload` with "
              "which the server loads a folder; without either it can only be a `reference`"
            : fmt::format("`{}` loads weights only at its start; give a command in `start` that "
                          "contains {{model}}{}, which is run again for each version",
                          kind.name,
                          kind.reads_gguf ? "/model.gguf" : ""));
  }
  rules.require(
      kind.scores || role == RoleKind::Rollout,
      {key + "kind"},
      fmt::format("`{}` returns no log-probs of a prompt; nearest for a reference: `vllm`",
                  kind.name));
  rules.require(!kind.reads_gguf || c.policy != actors::PolicyKind::Synthetic,
                {key + "kind", "policy"},
                fmt::format("`{}` requires `policy: torch`", kind.name));
  rules.require(!kind.reads_gguf || !c.model.rope_scaling,
                {key + "kind", "model.rope_scaling"},
                "Temper cannot write a GGUF of a model with rope_scaling");
  rules.require(
      kind.documents_sampling || role != RoleKind::Rollout ||
          (c.sampling.temperature == 1 && c.sampling.top_p == 1),
      {"sampling.temperature", "sampling.top_p", key + "kind"},
      fmt::format("must both be 1 with `{}`, because such a server does not document whether its "
                  "log-probs are those of the distribution it samples from",
                  kind.name));
  rules.require(
      kind.releases_memory || !traits_of(c.placement.mode).shares,
      {"placement.mode", key + "kind"},
      fmt::format("must be `separate` with `{}`, which cannot release memory", kind.name));
}

}  // namespace

void check_engine(const PipelineConfig& c,
                  actors::RoleKind role,
                  const std::string& section,
                  const actors::EngineConfig& engine,
                  std::int32_t replicas,
                  Rules& rules) {
  using Kind = actors::EngineKind;
  const std::string key = section + ".engine.";
  if (actors::is_server(engine.kind))
    check_servers(role, section, engine, replicas, rules);
  check_weights_of_servers(c, role, section, engine, rules);
  rules.require(engine.kind == Kind::Native || c.hardware == HardwareKind::Local,
                {key + "kind", "hardware"},
                fmt::format("`{}` requires `hardware: local`", name_of(engine.kind)));
  rules.require(engine.kind != Kind::Python || names_python(engine.use),
                {key + "use", key + "kind"},
                fmt::format("must be `module:Class`, found \"{}\"", engine.use));
  rules.require(
      engine.kind != Kind::Command || (!engine.command.empty() && !engine.command.front().empty()),
      {key + "command", key + "kind"},
      "required by `kind: command`");
}

}  // namespace temper::orchestrator
