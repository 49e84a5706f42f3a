#include "study/search/closed_form_correction.hpp"

#include <cmath>

namespace temper::study {

void ClosedFormCorrection::add(Region region, double closed, double run) {
  RegionRuns& region_runs = runs_[region];
  region_runs.logs += std::log(run / closed);
  ++region_runs.runs;
}

double ClosedFormCorrection::factor(Region region) const {
  const auto found = runs_.find(region);
  return found == runs_.end() ? 1 : std::exp(found->second.logs / (found->second.runs + 0.5));
}

}  // namespace temper::study
