// temper-study: the commands that predict, search and validate. `temper` starts it for them.
#include "cli/command/command_line.hpp"
#include "cli/laboratory/laboratory.hpp"
#include "cli/study/ablation_command.hpp"
#include "cli/study/calibrate_command.hpp"
#include "cli/study/cost_command.hpp"
#include "cli/study/faults_command.hpp"
#include "cli/study/forecast_command.hpp"
#include "cli/study/ladder_command.hpp"
#include "cli/study/measure_command.hpp"
#include "cli/study/plan_command.hpp"
#include "cli/study/sweep_command.hpp"
#include "cli/study/tune_command.hpp"
#include "cli/study/validate_command.hpp"
#include "cli/study/whatif_command.hpp"
#include "core/check.hpp"

#include <string_view>
#include <utility>
#include <vector>

namespace {

using namespace temper;
using Declare = cli::Handler (*)(cli::Flags& flags);

constexpr std::pair<std::string_view, Declare> kDeclared[] = {
    {"ablation", cli::ablation_command},
    {"calibrate", cli::calibrate_command},
    {"cost", cli::cost_command},
    {"faults", cli::faults_command},
    {"forecast", cli::forecast_command},
    {"ladder", cli::ladder_command},
    {"measure", cli::measure_command},
    {"plan", cli::plan_command},
    {"sweep", cli::sweep_command},
    {"tune", cli::tune_command},
    {"validate", cli::validate_command},
    {"whatif", cli::whatif_command},
};

}  // namespace

int main(int argc, char** argv) {
  std::vector<cli::Command> commands;
  for (cli::Command command : cli::study_commands()) {
    for (const auto& [name, declare] : kDeclared) {
      if (name == command.name)
        command.declare = declare;
    }
    TEMPER_CHECK(command.declare != nullptr, command.name);
    commands.push_back(command);
  }
  return cli::run_command_line(argc, argv, commands);
}
