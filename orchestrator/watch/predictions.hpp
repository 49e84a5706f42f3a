// predictions.jsonl: gains that study commands predicted for a change of a run, kept in the run
// folder so that the page can show them beside the losses. One line per answer; a later one for the
// same change replaces an earlier one.
#pragma once

#include "core/files.hpp"
#include "core/result.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

inline constexpr std::string_view kPredictionsFile = "predictions.jsonl";
/// The change that stands for the best configuration found by a search.
inline constexpr std::string_view kTunedChange = "tune";

struct Prediction {
  std::string change;  ///< "key=value ...", as given to `temper whatif`; or kTunedChange.
  double gain = 0;     ///< Relative change of trained tokens/s: 0.1 is 10 % more.
  double error = 0;  ///< Relative error of the same prediction where the truth is known; a smaller
                     ///< gain is not significant.
};
void describe(auto& v, Prediction& p) {
  v.field(1, "change", p.change);
  v.field(2, "gain", p.gain);
  v.field(3, "error", p.error);
}

/// Appends a prediction to the run folder. Errors: not a run folder; it cannot be written.
Status keep_prediction(const std::filesystem::path& run_dir, const Prediction& prediction);
/// The latest prediction for each change; invalid lines are skipped.
std::vector<Prediction> read_predictions(const UntrustedFolder& run_dir);

}  // namespace temper::orchestrator
