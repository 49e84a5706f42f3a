// Error of the closed form in each region of a search, estimated from the runs made there: the
// geometric mean of run over closed form, with half a run of weight on agreement, so that one run
// does not dominate. A region is a placement mode under a bound; errors of the closed form are
// similar for most of its points.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

namespace temper::study {

class ClosedFormCorrection {
 public:
  using Region = std::pair<std::size_t, std::size_t>;  ///< A screen, and one of its spaces.

  /// Adds the scores of one point. Requires: both are positive.
  void add(Region region, double closed, double run);
  /// Factor for the closed form's scores; 1 if there were no runs.
  double factor(Region region) const;

 private:
  struct RegionRuns {
    double logs = 0;
    int runs = 0;
  };
  std::map<Region, RegionRuns> runs_;
};

}  // namespace temper::study
