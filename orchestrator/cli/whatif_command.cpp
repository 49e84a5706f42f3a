#include "orchestrator/cli/whatif_command.hpp"

#include "core/json.hpp"
#include "orchestrator/explore/whatif.hpp"

#include <ostream>

namespace temper::orchestrator {
namespace {

Result<Whatif> answer(const WhatifCommand& command) {
  WhatifOptions options{command.run, command.sets, {}};
  if (!command.calibration.empty()) {
    TEMPER_TRY(options.shape, load_local(command.calibration));
  }
  return whatif(options);
}

}  // namespace

int run_whatif(const WhatifCommand& command, std::ostream& out, std::ostream& err) {
  const auto answered = answer(command);
  if (!answered) {
    err << "temper whatif: " << answered.error().context << "\n";
    return 1;
  }
  out << (command.json ? to_json(*answered, JsonStyle::Pretty) + "\n" : whatif_text(*answered));
  return 0;
}

}  // namespace temper::orchestrator
