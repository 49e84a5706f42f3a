#include "cli/command/exit_code.hpp"
#include "cli/laboratory/laboratory.hpp"
#include "sim_hw/hardware/unmeasured_constants.hpp"

#include <fmt/format.h>

#include <cstdio>
#include <set>

namespace temper::cli {
namespace {

int refuse(char** argv) {
  fmt::print(stderr,
             "temper: `{}` belongs to the laboratory, which this build does not have; rebuild with "
             "-DTEMPER_LAB=ON\n",
             argv[1]);
  return kBadInput;
}

}  // namespace

std::vector<Command> laboratory_commands() {
  const auto commands = study_commands();
  std::vector<Command> out(commands.begin(), commands.end());
  for (Command& command : out) {
    command.elsewhere = refuse;
    command.listed = false;
  }
  return out;
}

std::string simulated_run_note(std::span<const sim_hw::HardwareSpec* const> hardware) {
  std::string out;
  std::set<std::string> named;
  for (const sim_hw::HardwareSpec* each : hardware) {
    const std::size_t count = sim_hw::unmeasured_constants(*each).size();
    if (count > 0 && named.insert(each->name).second)
      out += fmt::format(
          "{} constant{} not measured on {}; a build with -DTEMPER_LAB=ON estimates the error\n",
          count,
          count == 1 ? "" : "s",
          each->name);
  }
  return out;
}

}  // namespace temper::cli
