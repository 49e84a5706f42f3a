#include "study/search/tune_screen.hpp"

#include "orchestrator/pipeline/placement.hpp"
#include "orchestrator/pipeline/resolve.hpp"

#include <algorithm>
#include <cstdint>

namespace temper::study {

namespace {

/// orchestrator::paid_cards() of the actors of a placement, which are expensive to list.
orchestrator::PaidCards paid_cards(const orchestrator::PipelineConfig& config,
                                   const orchestrator::PlacementConfig& cards) {
  enum : std::uint8_t { Unused, RolloutOnly, Others };
  std::vector<std::uint8_t> use(static_cast<std::size_t>(cards.cards), Unused);
  const auto mark = [&](const std::vector<CardId>& of, std::uint8_t as) {
    for (const CardId card : of)
      use[card.value()] = as;
  };
  mark(cards.rollout, RolloutOnly);
  mark(cards.trainer, Others);
  if (config.reference.replicas > 0)
    mark(cards.reference, Others);
  mark(cards.reward, Others);
  orchestrator::PaidCards out;
  out.rollout_only = static_cast<std::size_t>(std::ranges::count(use, RolloutOnly));
  out.all = use.size() - static_cast<std::size_t>(std::ranges::count(use, Unused));
  return out;
}

Rates rates_of(const SteadyState& closed,
               const orchestrator::PipelineConfig& config,
               const orchestrator::PlacementConfig& cards) {
  Rates r;
  r.seconds_per_update = closed.seconds_per_update;
  r.trained_per_s = r.generated_per_s = r.sustained_per_s = closed.trained_per_s;
  r.staleness_mean = closed.staleness_mean;
  r.states = closed.states;
  if (config.cost != orchestrator::CostSection{}) {
    r.cost = orchestrator::cost_of(
        config.cost,
        paid_cards(config, cards),
        {closed.seconds_per_update, r.states, closed.seconds_per_update * closed.trained_per_s});
  }
  return r;
}

}  // namespace

Result<Screen> Screen::create(Region region) {
  TEMPER_TRY(const orchestrator::ResolvedPipeline like, orchestrator::resolve(region.like));
  TEMPER_TRY(LayoutChooser layouts, LayoutChooser::create(like));
  if (region.max_memory)
    layouts.limit_memory(*region.max_memory);
  Screen screen(std::move(region), std::move(layouts), *like.simulation);
  TEMPER_TRY_STATUS(screen.limit(screen.region_.only));
  return screen;
}

Status Screen::limit(const std::vector<Space::Axis>& only) {
  for (Space& space : spaces_) {
    for (const Space::Axis& axis : only) {
      if (Status limited = space.limit(axis); !limited)
        return std::move(limited).error().within("--only");
    }
  }
  return {};
}

Screen::Screen(Region region, LayoutChooser layouts, const actors::SimulatedRun& run)
    : region_(std::move(region)), layouts_(std::move(layouts)), model_(run) {
  for (const double eta : region_.etas) {
    orchestrator::PipelineConfig like = region_.like;
    like.staleness.bound = eta;
    spaces_.emplace_back(std::move(like), region_.mode, run, region_.total_cards);
  }
}

std::optional<ScreenPoint> Screen::judge(std::size_t space,
                                         Space::Point point,
                                         const Score& score) {
  const auto placed = spaces_[space].at(point);
  if (!placed)
    return std::nullopt;
  ++screened_;
  orchestrator::PlacementConfig cards = orchestrator::resolve_placement(*placed);
  auto config = layouts_.complete(*placed, cards);
  if (!config) {
    ++refused_[config.error().context];
    return std::nullopt;
  }
  ++fitting_;
  Rates closed = rates_of(model_(*config, cards), *config, cards);
  const auto worth = score(closed);
  if (!worth) {
    ++refused_["the objective does not cover its staleness"];
    return std::nullopt;
  }
  return ScreenPoint{
      space, std::move(point), *std::move(config), std::move(cards), std::move(closed), *worth};
}

std::vector<ScreenPoint> Screen::run(const Score& score, std::size_t keep) {
  std::vector<ScreenPoint> all;
  const auto cut = [&](std::vector<ScreenPoint>& best) {
    std::ranges::stable_sort(best, std::ranges::greater{}, &ScreenPoint::score);
    best.resize(std::min(best.size(), keep));
  };
  for (std::size_t space = 0; space < spaces_.size(); ++space) {
    std::vector<ScreenPoint> best;
    for (std::size_t n = 0; n < spaces_[space].size(); ++n) {
      auto point = judge(space, spaces_[space].point(n), score);
      if (point)
        best.push_back(*std::move(point));
      if (best.size() >= 2 * keep)
        cut(best);
    }
    cut(best);
    std::ranges::move(best, std::back_inserter(all));
  }
  std::ranges::stable_sort(all, std::ranges::greater{}, &ScreenPoint::score);
  return all;
}

std::vector<ScreenPoint> Screen::neighbors(const ScreenPoint& of, const Score& score) {
  std::vector<ScreenPoint> out;
  const auto& axes = spaces_[of.space].axes();
  for (std::size_t axis = 0; axis < axes.size(); ++axis) {
    for (const int step : {-1, 1}) {
      Space::Point to = of.point;
      if ((step < 0 && to[axis] == 0) || (step > 0 && to[axis] + 1 == axes[axis].values.size()))
        continue;
      to[axis] = step < 0 ? to[axis] - 1 : to[axis] + 1;
      if (auto point = judge(of.space, std::move(to), score))
        out.push_back(*std::move(point));
    }
  }
  return out;
}

bool Screen::any_fits() {
  for (const Space& space : spaces_) {
    for (std::size_t n = 0; n < space.size(); ++n) {
      const auto placed = space.at(space.point(n));
      if (placed && layouts_.complete(*placed, orchestrator::resolve_placement(*placed)))
        return true;
    }
  }
  return false;
}

}  // namespace temper::study
