// Number of updates that a policy needs to reach a reward, by the mean staleness of its training
// data. Read from real runs, so that the staleness of a plan has its measured cost.
//
// Source: a sweep.csv of `temper sweep CONFIG --over staleness.bound=... --seeds ...
// --target-reward R --out DIR` with a trained policy. Rows of equal bound make one point: mean
// staleness and mean steps to the target over the seeds. A bound at which a seed did not reach the
// target is no point, and the curve ends before it. Between points: linear interpolation; flat from
// the last point to its bound.
// Assumed: the relative cost of staleness is the same here as there.
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
  /// None: beyond the points.
  std::optional<double> updates(double staleness) const;
};

/// The curves of a folder: files TASK_to_REWARD.csv, sorted by name. Empty if the folder does not
/// exist.
std::vector<std::filesystem::path> curves_in(const std::filesystem::path& folder);
/// The first recorded curve for this configuration: a trained policy on the task of that name.
/// None: nothing is trained, or there is no record.
std::optional<std::filesystem::path> curve_of(const orchestrator::PipelineConfig& config,
                                              const std::filesystem::path& folder);

/// Errors: the file cannot be read, has other columns, or has no bound at which every seed reached
/// the target.
Result<RewardCurve> read_reward_curve(const std::filesystem::path& csv);

}  // namespace temper::study
