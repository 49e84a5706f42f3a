#include "orchestrator/pipeline/reference_rules.hpp"

#include "actors/simulation/role_layouts.hpp"
#include "core/json.hpp"
#include "orchestrator/pipeline/teachers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <tuple>

namespace temper::orchestrator {
namespace {

using actors::ReferenceEngineConfig;

/// A simulated actor occupies its cards completely; others on them would run at no cost.
void check_sharing(const PipelineConfig& c, const PlacementConfig& p, Rules& rules) {
  if (c.reference.replicas == 0 || traits_of(p.mode).shares_reference)
    return;
  const auto shared = [&](const std::vector<CardId>& others) {
    return std::ranges::any_of(
        p.reference, [&](CardId card) { return std::ranges::find(others, card) != others.end(); });
  };
  const char* with = shared(p.rollout) ? "rollout" : shared(p.trainer) ? "trainer" : nullptr;
  if (with == nullptr)
    return;
  rules.require(false,
                {"placement.reference_cards", "placement.reference", "placement.mode"},
                fmt::format("the reference shares cards with the {} without switching roles, which "
                            "cannot be simulated; nearest: {}`placement.mode: fused`, where they "
                            "time-share the cards",
                            with,
                            traits_of(p.mode).alternates()
                                ? ""
                                : "`placement.reference_cards: N` for exclusive cards, or "));
}

/// The actors of all teachers divide the cards. Blames the keys that set their numbers.
void check_share(const PipelineConfig& c, const PlacementConfig& p, Rules& rules) {
  const std::int32_t replicas = reference_count(c);
  std::vector<std::string> keys;
  std::string of_each;
  for (const auto& [name, teacher] : c.reference.teachers) {
    of_each += fmt::format("{}{} {}",
                           of_each.empty() ? "" : ", ",
                           name,
                           teacher.replicas.value_or(c.reference.replicas));
    if (teacher.replicas)
      keys.push_back(fmt::format("reference.teachers.{}.replicas", name));
  }
  for (const char* const key : {"reference.replicas", "placement.reference", "placement.cards"})
    keys.emplace_back(key);
  const bool several = !of_each.empty();
  rules.require(replicas == 0 || p.reference.size() % static_cast<std::size_t>(replicas) == 0,
                std::move(keys),
                fmt::format("{}must divide the {} cards of the reference, so that all replicas are "
                            "equal; found {}{}",
                            several ? "the actors of all teachers together " : "",
                            p.reference.size(),
                            replicas,
                            several ? fmt::format(" ({})", of_each) : ""));
}

void check_model(const PipelineConfig& c, sim_hw::Catalog& catalog, Rules& rules) {
  const actors::SimulationConfig& s = c.simulation;
  const auto policy = catalog.model(s.model);
  if (!policy)
    return;  // Reported as a broken rule of its own.
  const sim_hw::ModelSpec of_policy = **policy;
  const auto other = reference_model(s, of_policy, catalog);
  if (!other)
    return rules.require(false, {"simulation.reference.model"}, other.error().context);
  if (!*other || !(*other)->moe || s.experts.loads != actors::ExpertLoadKind::Trace)
    return;
  const std::int64_t experts = of_policy.moe ? of_policy.moe->experts : 0;
  rules.require((*other)->moe->experts == experts,
                {"simulation.reference.model", "simulation.experts.loads"},
                fmt::format("{} has {} experts, but `simulation.experts.trace` has the loads of "
                            "{}; nearest: `loads: drifting` or `loads: zipf`",
                            (*other)->name,
                            (*other)->moe->experts,
                            experts));
}

}  // namespace

Result<std::optional<sim_hw::ModelSpec>> reference_model(const actors::SimulationConfig& config,
                                                         const sim_hw::ModelSpec& policy,
                                                         sim_hw::Catalog& catalog) {
  if (config.reference.model.empty())
    return std::optional<sim_hw::ModelSpec>();
  TEMPER_TRY(const sim_hw::ModelSpec* found, catalog.model(config.reference.model));
  sim_hw::ModelSpec same = *found;
  same.name = policy.name, same.source = policy.source, same.aliases = policy.aliases;
  if (to_json(same) == to_json(policy))
    return std::optional<sim_hw::ModelSpec>();
  return std::optional(*found);
}

void check_simulated_reference(const PipelineConfig& c,
                               const PlacementConfig& p,
                               sim_hw::Catalog& catalog,
                               Rules& rules) {
  check_share(c, p, rules);
  check_sharing(c, p, rules);
  check_model(c, catalog, rules);
}

void check_reference_layout(const actors::SimulationSettings& own, Rules& rules) {
  const ReferenceEngineConfig& c = own.config.reference;
  const Status status = actors::check_reference(own);
  if (!status) {
    const bool of_trainer = c == ReferenceEngineConfig();
    return rules.require(false,
                         {of_trainer ? "simulation.trainer" : "simulation.reference", "placement"},
                         status.error().context);
  }
  const sim_hw::Layout layout = actors::reference_layout(own);
  for (const auto& [name, wanted, possible] : {std::tuple("tp", c.tp, layout.tp),
                                               std::tuple("pp", c.pp, layout.pp),
                                               std::tuple("ep", c.ep, layout.ep),
                                               std::tuple("cp", c.cp, layout.cp)}) {
    rules.require(
        wanted.value_or(possible) == possible,
        {fmt::format("simulation.reference.{}", name), "simulation.reference", "placement"},
        fmt::format("found {}, which does not divide {} on the {} devices of a reference; "
                    "the largest one below that does: {}",
                    wanted.value_or(0),
                    own.model.name,
                    own.cards * own.cluster.dies_per_card,
                    possible));
  }
}

std::string reference_text(const actors::SimulationSettings& own) {
  const sim_hw::Layout layout = actors::reference_layout(own);
  return fmt::format("{} with tp {}, pp {}, ep {}, cp {} on {} devices of {}",
                     own.model.name,
                     layout.tp,
                     layout.pp,
                     layout.ep,
                     layout.cp,
                     layout.devices(),
                     own.cluster.name);
}

}  // namespace temper::orchestrator
