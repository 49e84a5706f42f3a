// A grid of configurations on simulated hardware: keys take every combination of given values, and
// each is simulated in this process (simulate.hpp). Of keys marked as free, the best value is kept
// for every combination of the others.
#pragma once

#include "study/simulate/axes.hpp"
#include "study/simulate/simulate.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::study {

struct SweepOptions {
  std::filesystem::path config;
  std::vector<std::string> sets;
  std::vector<SweepAxis> over;  ///< At least one; the last one varies fastest.
  std::vector<SweepAxis> any;   ///< Free keys: the best value is kept.
  /// Fitted: layouts.hpp completes every configuration; the trainer's layout, rollout.ep and
  /// rollout.kv_share then differ from the file.
  enum class Layouts { AsGiven, Fitted } layouts = Layouts::AsGiven;
  std::uint64_t steady_updates = 0;  ///< 0: steps as configured.
  SimulateOptions simulate;
};

struct SweepPoint {
  std::vector<std::size_t> over;  ///< Index into the values of each axis.
  std::vector<std::size_t> any;   ///< Indices of the best values; empty: nothing could run.
  std::optional<orchestrator::PipelineConfig> config;
  std::optional<Figures> figures;
  std::size_t tried = 0, refused = 0;
  std::string reason;  ///< Reason of the first refusal.
};

struct Sweep {
  std::vector<SweepAxis> over, any;
  std::vector<SweepPoint> points;
};

/// Errors: a configuration that cannot be read (an unknown key, a value of the wrong type); more
/// than kMostCombinations.
Result<Sweep> run_sweep(const SweepOptions& options);

/// Table for the terminal; CSV.
std::string sweep_text(const Sweep& sweep);
std::string sweep_csv(const Sweep& sweep);

struct SweepPlotText {
  std::string title, x_label;  ///< Empty: the name of the first axis.
};
/// Tokens/s and utilization over the first axis, with a line per value of the second. Errors: more
/// than two axes; values that are not ascending numbers.
Result<std::string> sweep_svg(const Sweep& sweep, const SweepPlotText& text);

}  // namespace temper::study
