#include "cli/study/whatif_command.hpp"

#include "cli/command/exit_code.hpp"
#include "cli/study/constants_note.hpp"
#include "core/json.hpp"
#include "orchestrator/pipeline/load.hpp"
#include "orchestrator/watch/predictions.hpp"
#include "study/forecast/whatif.hpp"

#include <cmath>
#include <iostream>
#include <memory>

namespace temper::cli {
namespace {

Result<study::Whatif> answer(const WhatifOptions& command) {
  study::WhatifOptions options{command.run, command.sets, {}};
  if (!command.calibration.empty()) {
    TEMPER_TRY(options.shape, study::load_machine_model(command.calibration));
  }
  return study::whatif(options);
}

}  // namespace

int run_whatif(const WhatifOptions& command, std::ostream& out, std::ostream& err) {
  const auto answered = answer(command);
  if (!answered)
    return fail(answered.error(), err, "temper whatif");
  if (command.keep) {
    const double gain = answered->regret_per_s / answered->recorded.trained_per_s;
    const Status kept = orchestrator::keep_prediction(
        command.run, {answered->changed, gain, std::abs(answered->error)});
    if (!kept)
      return fail(kept.error(), err, "temper whatif");
  }
  out << (command.json ? to_json(*answered, JsonStyle::Pretty) + "\n"
                       : study::whatif_text(*answered));
  beside(command.json, out, err) << constants_note(
      orchestrator::load_config(std::filesystem::path(command.run) / "config.yaml"));
  return 0;
}

Handler whatif_command(Flags& flags) {
  const auto options = std::make_shared<WhatifOptions>();
  flags.argument("run", options->run, "Run folder");
  flags.sets(options->sets);
  flags.text("--calibration",
             options->calibration,
             "Local runs: calibration file, for how engine times scale with batch and threads");
  flags.flag(
      "--keep", options->keep, "Store the prediction in the run folder; its web page shows it");
  flags.json(options->json);
  return [options] { return run_whatif(*options, std::cout, std::cerr); };
}

}  // namespace temper::cli
