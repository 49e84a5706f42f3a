#include "actors/simulation/memory_phases.hpp"

#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

namespace temper::actors {
namespace {

using sim_hw::Ledger;

/// Settings of one actor of a role.
SimulationSettings of_actor(const SimulatedPlacement& p,
                            RoleKind role,
                            std::int64_t cards,
                            std::int64_t actors,
                            bool shared) {
  SimulationSettings s{p.run};
  look_at(s, role);
  s.rollout_cards = p.rollout_cards;
  s.concurrency = p.concurrency;
  s.cards = std::max<std::int64_t>(1, cards / std::max<std::int64_t>(1, actors));
  s.colocated = shared;
  return s;
}

bool shares(const SimulatedPlacement& p) {
  return traits_of(p.mode).shares;
}

/// Memory of each role, per device.
struct Roles {
  ActorMemory trainer;
  ActorMemory engine;            ///< On exclusive rollout cards.
  ActorMemory switching_engine;  ///< On cards shared with the trainer.
  ActorMemory renewing_engine;   ///< The same while a version arrives.
  ActorMemory idle_engine;       ///< The same while other roles have the cards.
  ActorMemory reference;
};

Status check_engines(const SimulatedPlacement& p, const SimulationSettings& engine) {
  if (p.engines < 1 || p.rollout_cards % p.engines != 0) {
    return invalid_input(fmt::format(
        "{} rollout cards cannot be divided evenly among {} engines", p.rollout_cards, p.engines));
  }
  if (traits_of(p.mode).lends() && p.run.trainer_cards % engine.cards != 0) {
    return invalid_input(
        fmt::format("the {} cards that switch are not a multiple of the {} cards of an engine",
                    p.run.trainer_cards,
                    engine.cards));
  }
  if (Status status = check_rollout(engine); !status)
    return std::move(status).error().within("rollout");
  const bool pools = engine.config.rollout.prefill_cards > 0;
  const Tokens prefill = pools ? kv_tokens(prefill_instance(engine)) : Tokens(0);
  const Tokens decode = kv_tokens(engine);
  const Tokens cache = pools ? std::min(decode, prefill) : decode;
  const Tokens sequence = longest(engine.config.prompt) + longest(engine.config.response) +
                          Tokens(static_cast<std::int64_t>(engine_drafts(engine).depth));
  if (cache < sequence) {
    return Error{
        ErrorCode::OutOfMemory,
        fmt::format("rollout: with {} GiB of weights, the KV cache of a {}replica holds {} "
                    "tokens, fewer than the longest sequence ({})",
                    gib_text((pools && prefill <= decode ? decode_memory(prefill_instance(engine))
                                                         : decode_memory(engine))
                                 .device.weights),
                    pools && prefill <= decode ? "prefill " : "",
                    cache.count(),
                    sequence.count())};
  }
  return {};
}

Ledger reserve_of(const Ledger& role) {
  Ledger ledger;
  ledger.reserve = role.reserve;
  return ledger;
}

Result<Roles> make_roles(const SimulatedPlacement& p) {
  Roles roles;
  if (Status status = check_trainer(p.run); !status)
    return std::move(status).error().within("trainer");
  roles.trainer = trainer_memory(p.run);
  const SimulationSettings engine = own_engine(p);
  TEMPER_TRY_STATUS(check_engines(p, engine));
  roles.engine = rollout_memory(engine);
  roles.switching_engine = rollout_memory(switching_engine(p));
  roles.renewing_engine = renewing(switching_engine(p));
  roles.idle_engine.device = reserve_of(roles.switching_engine.device);
  roles.idle_engine.device.weights = frozen_draft_bytes(switching_engine(p));
  if (p.reference != ReferencePlace::None) {
    if (p.references < 1 || p.reference_cards % p.references != 0 || p.reference_cards < 1) {
      return invalid_input(
          fmt::format("{} reference cards cannot be divided evenly among {} actors",
                      p.reference_cards,
                      p.references));
    }
    const SimulationSettings reference = one_reference(p);
    if (Status status = check_reference(reference); !status)
      return std::move(status).error().within("reference");
    roles.reference = reference_memory(reference);
  }
  return roles;
}

/// The memory that remains between updates.
Ledger without_activations(Ledger trainer) {
  trainer.activations = trainer.recompute_working_set = trainer.head = trainer.communication = 0;
  return trainer;
}

class Phases {
 public:
  /// `engines`: on the shared cards.
  Phases(const SimulatedRun& run, const Roles& roles, std::int64_t engines)
      : run_(run), roles_(roles), engines_(engines) {}

