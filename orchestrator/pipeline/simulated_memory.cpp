#include "orchestrator/pipeline/simulated_memory.hpp"

#include "actors/simulation/memory_phases.hpp"
#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "orchestrator/pipeline/reference_rules.hpp"
#include "orchestrator/pipeline/teachers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

namespace temper::orchestrator {
namespace {

using actors::PhaseLedger;
using actors::SimulatedPlacement;

/// Bytes by which the fullest phase exceeds a capacity; no phase if all fit.
struct Excess {
  const PhaseLedger* phase = nullptr;
  double device = 0;
  double host = 0;
  double worst() const { return std::max(device, host); }
};

Excess largest_excess(const std::vector<PhaseLedger>& phases) {
  Excess out;
  for (const PhaseLedger& phase : phases) {
    const Excess e{
        &phase, phase.device() - phase.device_capacity, phase.host() - phase.host_capacity};
    if (e.worst() > out.worst())
      out = e;
  }
  return out;
}

bool all_fit(const SimulatedPlacement& p) {
  const auto phases = memory_phases(p);
  return phases &&
         std::ranges::all_of(*phases, [](const PhaseLedger& phase) { return fits(phase); });
}

/// Tries doubled values of one key of a placement and keeps the first that fits.
class Search {
 public:
  explicit Search(const SimulatedPlacement& from) : from_(from) {}

  using Field = std::function<std::int64_t&(SimulatedPlacement&)>;
  void grow(std::string_view key, std::int64_t most, const Field& field) {
    SimulatedPlacement p = from_;
    for (std::int64_t value = field(p) * 2; value <= most; value *= 2) {
      field(p) = value;
      if (consider(fmt::format("{} = {}", key, value), p))
        return;
    }
  }
  void shrink(std::string_view key, std::int64_t least, const Field& field) {
    SimulatedPlacement p = from_;
    for (std::int64_t value = field(p) / 2; value >= least; value /= 2) {
      field(p) = value;
      if (consider(fmt::format("{} = {}", key, value), p))
        return;
    }
  }
  bool consider(const std::string& text, const SimulatedPlacement& p) {
    if (!found_ && all_fit(p))
      found_ = text;
    return found_.has_value();
  }
  std::optional<std::string> take() { return std::move(found_); }

