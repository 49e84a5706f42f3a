#include "orchestrator/pipeline/simulated_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

namespace temper::orchestrator {
namespace {

using actors::ActorMemory;
using actors::SimulationSettings;
using sim_hw::Ledger;

std::string gib(double bytes) {
  return fmt::format("{:.2f}", bytes / 1073741824.0);
}

/// The settings of one actor of a role.
SimulationSettings of_actor(const SimulatedPlacement& p,
                            std::int64_t cards,
                            std::int64_t actors,
                            bool shared) {
  SimulationSettings s = p.settings;
  s.cards = std::max<std::int64_t>(1, cards / std::max<std::int64_t>(1, actors));
  s.colocated = shared;
  return s;
}

bool shares(const SimulatedPlacement& p) {
  return p.mode != PlacementMode::Separate;
}

/// Memory of each role, per device.
struct Roles {
  ActorMemory trainer;
  ActorMemory engine;            ///< On the rollout's own cards.
  ActorMemory switching_engine;  ///< On cards that it shares with the trainer.
  ActorMemory reference;
};

Status check_engines(const SimulatedPlacement& p, const SimulationSettings& engine) {
  if (p.engines < 1 || p.settings.rollout_cards % p.engines != 0) {
    return invalid_input(fmt::format("{} rollout cards cannot be shared evenly by {} engines",
                                     p.settings.rollout_cards,
                                     p.engines));
  }
  if (p.mode == PlacementMode::Hybrid && p.settings.trainer_cards % engine.cards != 0) {
    return invalid_input(
        fmt::format("the {} cards that switch are no whole number of engines of {} cards",
                    p.settings.trainer_cards,
                    engine.cards));
  }
  if (Status status = actors::check_rollout(engine); !status)
    return std::move(status).error().within("rollout");
  const Tokens cache = actors::kv_tokens(engine);
  const Tokens sequence =
      actors::longest(engine.config.prompt) + actors::longest(engine.config.response);
  if (cache < sequence) {
    return Error{ErrorCode::OutOfMemory,
                 fmt::format("rollout: beside {} GiB of weights the KV cache of a replica holds {} "
                             "tokens, fewer than one longest sequence of {}",
                             gib(actors::rollout_memory(engine).device.weights),
                             cache.count(),
                             sequence.count())};
  }
  return {};
}

Result<Roles> make_roles(const SimulatedPlacement& p) {
  Roles roles;
  const SimulationSettings trainer = of_actor(p, p.settings.trainer_cards, 1, shares(p));
  if (Status status = actors::check_trainer(trainer); !status)
    return std::move(status).error().within("trainer");
  roles.trainer = actors::trainer_memory(trainer);
  const SimulationSettings engine = of_actor(p, p.settings.rollout_cards, p.engines, false);
  TEMPER_TRY_STATUS(check_engines(p, engine));
  roles.engine = actors::rollout_memory(engine);
  roles.switching_engine = actors::rollout_memory(switching_engine(p));
  if (p.reference != ReferencePlace::None) {
    if (p.references < 1 || p.reference_cards % p.references != 0 || p.reference_cards < 1) {
      return invalid_input(fmt::format("{} reference cards cannot be shared evenly by {} actors",
                                       p.reference_cards,
                                       p.references));
    }
    const SimulationSettings reference = of_actor(p, p.reference_cards, p.references, shares(p));
    if (Status status = actors::check_reference(reference); !status)
      return std::move(status).error().within("reference");
    roles.reference = actors::reference_memory(reference);
  }
  return roles;
}

/// What is left between updates.
Ledger without_activations(Ledger trainer) {
  trainer.activations = trainer.recompute_working_set = trainer.head = trainer.communication = 0;
  return trainer;
}

Ledger reserve_of(const Ledger& role) {
  Ledger ledger;
  ledger.reserve = role.reserve;
  return ledger;
}

/// A trainer whose weights and optimizer are in host memory.
Ledger parked(const ActorMemory& trainer) {
  Ledger host = trainer.host;
  host.weights = trainer.device.weights;
  host.optimizer += trainer.device.optimizer;
  return host;
}

class Phases {
 public:
  explicit Phases(const Roles& roles) : roles_(roles) {}

