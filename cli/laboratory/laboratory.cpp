#include "cli/laboratory/laboratory.hpp"

#include "cli/command/exit_code.hpp"
#include "sim_hw/validation/unmeasured.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <system_error>

namespace temper::cli {
namespace {

/// Replaces this process by `temper-study`, which lies in the same folder, with the same arguments.
/// Returns only if that fails: the exit code, after an error message.
int exec_study(char** argv) {
  std::error_code error;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", error);
  const std::string program = (self.parent_path() / "temper-study").string();
  ::execv(program.c_str(), argv);
  fmt::print(stderr,
             "temper: `{}` needs the program {}, which cannot be started: {}; build it with `./x "
             "build`\n",
             argv[1],
             program,
             std::strerror(errno));
  return kFailed;
}

}  // namespace

std::vector<Command> laboratory_commands() {
  const auto commands = study_commands();
  std::vector<Command> out(commands.begin(), commands.end());
  for (Command& command : out)
    command.elsewhere = exec_study;
  return out;
}

std::string simulated_run_note(std::span<const sim_hw::HardwareSpec* const> hardware) {
  return sim_hw::simulated_run_note(hardware);
}

}  // namespace temper::cli
