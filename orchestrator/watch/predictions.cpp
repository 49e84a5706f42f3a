#include "orchestrator/watch/predictions.hpp"

#include "core/json.hpp"
#include "core/json_read.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {

namespace fs = std::filesystem;

Status keep_prediction(const fs::path& run_dir, const Prediction& prediction) {
  if (!fs::exists(run_dir / "config.yaml") || !fs::exists(run_dir / "events.log")) {
    return invalid_input(fmt::format(
        "{} is not a run folder, so the prediction cannot be saved: it has no config.yaml or no "
        "events.log",
        run_dir.string()));
  }
  TEMPER_TRY(AppendFile file, AppendFile::open(run_dir / kPredictionsFile));
  return file.append(to_json(prediction) + "\n");
}

std::vector<Prediction> read_predictions(const UntrustedFolder& run_dir) {
  std::vector<Prediction> found;
  const auto text = read_file(run_dir, kPredictionsFile);
  if (!text)
    return found;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    auto prediction = from_json<Prediction>(line);
    if (!prediction || prediction->change.empty())
      continue;
    std::erase_if(found, [&](const Prediction& p) { return p.change == prediction->change; });
    found.push_back(*std::move(prediction));
  }
  return found;
}

}  // namespace temper::orchestrator
