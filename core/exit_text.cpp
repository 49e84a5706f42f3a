#include "core/exit_text.hpp"

#include <fmt/format.h>
#include <sys/wait.h>

#include <cstring>

namespace temper {
namespace {

std::string exit_code_text(int code) {
  return fmt::format("exit code {}", code);
}

std::string signal_text(int number) {
  const char* const name = ::sigdescr_np(number);
  return fmt::format("killed by signal {} ({})", number, name != nullptr ? name : "unknown");
}

}  // namespace

std::string exit_text(int wait_status) {
  return WIFEXITED(wait_status) ? exit_code_text(WEXITSTATUS(wait_status))
                                : signal_text(WTERMSIG(wait_status));
}

std::string exit_text(const siginfo_t& info) {
  return info.si_code == CLD_EXITED ? exit_code_text(info.si_status) : signal_text(info.si_status);
}

}  // namespace temper