  void own_trainer() {
    role_ = RoleKind::Trainer;
    add("trainer", "train", {{"trainer", roles_.trainer}});
    ActorMemory sending = roles_.trainer;
    sending.device = without_activations(sending.device);
    sending.host.activations = sending.host.tensors = 0;
    sending.device.communication = bucket();
    add("trainer", "publish", {{"trainer", sending}});
  }
  void own_rollout() {
    role_ = RoleKind::Rollout;
    add("rollout", "rollout", {{"rollout", roles_.engine}});
  }
  void own_reference() {
    role_ = RoleKind::Reference;
    add("reference", "score", {{"reference", roles_.reference}});
  }

  enum class Reference { Absent, InTurn };
  enum class Switching { Together, OneByOne };
  void shared(Reference reference, Switching switching, Gradients gradients) {
    role_ = RoleKind::Trainer;
    const ActorMemory& t = roles_.trainer;
    const ActorMemory& e = roles_.switching_engine;
    const ActorMemory& idle_engine = roles_.idle_engine;
    const Ledger away_trainer = parked(t, gradients);
    const ActorMemory moving{without_activations(t.device), away_trainer};
    Ledger weights = reserve_of(t.device);
    weights.weights = t.device.weights;
    Ledger arriving = reserve_of(e.device);
    arriving.weights = e.device.weights;
    const ActorMemory bound{arriving, {}};
    arriving.communication = bucket();
    const ActorMemory resharding{weights, away_trainer};
    const ActorMemory idle_trainer{reserve_of(t.device), away_trainer};
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
      parts[1].memory.host.tensors = e.host.tensors;
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
    if (switching == Switching::OneByOne)
      phase("renew", idle_trainer, roles_.renewing_engine);
    phase("free_kv", idle_trainer, bound);
    if (scores) {
      with_reference("onload_reference", idle_trainer, idle_engine, {coming, host_copy});
      with_reference("score", idle_trainer, idle_engine, {r.device, {}});
    }
    phase("onload", moving, idle_engine);
  }

  std::vector<PhaseLedger> take() { return std::move(out_); }

 private:
  double bucket() const { return std::min(kBucketBytes, roles_.trainer.device.weights); }
  void add(std::string_view group, std::string_view phase, std::vector<PhaseLedger::Part> parts) {
    const sim_hw::HardwareSpec& hardware = hardware_of(run_, role_);
    out_.push_back({group,
                    phase,
                    engines_,
                    std::move(parts),
                    device_capacity(hardware),
                    host_capacity(hardware)});
  }

  const SimulatedRun& run_;
  const Roles& roles_;
  std::int64_t engines_ = 0;
  RoleKind role_ = RoleKind::Trainer;  ///< Role whose cards the next phases are on.
  std::vector<PhaseLedger> out_;
};

}  // namespace

std::string gib_text(double bytes) {
  return fmt::format("{:.2f}", bytes / 1073741824.0);
}

SimulationSettings own_engine(const SimulatedPlacement& p) {
  return of_actor(p, RoleKind::Rollout, p.rollout_cards, p.engines, false);
}

SimulationSettings switching_engine(const SimulatedPlacement& p) {
  SimulationSettings s = of_actor(p, RoleKind::Rollout, p.rollout_cards, p.engines, true);
  s.rollout_cards = p.run.trainer_cards;  // only these engines get weights from the trainer's cards
  return s;
}

SimulationSettings one_reference(const SimulatedPlacement& p) {
  return of_actor(p, RoleKind::Reference, p.reference_cards, p.references, shares(p));
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
        out += fmt::format(
            "{}{} {}{} {}", out.empty() ? "" : " + ", role, name, where, gib_text(bytes));
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
  Phases phases(p.run, roles, p.one_by_one ? p.engines : 0);
  using Reference = Phases::Reference;
  if (traits_of(p.mode).exclusive_rollout)
    phases.own_rollout();
  if (shares(p)) {
    phases.shared(p.reference == ReferencePlace::InTurn ? Reference::InTurn : Reference::Absent,
                  p.one_by_one ? Phases::Switching::OneByOne : Phases::Switching::Together,
                  p.keeps_gradients ? Gradients::Kept : Gradients::Dropped);
  } else {
    phases.own_trainer();
  }
  if (p.reference == ReferencePlace::Own)
    phases.own_reference();
  return phases.take();
}

std::optional<double> host_left(const std::vector<PhaseLedger>& phases) {
  if (phases.empty())
    return std::nullopt;
  double left = std::numeric_limits<double>::infinity();
  for (const PhaseLedger& phase : phases)
    left = std::min(left, phase.host_capacity - phase.host());
  return left < 0 ? std::nullopt : std::optional(left);
}

}  // namespace temper::actors
