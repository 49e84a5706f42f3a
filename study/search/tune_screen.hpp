// The analytic screen of tune.hpp: judges every point of the spaces of one placement mode by the
// closed form. A screen caches layouts, so neighbors of its points can be requested later. One
// thread each; screens share nothing.
#pragma once

#include "study/search/space.hpp"
#include "study/search/steady_state.hpp"
#include "study/simulate/layouts.hpp"
#include "study/simulate/simulate.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::study {

/// Of the rates by the closed form or of a run. More is better; nullopt: rejected.
using Score = std::function<std::optional<double>(const Rates& rates)>;

/// A configuration that fits.
struct ScreenPoint {
  std::size_t space = 0;  ///< Index of the space in the screen.
  Space::Point point;
  orchestrator::PipelineConfig config;
  orchestrator::PlacementConfig cards;  ///< Its resolved placement.
  Rates closed;                         ///< By the closed form.
  double score = 0;
};

class Screen {
 public:
  struct Region {
    orchestrator::PipelineConfig like;
    orchestrator::PlacementMode mode = orchestrator::PlacementMode::Separate;
    std::vector<double> etas;
    std::optional<Bytes> max_memory;  ///< Per device.
    std::string vary;                 ///< Keys that the user varied in `like`, for the report.
    std::vector<Space::Axis> only;    ///< Axes restricted to these values.
    /// Numbers of cards to try; empty: those of `like`.
    std::vector<std::int64_t> total_cards{};
  };
  /// Errors: as resolve() and Space::limit().
  static Result<Screen> create(Region region);

  const Region& region() const { return region_; }
  /// The best `keep` points of each eta, best first.
  std::vector<ScreenPoint> run(const Score& score, std::size_t keep);
  /// Points one step along one axis away that fit.
  std::vector<ScreenPoint> neighbors(const ScreenPoint& of, const Score& score);

  /// Whether any point fits; stops at the first.
  bool any_fits();

  std::size_t screened() const { return screened_; }
  std::size_t fitting() const { return fitting_; }
  /// Reasons why points were refused, with their counts.
  const std::map<std::string, std::size_t>& refused() const { return refused_; }

 private:
  Screen(Region region, LayoutChooser layouts, const actors::SimulatedRun& run);
  Status limit(const std::vector<Space::Axis>& only);
  /// None: not a placement, does not fit, or rejected.
  std::optional<ScreenPoint> judge(std::size_t space, Space::Point point, const Score& score);

  Region region_;
  LayoutChooser layouts_;
  SteadyStateModel model_;
  std::vector<Space> spaces_;  ///< One per eta.
  std::size_t screened_ = 0, fitting_ = 0;
  std::map<std::string, std::size_t> refused_;
};

}  // namespace temper::study
