#include "cli/whatif_command.hpp"

#include "core/json.hpp"
#include "study/forecast/whatif.hpp"

#include <ostream>

namespace temper::cli {
namespace {

Result<study::Whatif> answer(const WhatifCommand& command) {
  study::WhatifOptions options{command.run, command.sets, {}};
  if (!command.calibration.empty()) {
    TEMPER_TRY(options.shape, study::load_machine_model(command.calibration));
  }
  return study::whatif(options);
}

}  // namespace

int run_whatif(const WhatifCommand& command, std::ostream& out, std::ostream& err) {
  const auto answered = answer(command);
  if (!answered) {
    err << "temper whatif: " << answered.error().context << "\n";
    return 1;
  }
  out << (command.json ? to_json(*answered, JsonStyle::Pretty) + "\n"
                       : study::whatif_text(*answered));
  return 0;
}

}  // namespace temper::cli
