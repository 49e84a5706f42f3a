// How many updates a policy needs to a reward, by the mean staleness of what it trains: read from
// runs that were made, so that the staleness of a plan costs what it was measured to cost.
//
// Source: a compare.csv of `temper compare CONFIG --eta ... --seeds ... --target-reward R --out
// DIR` on a policy that learns. Rows of equal eta are one point: mean staleness over mean steps to
// the target, over the seeds that reached it; an eta of which a seed did not reach it is no point,
// and nothing older is said anything of. Between points: straight lines, and flat from the last one
// to its eta. Assumed: what staleness costs there, relative to none, it costs here.
#pragma once

#include "core/result.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace temper::study {

struct RewardCurve {
  struct Point {
    double staleness = 0;
    double updates = 0;
  };
  std::vector<Point> points;  ///< By ascending staleness; at least one.
  std::string source{};       ///< The file that it was read from.

  double most_staleness() const { return points.back().staleness; }
  /// None beyond the points.
  std::optional<double> updates(double staleness) const;
};

/// The curves of a folder: files TASK_to_REWARD.csv, by name. None where it is not there.
std::vector<std::filesystem::path> curves_in(const std::filesystem::path& folder);
/// The first of them that was recorded of what this configuration learns: a policy that is trained,
/// on a task of that name. None: the policy learns nothing, or nothing was recorded of it.
std::optional<std::filesystem::path> curve_of(const orchestrator::PipelineConfig& config,
                                              const std::filesystem::path& folder);

/// Errors: the file cannot be read, has other columns, or no eta of which every seed got there.
Result<RewardCurve> read_reward_curve(const std::filesystem::path& csv);

}  // namespace temper::study
