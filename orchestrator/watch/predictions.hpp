// predictions.jsonl: what the study commands said a run would gain by a change, kept beside the run
// so that the page can show it where it says what was lost. A line per answer; of two for the same
// change the later one counts.
#pragma once

#include "core/files.hpp"
#include "core/result.hpp"

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {

inline constexpr std::string_view kPredictionsFile = "predictions.jsonl";
/// The change that stands for the best configuration a search has found.
inline constexpr std::string_view kTunedChange = "tune";

struct Prediction {
  std::string change;  ///< "key=value ...", as given to `temper whatif`; or kTunedChange.
  double gain = 0;     ///< Of trained tokens/s, relative: 0.1 is a tenth more.
  double error = 0;    ///< What the same prediction misses of what is known; no gain below is told
                       ///< apart from none.
};
template <class V>
void describe(V& v, Prediction& p) {
  v.field(1, "change", p.change);
  v.field(2, "gain", p.gain);
  v.field(3, "error", p.error);
}

/// Appends it to the run's. Errors: the folder holds no run; it cannot be written.
Status keep_prediction(const std::filesystem::path& run_dir, const Prediction& prediction);
/// The latest of each change; a line that is none is left out.
std::vector<Prediction> read_predictions(const UntrustedFolder& run_dir);

}  // namespace temper::orchestrator
