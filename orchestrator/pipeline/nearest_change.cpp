#include "orchestrator/pipeline/nearest_change.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>

namespace temper::orchestrator {

using actors::SimulationSettings;

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

namespace {

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

}  // namespace

std::string with_nearest_change(std::string text, const SimulatedPlacement& p) {
  const auto change = nearest_change(p);
  return text + "; nearest: " + change.value_or("none by one change");
}

}  // namespace temper::orchestrator
