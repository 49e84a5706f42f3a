#include "study/search/space.hpp"

#include "actors/simulation/role_clusters.hpp"
#include "orchestrator/pipeline/clusters.hpp"
#include "orchestrator/pipeline/placement.hpp"
#include "study/simulate/engine_space.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

namespace temper::study {
namespace {

constexpr std::int64_t kSlots[] = {8, 16, 24, 32, 48, 64, 96, 128, 192, 256};
constexpr std::int64_t kReturnShares[] = {0, 5, 10, 25, 50};
constexpr std::int64_t kFewestSixteenths = 3, kMostSixteenths = 14;

std::vector<std::int64_t> powers_of_two(std::int64_t most) {
  std::vector<std::int64_t> out;
  for (std::int64_t n = 1; n <= most; n *= 2)
    out.push_back(n);
  return out;
}

std::vector<CardId> block(std::int64_t begin, std::int64_t end) {
  std::vector<CardId> cards;
  for (std::int64_t card = begin; card < end; ++card)
    cards.emplace_back(static_cast<std::uint32_t>(card));
  return cards;
}

/// Shares of all cards, rounded to multiples of a power of two that keeps the rest divisible.
std::vector<std::int64_t> reference_shares(std::int64_t cards) {
  std::vector<std::int64_t> out;
  const std::int64_t grain = std::max<std::int64_t>(1, cards / 24);
  for (const std::int64_t part : {24, 12, 8, 6, 4}) {
    const std::int64_t n = std::max<std::int64_t>(1, cards / part / grain * grain);
    if (n < cards && (out.empty() || out.back() != n))
      out.push_back(n);
  }
  return out;
}

/// The shares of every one of these numbers of cards.
std::vector<std::int64_t> reference_shares(const std::vector<std::int64_t>& totals) {
  std::set<std::int64_t> out;
  for (const std::int64_t total : totals) {
    const std::vector<std::int64_t> shares = reference_shares(total);
    out.insert(shares.begin(), shares.end());
  }
  return {out.begin(), out.end()};
}

}  // namespace

Space::Space(orchestrator::PipelineConfig like,
             orchestrator::PlacementMode mode,
             const actors::SimulatedRun& run,
             std::vector<std::int64_t> total_cards)
    : like_(std::move(like)),
      mode_(mode),
      devices_per_card_(actors::hardware_of(run, actors::RoleKind::Rollout).dies_per_card) {
  axes_.push_back({"engine_cards", powers_of_two(like_.placement.cards)});
  axes_.push_back({"tp", engine_tps(run.model, like_.placement.cards * devices_per_card_)});
  axes_.push_back({"slots", {std::begin(kSlots), std::end(kSlots)}});
  if (total_cards.empty())
    total_cards.push_back(like_.placement.cards);
  add_placement_axes(std::move(total_cards));
}

void Space::add_placement_axes(std::vector<std::int64_t> total_cards) {
  const bool stay =
      orchestrator::has_several_clusters(like_);  // Each role stays on its cluster's cards.
  const actors::PlacementTraits& mode = traits_of(mode_);
  Axis reference{"reference_cards", {0}}, share{"rollout_share", {0}};
  Axis back{"return_share", {25}}, lending{"lending", {0}};
  Axis total{"total_cards", {}};
  if (!stay && !mode.shares_reference && like_.reference.replicas > 0)
    reference.values = reference_shares(total_cards);
  if (stay) {
    // No axis for the split of the cards.
  } else if (mode.exclusive_rollout) {
    share.values.clear();
    for (std::int64_t s = kFewestSixteenths; s <= kMostSixteenths; ++s)
      share.values.push_back(s);
  } else if (like_.staleness.bound > 0) {
    back.values.assign(std::begin(kReturnShares), std::end(kReturnShares));
  }
  if (mode.lends())
    lending.values = {0, 1};
  total.values = std::move(total_cards);
  for (Axis* axis : {&reference, &share, &back, &lending, &total})
    axes_.push_back(std::move(*axis));
}

Status Space::limit(const Axis& to) {
  const auto axis = std::ranges::find(axes_, to.name, &Axis::name);
  if (axis == axes_.end()) {
    std::vector<std::string> names;
    for (const Axis& known : axes_)
      names.push_back(known.name);
    return invalid_input(
        fmt::format("{}: no such axis; known axes: {}", to.name, fmt::join(names, ", ")));
  }
  if (axis->values.size() == 1)
    return {};
  for (const std::int64_t value : to.values) {
    if (std::ranges::find(axis->values, value) == axis->values.end()) {
      return invalid_input(fmt::format("{}={}: not a value of this axis; known values: {}",
                                       to.name,
                                       value,
                                       fmt::join(axis->values, ", ")));
    }
  }
  std::erase_if(axis->values, [&](std::int64_t value) {
    return std::ranges::find(to.values, value) == to.values.end();
  });
  return {};
}

std::optional<orchestrator::PipelineConfig> Space::placed(const Split& split) const {
  const auto [cards, engine, reference, sixteenths] = split;
  orchestrator::PipelineConfig c = like_;
  if (orchestrator::has_several_clusters(like_)) {
    const std::int64_t own = std::ssize(orchestrator::resolve_placement(like_).rollout);
    if (own < engine || own % engine != 0)
      return std::nullopt;
    c.rollout.replicas = static_cast<std::int32_t>(own / engine);
    return c;
  }
  orchestrator::PlacementConfig& p = c.placement;
  p.cards = static_cast<std::int32_t>(cards);
  p.mode = mode_;
  p.rollout.clear(), p.trainer.clear(), p.reference.clear(), p.reward.clear();
  p.rollout_cards = p.reference_cards = 0;
  c.reference.replicas = std::min(c.reference.replicas, 1);
  if (reference > 0 && std::ranges::count(reference_shares(cards), reference) == 0)
    return std::nullopt;
  std::int64_t rollout = cards - reference;
  if (sixteenths > 0) {
    rollout =
        std::max<std::int64_t>(1, (2 * sixteenths * cards / 16 + engine) / (2 * engine)) * engine;
    p.rollout_cards = static_cast<std::int32_t>(rollout);
    p.reference_cards = static_cast<std::int32_t>(reference);
    const std::int64_t trainer = cards - rollout - reference;
    if (trainer < 1 || (traits_of(mode_).lends() && trainer % engine != 0))
      return std::nullopt;
  } else if (reference > 0) {
    p.rollout = p.trainer = block(0, rollout);
    p.reference = block(rollout, cards);
  }
  if (rollout < engine || rollout % engine != 0)
    return std::nullopt;
  c.rollout.replicas = static_cast<std::int32_t>(rollout / engine);
  return c;
}

std::size_t Space::size() const {
  std::size_t product = 1;
  for (const Axis& axis : axes_)
    product *= axis.values.size();
  return product;
}

Space::Point Space::point(std::size_t n) const {
  Point point(axes_.size());
  for (std::size_t axis = axes_.size(); axis-- > 0;) {
    point[axis] = n % axes_[axis].values.size();
    n /= axes_[axis].values.size();
  }
  return point;
}

std::optional<orchestrator::PipelineConfig> Space::at(const Point& point) const {
  const auto value = [&](std::size_t axis) { return axes_[axis].values[point[axis]]; };
  const std::int64_t engine = value(0), tp = value(1), slots = value(2);
  const std::int64_t devices = engine * devices_per_card_;
  if (devices % tp != 0)
    return std::nullopt;
  auto c = placed({value(7), engine, value(3), value(4)});
  if (!c)
    return std::nullopt;
  c->simulation.rollout.tp = tp;
  c->placement.return_share = static_cast<double>(value(5)) / 100;
  c->placement.lending =
      value(6) == 0 ? orchestrator::LendingRule::Auto : orchestrator::LendingRule::Always;
  const std::int64_t outstanding = (static_cast<std::int64_t>(c->staleness.bound) + 1) *
                                   c->algorithm.groups_per_update *
                                   c->algorithm.responses_per_group;
  const std::int64_t group = c->algorithm.responses_per_group;
  const std::int64_t share = (outstanding + c->rollout.replicas - 1) / c->rollout.replicas;
  const std::int64_t most = (share + group - 1) / group * group;
  c->rollout.concurrency =
      static_cast<std::int32_t>(std::max(group, std::min(most, slots * (devices / tp))));
  return c;
}

}  // namespace temper::study
