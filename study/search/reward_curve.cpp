#include "study/search/reward_curve.hpp"

#include "core/files.hpp"
#include "core/text/csv.hpp"
#include "core/text/numbers.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>

namespace temper::study {

std::optional<double> RewardCurve::updates(double staleness) const {
  if (staleness > most_staleness() + 1e-9)
    return std::nullopt;
  const auto after = std::ranges::lower_bound(points, staleness, {}, &Point::staleness);
  if (after == points.begin() || after == points.end())
    return after == points.end() ? points.back().updates : after->updates;
  const Point& before = *std::prev(after);
  const double part = (staleness - before.staleness) / (after->staleness - before.staleness);
  return before.updates + part * (after->updates - before.updates);
}

std::vector<std::filesystem::path> curves_in(const std::filesystem::path& folder) {
  std::vector<std::filesystem::path> out;
  std::error_code none;
  for (const auto& entry : std::filesystem::directory_iterator(folder, none)) {
    const std::string name = entry.path().filename().string();
    if (name.ends_with(".csv") && name.find("_to_") != std::string::npos)
      out.push_back(entry.path());
  }
  std::ranges::sort(out);
  return out;
}

std::optional<std::filesystem::path> curve_of(const orchestrator::PipelineConfig& config,
                                              const std::filesystem::path& folder) {
  if (config.policy != actors::PolicyKind::Torch)
    return std::nullopt;
  const std::string prefix = fmt::format("{}_to_", name_of(config.task.kind));
  for (const std::filesystem::path& file : curves_in(folder)) {
    if (file.filename().string().starts_with(prefix))
      return file;
  }
  return std::nullopt;
}

Result<RewardCurve> read_reward_curve(const std::filesystem::path& csv) {
  TEMPER_TRY(const std::string text, read_file(csv));
  TEMPER_TRY(const CsvTable table, parse_csv(csv.string(), text));
  for (const char* column : {"staleness.bound", "staleness_mean", "steps_to_target"}) {
    if (!table.has(column)) {
      return invalid_input(fmt::format(
          "{}: no column `{}`; expected a sweep.csv of `temper sweep --over staleness.bound=... "
          "--target-reward`",
          csv.string(),
          column));
    }
  }
  struct Sum {
    double staleness = 0, updates = 0;
    int runs = 0, reached = 0;
  };
  std::map<double, Sum> by_bound;
  for (std::size_t i = 0; i < table.rows.size(); ++i) {
    const auto& row = table.rows[i];
    const auto number = [&](const char* column) {
      return parse_number<double>(row[table.column(column)]);
    };
    const auto bound = number("staleness.bound"), staleness = number("staleness_mean");
    if (!bound || !staleness) {
      return invalid_input(
          fmt::format("{}:{}: staleness.bound and staleness_mean: expected numbers",
                      csv.string(),
                      table.lines[i]));
    }
    Sum& sum = by_bound[*bound];
    ++sum.runs;
    sum.staleness += *staleness;
    if (const auto steps = number("steps_to_target")) {
      sum.updates += *steps;
      ++sum.reached;
    }
  }
  RewardCurve curve;
  curve.source = csv.string();
  double largest = 0;
  for (const auto& [bound, sum] : by_bound) {
    if (sum.reached != sum.runs)
      continue;
    curve.points.push_back({sum.staleness / sum.runs, sum.updates / sum.runs});
    largest = bound;
  }
  if (curve.points.empty()) {
    return invalid_input(
        csv.string() +
        ": expected a bound at which every seed reached the target reward, found none");
  }
  std::ranges::sort(curve.points, {}, &RewardCurve::Point::staleness);
  // The first updates of a run are fresher than the bound; the steady state reaches it.
  if (largest > curve.points.back().staleness)
    curve.points.push_back({largest, curve.points.back().updates});
  return curve;
}

}  // namespace temper::study
