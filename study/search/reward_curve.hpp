// How many updates a policy needs to a reward, by the mean staleness of what it trains: read from
// runs that were made, so that the staleness of a plan costs what it was measured to cost.
//
// Source: a compare.csv of `temper compare CONFIG --eta ... --seeds ... --target-reward R --out
// DIR` on a policy that learns. Rows of equal eta are one point: mean staleness over mean steps to
// the target, over the seeds that reached it; an eta of which a seed did not reach it is no point,
// and nothing older is said anything of. Between points: straight lines. Assumed: what staleness
// costs there, relative to none, it costs here.
#pragma once

#include "core/result.hpp"

#include <filesystem>
#include <optional>
#include <vector>

namespace temper::study {

struct RewardCurve {
  struct Point {
    double staleness = 0;
    double updates = 0;
  };
  std::vector<Point> points;  ///< By ascending staleness; at least one.

  double most_staleness() const { return points.back().staleness; }
  /// None beyond the points.
  std::optional<double> updates(double staleness) const;
};

/// Errors: the file cannot be read, has other columns, or no eta of which every seed got there.
Result<RewardCurve> read_reward_curve(const std::filesystem::path& csv);

}  // namespace temper::study