  void own_trainer() {
    add("trainer", "train", {{"trainer", roles_.trainer}});
    ActorMemory sending = roles_.trainer;
    sending.device = without_activations(sending.device);
    sending.device.communication = bucket();
    add("trainer", "publish", {{"trainer", sending}});
  }
  void own_rollout() { add("rollout", "rollout", {{"rollout", roles_.engine}}); }
  void own_reference() { add("reference", "score", {{"reference", roles_.reference}}); }

  enum class Reference { Absent, InTurn };
  void shared(Reference reference) {
    const ActorMemory& t = roles_.trainer;
    const ActorMemory& e = roles_.switching_engine;
    const ActorMemory idle_engine{reserve_of(e.device), {}};
    const ActorMemory moving{without_activations(t.device), parked(t)};
    Ledger weights = reserve_of(t.device);
    weights.weights = t.device.weights;
    Ledger arriving = reserve_of(e.device);
    arriving.weights = e.device.weights;
    const ActorMemory bound{arriving, {}};
    arriving.communication = bucket();
    const ActorMemory resharding{weights, parked(t)};
    const ActorMemory idle_trainer{reserve_of(t.device), parked(t)};
    Ledger cached = bound.device;
    cached.kv_cache = e.device.kv_cache;

    const bool scores = reference == Reference::InTurn;
    const ActorMemory& r = roles_.reference;
    Ledger host_copy;
    host_copy.weights = r.device.weights;
    const ActorMemory away{reserve_of(r.device), host_copy};
    Ledger coming = reserve_of(r.device);
    coming.weights = r.device.weights;

    const auto with_reference = [&](std::string_view name,
                                    const ActorMemory& a,
                                    const ActorMemory& b,
                                    const ActorMemory& c) {
      std::vector<PhaseLedger::Part> parts{{"trainer", a}, {"rollout", b}};
      if (scores)
        parts.push_back({"reference", c});
      add("shared", name, std::move(parts));
    };
    const auto phase = [&](std::string_view name, const ActorMemory& a, const ActorMemory& b) {
      with_reference(name, a, b, away);
    };
    phase("train", t, idle_engine);
    phase("offload_optimizer", moving, idle_engine);
    phase("reshard", resharding, {arriving, {}});
    phase("bind", resharding, bound);
    phase("kv_alloc", idle_trainer, {cached, {}});
    phase("rollout", idle_trainer, e);
    phase("free_kv", idle_trainer, bound);
    if (scores) {
      with_reference("onload_reference", idle_trainer, idle_engine, {coming, host_copy});
      with_reference("score", idle_trainer, idle_engine, {r.device, {}});
    }
    phase("onload", moving, idle_engine);
  }

  std::vector<PhaseLedger> take() { return std::move(out_); }

 private:
  double bucket() const { return std::min(actors::kBucketBytes, roles_.trainer.device.weights); }
  void add(std::string_view group, std::string_view phase, std::vector<PhaseLedger::Part> parts) {
    out_.push_back({group, phase, std::move(parts)});
  }

  const Roles& roles_;
  std::vector<PhaseLedger> out_;
};

/// Bytes by which the fullest phase exceeds a capacity; the phase is none if all fit.
struct Excess {
  const PhaseLedger* phase = nullptr;
  double device = 0;
  double host = 0;
  double worst() const { return std::max(device, host); }
};

Excess largest_excess(const SimulationSettings& s, const std::vector<PhaseLedger>& phases) {
  Excess out;
  for (const PhaseLedger& phase : phases) {
    const Excess e{&phase,
                   phase.device() - actors::device_capacity(s),
                   phase.host() - actors::host_capacity(s)};
    if (e.worst() > out.worst())
      out = e;
  }
  return out;
}

bool fits(const SimulatedPlacement& p) {
  const auto phases = memory_phases(p);
  return phases && largest_excess(p.settings, *phases).phase == nullptr;
}

/// Tries doublings of one key of a placement; keeps the first that fits.
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
    if (!found_ && fits(p))
      found_ = text;
    return found_.has_value();
  }
  std::optional<std::string> take() { return std::move(found_); }

 private:
  const SimulatedPlacement& from_;
  std::optional<std::string> found_;
};