 private:
  const SimulatedPlacement& from_;
  std::optional<std::string> found_;
};

/// A smaller KV share, or a larger one if a sequence does not fit; in hundredths.
void search_kv_share(const SimulatedPlacement& p, Search& search) {
  const auto hundredths =
      static_cast<std::int64_t>(std::floor(p.run.config.rollout.kv_share * 100 - 1e-9));
  SimulatedPlacement other = p;
  for (std::int64_t distance = 0; distance < 100; ++distance) {
    for (const std::int64_t share : {hundredths - distance, hundredths + 1 + distance}) {
      if (share < 1 || share > 100)
        continue;
      other.run.config.rollout.kv_share = static_cast<double>(share) / 100;
      if (search.consider(fmt::format("simulation.rollout.kv_share = {:.2f}",
                                      other.run.config.rollout.kv_share),
                          other)) {
        return;
      }
    }
  }
}

/// A larger cut of a reference with a model of its own.
void search_reference(const SimulatedPlacement& p, Search& search) {
  if (p.reference == actors::ReferencePlace::None || !p.run.reference_model)
    return;
  using Key = std::optional<std::int64_t>;
  using actors::ReferenceEngineConfig;
  const actors::SimulationSettings own = actors::one_reference(p);
  const sim_hw::Layout now = actors::reference_layout(own);
  const auto grow = [&](std::string_view name,
                        Key ReferenceEngineConfig::*key,
                        std::int64_t sim_hw::Layout::*cut) {
    SimulatedPlacement other = p;
    for (std::int64_t value = now.*cut * 2; value <= now.devices(); value *= 2) {
      other.run.config.reference.*key = value;
      const actors::SimulationSettings cut_finer = actors::one_reference(other);
      if (!actors::check_reference(cut_finer) || actors::reference_layout(cut_finer).*cut != value)
        return;
      if (search.consider(fmt::format("simulation.reference.{} = {}", name, value), other))
        return;
    }
  };
  grow("ep", &ReferenceEngineConfig::ep, &sim_hw::Layout::ep);
  grow("pp", &ReferenceEngineConfig::pp, &sim_hw::Layout::pp);
  grow("tp", &ReferenceEngineConfig::tp, &sim_hw::Layout::tp);
}

void search_cards(const SimulatedPlacement& p, Search& search) {
  const auto cards_of = [&](actors::RoleKind role) {
    return actors::hardware_of(p.run, role).cards();
  };
  const std::int64_t there = cards_of(actors::RoleKind::Trainer);
  const std::int64_t for_engines = cards_of(actors::RoleKind::Rollout);
  const bool shares = traits_of(p.mode).shares;
  const bool apart = actors::are_apart(p.run, actors::RoleKind::Rollout, actors::RoleKind::Trainer);
  for (std::int64_t factor = 2; factor <= 64; factor *= 2) {
    SimulatedPlacement more = p;
    more.run.trainer_cards *= factor;
    if (more.run.trainer_cards + (apart ? 0 : p.rollout_cards) <= there && !shares &&
        search.consider(fmt::format("{} trainer cards", more.run.trainer_cards), more))
      return;
    more = p;
    more.rollout_cards *= factor;
    if (more.rollout_cards + (apart ? 0 : p.run.trainer_cards) <= for_engines && !shares &&
        search.consider(fmt::format("{} rollout cards", more.rollout_cards), more))
      return;
    more = p;
    more.run.trainer_cards *= factor;
    more.rollout_cards *= factor;
    more.reference_cards *= factor;
    if (std::max(more.run.trainer_cards, more.rollout_cards) <= there && shares &&
        search.consider(fmt::format("{} cards", more.run.trainer_cards), more))
      return;
    more = p;
    more.reference_cards *= factor;
    if (p.reference == actors::ReferencePlace::Own &&
        more.reference_cards <= cards_of(actors::RoleKind::Reference) &&
        search.consider(fmt::format("{} reference cards", more.reference_cards), more))
      return;
  }
}

/// The smallest single change that fits, as text.
std::optional<std::string> nearest_change(const SimulatedPlacement& p) {
  Search search(p);
  using P = SimulatedPlacement;
  if (p.run.config.trainer.activations != sim_hw::ActivationPolicy::Full) {
    P full = p;
    full.run.config.trainer.activations = sim_hw::ActivationPolicy::Full;
    search.consider("simulation.trainer.activations = full", full);
  }
  if (p.run.config.rollout.redundant_experts > 0) {
    P once = p;
    once.run.config.rollout.redundant_experts = 0;
    search.consider("simulation.rollout.redundant_experts = 0", once);
  }
  search_kv_share(p, search);
  search_reference(p, search);
  const std::int64_t engine = p.rollout_cards *
                              actors::hardware_of(p.run, actors::RoleKind::Rollout).dies_per_card /
                              std::max<std::int64_t>(1, p.engines);
  const std::int64_t trainer =
      p.run.trainer_cards * actors::hardware_of(p.run, actors::RoleKind::Trainer).dies_per_card;
  search.grow("simulation.rollout.ep", engine, [](P& x) -> std::int64_t& {
    return x.run.config.rollout.ep;
  });
  search.grow("simulation.rollout.tp", engine, [](P& x) -> std::int64_t& {
    return x.run.config.rollout.tp;
  });
  search.grow("simulation.trainer.ep", trainer, [](P& x) -> std::int64_t& {
    return x.run.config.trainer.ep;
  });
  search.grow("simulation.trainer.pp", trainer, [](P& x) -> std::int64_t& {
    return x.run.config.trainer.pp;
  });
  search.grow("simulation.trainer.tp", trainer, [](P& x) -> std::int64_t& {
    return x.run.config.trainer.tp;
  });
  search.grow("simulation.trainer.cp", trainer, [](P& x) -> std::int64_t& {
    return x.run.config.trainer.cp;
  });
  search.shrink("simulation.trainer.micro_batch_tokens", 1, [](P& x) -> std::int64_t& {
    return x.run.config.trainer.micro_batch_tokens;
  });
  search.shrink("simulation.rollout.prefill_tokens", 256, [](P& x) -> std::int64_t& {
    return x.run.config.rollout.prefill_tokens;
  });
  P other = p;
  other.run.config.trainer.optimizer_on_host = !p.run.config.trainer.optimizer_on_host;
  search.consider(fmt::format("simulation.trainer.optimizer_on_host = {}",
                              other.run.config.trainer.optimizer_on_host),
                  other);
  search.shrink("rollout.replicas", 1, [](P& x) -> std::int64_t& { return x.engines; });
  search_cards(p, search);
  return search.take();
}

std::string with_nearest(const std::string& text, const SimulatedPlacement& p) {
  const auto change = nearest_change(p);
  return text + "; nearest: " + change.value_or("no single change fits");
}

/// Model and layout of a reference with a model of its own that has memory in this phase.
std::string reference_note(const PhaseLedger& phase, const SimulatedPlacement& p) {
  const bool present = std::ranges::any_of(phase.parts, [](const PhaseLedger::Part& part) {
    return part.role == "reference" && part.memory.device.weights + part.memory.host.weights > 0;
  });
  if (!present || !p.run.reference_model)
    return "";
  return fmt::format(" (reference: {})", reference_text(actors::one_reference(p)));
}

}  // namespace

SimulatedPlacement simulated_placement(const ResolvedPipeline& pipeline) {
  return simulated_placement(pipeline.config, pipeline.placement, *pipeline.simulation);
}

SimulatedPlacement simulated_placement(const PipelineConfig& config,
                                       const PlacementConfig& cards,
                                       const actors::SimulatedRun& run) {
  SimulatedPlacement p;
  p.run = run;
  p.run.trainer_cards = std::ssize(cards.trainer);
  p.rollout_cards = std::ssize(cards.rollout);
  p.concurrency = config.rollout.concurrency;
  p.mode = cards.mode;
  p.one_by_one = config.placement.switching == Switching::OneByOne;
  p.keeps_gradients = p.one_by_one && config.stragglers.prepare;
  p.engines = config.rollout.replicas;
  p.references = reference_count(config);
  p.reference_cards = std::ssize(cards.reference);
  p.reference = p.references == 0                        ? actors::ReferencePlace::None
                : traits_of(cards.mode).shares_reference ? actors::ReferencePlace::InTurn
                                                         : actors::ReferencePlace::Own;
  return p;
}

bool fits(const PhaseLedger& phase, const MoreBytes& more) {
  return phase.device() + more.device <= phase.device_capacity &&
         phase.host() + more.host <= phase.host_capacity;
}

Status check_memory(const SimulatedPlacement& p) {
  auto phases = memory_phases(p);
  if (!phases) {
    Error error = phases.error();
    if (error.code == ErrorCode::OutOfMemory)
      error.context = with_nearest(error.context, p);
    return error;
  }
  const Excess excess = largest_excess(*phases);
  if (excess.phase == nullptr)
    return {};
  const bool device = excess.device >= excess.host;
  const PhaseLedger& phase = *excess.phase;
  return Error{
      ErrorCode::OutOfMemory,
      with_nearest(
          fmt::format("{} cards in phase {} need {} GiB per device, but it has {} GiB of {}: {}{}",
                      phase.group,
                      phase.phase,
                      actors::gib_text(device ? phase.device() : phase.host()),
                      actors::gib_text(device ? phase.device_capacity : phase.host_capacity),
                      device ? "memory" : "host memory",
                      phase.text(),
                      reference_note(phase, p)),
          p)};
}

}  // namespace temper::orchestrator
