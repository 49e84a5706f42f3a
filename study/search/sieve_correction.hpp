// How far the closed form is off in each region of a search, by the runs that were made there: the
// geometric mean of run over closed form, and half a run more that says they agree, so that one run
// does not say all. A region is a placement mode under a bound; what errs there errs for most of
// its points alike.
#pragma once

#include <cstddef>
#include <map>
#include <utility>

namespace temper::study {

class SieveCorrection {
 public:
  using Region = std::pair<std::size_t, std::size_t>;  ///< A screen, and a space of it.

  /// Scores of one point. Requires: both are positive.
  void saw(Region region, double closed, double run);
  /// What to multiply the closed form's scores with; 1 where nothing was run.
  double factor(Region region) const;

 private:
  struct Seen {
    double logs = 0;
    int runs = 0;
  };
  std::map<Region, Seen> seen_;
};

}  // namespace temper::study