/// A smaller or, where one sequence does not fit, a larger share, in hundredths.
void search_kv_share(const SimulatedPlacement& p, Search& search) {
  const auto hundredths =
      static_cast<std::int64_t>(std::floor(p.settings.config.rollout.kv_share * 100 - 1e-9));
  SimulatedPlacement other = p;
  for (std::int64_t distance = 0; distance < 100; ++distance) {
    for (const std::int64_t share : {hundredths - distance, hundredths + 1 + distance}) {
      if (share < 1 || share > 100)
        continue;
      other.settings.config.rollout.kv_share = static_cast<double>(share) / 100;
      if (search.consider(fmt::format("simulation.rollout.kv_share = {:.2f}",
                                      other.settings.config.rollout.kv_share),
                          other)) {
        return;
      }
    }
  }
}

void search_cards(const SimulatedPlacement& p, Search& search) {
  const std::int64_t there = p.settings.cluster.cards();
  for (std::int64_t factor = 2; factor <= 64; factor *= 2) {
    SimulatedPlacement more = p;
    more.settings.trainer_cards *= factor;
    if (more.settings.trainer_cards + p.settings.rollout_cards <= there &&
        p.mode == PlacementMode::Separate &&
        search.consider(fmt::format("{} trainer cards", more.settings.trainer_cards), more))
      return;
    more = p;
    more.settings.rollout_cards *= factor;
    if (more.settings.rollout_cards + p.settings.trainer_cards <= there &&
        p.mode == PlacementMode::Separate &&
        search.consider(fmt::format("{} rollout cards", more.settings.rollout_cards), more))
      return;
    more = p;
    more.settings.trainer_cards *= factor;
    more.settings.rollout_cards *= factor;
    more.reference_cards *= factor;
    if (std::max(more.settings.trainer_cards, more.settings.rollout_cards) <= there &&
        p.mode != PlacementMode::Separate &&
        search.consider(fmt::format("{} cards", more.settings.trainer_cards), more))
      return;
  }
}

/// The nearest single change that fits, in words.
std::optional<std::string> nearest_change(const SimulatedPlacement& p) {
  Search search(p);
  search_kv_share(p, search);
  using P = SimulatedPlacement;
  const std::int64_t dies = p.settings.cluster.dies_per_card;
  const std::int64_t engine =
      p.settings.rollout_cards * dies / std::max<std::int64_t>(1, p.engines);
  const std::int64_t trainer = p.settings.trainer_cards * dies;
  search.grow("simulation.rollout.ep", engine, [](P& x) -> std::int64_t& {
    return x.settings.config.rollout.ep;
  });
  search.grow("simulation.rollout.tp", engine, [](P& x) -> std::int64_t& {
    return x.settings.config.rollout.tp;
  });
  search.grow("simulation.trainer.ep", trainer, [](P& x) -> std::int64_t& {
    return x.settings.config.trainer.ep;
  });
  search.grow("simulation.trainer.pp", trainer, [](P& x) -> std::int64_t& {
    return x.settings.config.trainer.pp;
  });
  search.grow("simulation.trainer.tp", trainer, [](P& x) -> std::int64_t& {
    return x.settings.config.trainer.tp;
  });
  search.grow("simulation.trainer.cp", trainer, [](P& x) -> std::int64_t& {
    return x.settings.config.trainer.cp;
  });
  search.shrink("simulation.trainer.micro_batch_tokens", 1, [](P& x) -> std::int64_t& {
    return x.settings.config.trainer.micro_batch_tokens;
  });
  search.shrink("simulation.rollout.prefill_tokens", 256, [](P& x) -> std::int64_t& {
    return x.settings.config.rollout.prefill_tokens;
  });
  P other = p;
  other.settings.config.trainer.optimizer_on_host = !p.settings.config.trainer.optimizer_on_host;
  search.consider(fmt::format("simulation.trainer.optimizer_on_host = {}",
                              other.settings.config.trainer.optimizer_on_host),
                  other);
  search.shrink("rollout.replicas", 1, [](P& x) -> std::int64_t& { return x.engines; });
  search_cards(p, search);
  return search.take();
}

std::string with_nearest(std::string text, const SimulatedPlacement& p) {
  const auto change = nearest_change(p);
  return text + "; nearest: " + change.value_or("none by one change");
}

}  // namespace

