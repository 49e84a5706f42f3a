// The first sieve of tune.hpp: every point of the spaces of one placement mode, judged in
// closed form. A screen remembers what it learned of layouts, so its points' neighbours can be
// asked for later. One thread each; different screens share nothing.
#pragma once

#include "study/search/space.hpp"
#include "study/search/steady_state.hpp"
#include "study/simulate/layouts.hpp"

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::study {

/// More is better; none: not wanted.
using Score = std::function<std::optional<double>(
    double trained_per_s, double seconds_per_update, double staleness_mean)>;

/// A configuration that fits.
struct ScreenPoint {
  std::size_t space = 0;  ///< Of the screen.
  Space::Point point;
  orchestrator::PipelineConfig config;
  orchestrator::PlacementConfig cards;  ///< Its placement, resolved.
  SteadyState closed;
  double score = 0;
};

class Screen {
 public:
  struct Region {
    orchestrator::PipelineConfig like;
    orchestrator::PlacementMode mode = orchestrator::PlacementMode::Separate;
    std::vector<double> etas;
    std::optional<Bytes> max_memory;  ///< Of a device.
    std::string vary;                 ///< What the user varied in `like`, for the report.
    std::vector<Space::Axis> only;    ///< Axes that have these values alone.
  };
  /// Errors: as resolve() and Space::limit().
  static Result<Screen> create(Region region);

  const Region& region() const { return region_; }
  /// The best `keep` points of each eta, best first.
  std::vector<ScreenPoint> run(const Score& score, std::size_t keep);
  /// One step along one axis from there; those that fit.
  std::vector<ScreenPoint> neighbours(const ScreenPoint& of, const Score& score);

  /// Whether any point does; stops at the first.
  bool any_fits();

  std::size_t screened() const { return screened_; }
  std::size_t fitting() const { return fitting_; }
  /// Why points do not fit, and how many.
  const std::map<std::string, std::size_t>& refused() const { return refused_; }

 private:
  Screen(Region region, LayoutChooser layouts, const actors::SimulatedRun& run);
  Status limit(const std::vector<Space::Axis>& only);
  /// None: no placement, does not fit, or not wanted.
  std::optional<ScreenPoint> judge(std::size_t space, Space::Point point, const Score& score);

  Region region_;
  LayoutChooser layouts_;
  SteadyStateModel model_;
  std::vector<Space> spaces_;  ///< One per eta.
  std::size_t screened_ = 0, fitting_ = 0;
  std::map<std::string, std::size_t> refused_;
};

}  // namespace temper::study
