#include "study/search/sieve_correction.hpp"

#include <cmath>

namespace temper::study {

void SieveCorrection::saw(Region region, double closed, double run) {
  Seen& seen = seen_[region];
  seen.logs += std::log(run / closed);
  ++seen.runs;
}

double SieveCorrection::factor(Region region) const {
  const auto seen = seen_.find(region);
  return seen == seen_.end() ? 1 : std::exp(seen->second.logs / (seen->second.runs + 0.5));
}

}  // namespace temper::study