SimulatedPlacement simulated_placement(const ResolvedPipeline& pipeline) {
  return simulated_placement(pipeline.config, pipeline.placement, *pipeline.simulation);
}

SimulatedPlacement simulated_placement(const PipelineConfig& config,
                                       const PlacementConfig& cards,
                                       const SimulationSettings& settings) {
  SimulatedPlacement p;
  p.settings = settings;
  p.settings.trainer_cards = std::ssize(cards.trainer);
  p.settings.rollout_cards = std::ssize(cards.rollout);
  p.settings.concurrency = config.rollout.concurrency;
  p.mode = cards.mode;
  p.engines = config.rollout.replicas;
  p.references = config.reference.replicas;
  p.reference_cards = std::ssize(cards.reference);
  p.reference = p.references == 0                    ? ReferencePlace::None
                : cards.mode == PlacementMode::Fused ? ReferencePlace::InTurn
                                                     : ReferencePlace::Own;
  return p;
}

SimulationSettings switching_engine(const SimulatedPlacement& p) {
  SimulationSettings s = of_actor(p, p.settings.rollout_cards, p.engines, true);
  s.rollout_cards = p.settings.trainer_cards;  // theirs are the only weights that come from there
  return s;
}

double PhaseLedger::device() const {
  double sum = 0;
  for (const Part& part : parts)
    sum += part.memory.device.total();
  return sum;
}

double PhaseLedger::host() const {
  double sum = 0;
  for (const Part& part : parts)
    sum += part.memory.host.total();
  return sum;
}

std::string PhaseLedger::text() const {
  std::string out;
  const auto list = [&](std::string_view role, std::string_view where, const Ledger& ledger) {
    for (const auto& [name, bytes] : ledger.entries()) {
      if (bytes > 0) {
        out += fmt::format("{}{} {}{} {}", out.empty() ? "" : " + ", role, name, where, gib(bytes));
      }
    }
  };
  for (const Part& part : parts) {
    list(part.role, "", part.memory.device);
    list(part.role, " (host)", part.memory.host);
  }
  return out;
}

Result<std::vector<PhaseLedger>> memory_phases(const SimulatedPlacement& p) {
  TEMPER_TRY(const Roles roles, make_roles(p));
  Phases phases(roles);
  using Reference = Phases::Reference;
  switch (p.mode) {
    case PlacementMode::Separate:
      phases.own_rollout();
      phases.own_trainer();
      break;
    case PlacementMode::Colocated:
    case PlacementMode::Fused:
      phases.shared(p.reference == ReferencePlace::InTurn ? Reference::InTurn : Reference::Absent);
      break;
    case PlacementMode::Hybrid:
      phases.own_rollout();
      phases.shared(Reference::Absent);
      break;
  }
  if (p.reference == ReferencePlace::Own)
    phases.own_reference();
  return phases.take();
}

std::optional<double> host_left(const SimulatedPlacement& p) {
  const auto phases = memory_phases(p);
  if (!phases)
    return std::nullopt;
  double most = 0;
  for (const PhaseLedger& phase : *phases)
    most = std::max(most, phase.host());
  const double capacity = actors::host_capacity(p.settings);
  return most > capacity ? std::nullopt : std::optional(capacity - most);
}

Status check_memory(const SimulatedPlacement& p) {
  auto phases = memory_phases(p);
  if (!phases) {
    Error error = std::move(phases).error();
    if (error.code == ErrorCode::OutOfMemory)
      error.context = with_nearest(std::move(error.context), p);
    return error;
  }
  const Excess excess = largest_excess(p.settings, *phases);
  if (excess.phase == nullptr)
    return {};
  const bool device = excess.device >= excess.host;
  const PhaseLedger& phase = *excess.phase;
  return Error{
      ErrorCode::OutOfMemory,
      with_nearest(
          fmt::format(
              "{} cards in phase {}: {} GiB per device exceed its {} GiB of {}: {}",
              phase.group,
              phase.phase,
              gib(device ? phase.device() : phase.host()),
              gib(device ? actors::device_capacity(p.settings) : actors::host_capacity(p.settings)),
              device ? "memory" : "host memory",
              phase.text()),
          p)};
}

}  // namespace temper::orchestrator
