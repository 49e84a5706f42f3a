#include "orchestrator/start/doctor.hpp"

#include "actors/guard/executable.hpp"
#include "actors/guard/guarded_process.hpp"
#include "actors/runtime/process.hpp"
#include "actors/transport/ipc_folder.hpp"
#include "core/temporary_folder.hpp"
#include "orchestrator/pipeline/message_sizes.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/resource.h>
#include <unistd.h>

#include <array>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;
using State = Finding::State;

constexpr std::uintmax_t kLeastShared = std::uintmax_t{256} << 20;
constexpr std::uintmax_t kLeastDisk = std::uintmax_t{1} << 30;
constexpr rlim_t kFewDescriptors = 1024;
/// Time limit; Python may start slowly on a busy machine.
constexpr int kPatienceMs = 20'000;

std::string gibibytes(std::uintmax_t bytes) {
  return fmt::format("{:.1f} GiB", static_cast<double>(bytes) / static_cast<double>(1 << 30));
}

Finding program(const fs::path& folder, const std::string& name, bool always) {
  const std::string path = (folder / name).string();
  if (actors::find_executable(path))
    return {State::Fine, name, path, ""};
  return {always ? State::Missing : State::Note,
          name,
          "not in " + folder.string(),
          "build all programs (`./x build`) or install the package"};
}

Finding cores() {
  const std::size_t n = actors::usable_cores().size();
  return {n > 1 ? State::Fine : State::Note,
          "cores",
          fmt::format("{} usable", n),
          n > 1 ? ""
                : "set `placement.cards: 1` and `placement.mode: colocated`, because a device is "
                  "one core"};
}

Finding memory() {
  const auto bytes = memory_here();
  return {State::Fine,
          "memory",
          bytes ? gibibytes(static_cast<std::uintmax_t>(bytes->count())) : "unknown",
          ""};
}

/// Checks the free bytes in a folder.
Finding space(const std::string& what,
              const fs::path& folder,
              std::uintmax_t least,
              const std::string& advice) {
  std::error_code error;
  const fs::space_info info = fs::space(folder, error);
  if (error)
    return {State::Missing, what, folder.string() + ": " + error.message(), advice};
  const bool writable = ::access(folder.c_str(), W_OK) == 0;
  const bool fine = writable && info.available >= least;
  return {fine       ? State::Fine
          : writable ? State::Note
                     : State::Missing,
          what,
          fmt::format("{} free in {}{}",
                      gibibytes(info.available),
                      folder.string(),
                      writable ? "" : ", which this user cannot write to"),
          fine ? "" : advice};
}

/// A run with `transport.kind: ipc`, the default, puts its socket in TMPDIR.
Finding sockets() {
  const Status fits = actors::check_ipc_folder();
  return {fits ? State::Fine : State::Missing,
          "UNIX sockets",
          fits ? "in " + temporary_base().string() : fits.error().context,
          fits ? "" : "set TMPDIR to a shorter folder, such as /tmp"};
}

Finding descriptors() {
  rlimit limit{};
  const bool known = ::getrlimit(RLIMIT_NOFILE, &limit) == 0;
  const bool few = known && limit.rlim_max < kFewDescriptors;
  return {few ? State::Note : State::Fine,
          "open files",
          !known                            ? "unknown"
          : limit.rlim_max == RLIM_INFINITY ? "unlimited"
                                            : fmt::format("up to {}", limit.rlim_max),
          few ? "a run needs 64, and 8 per actor; raise the limit (ulimit -Hn)" : ""};
}

Finding shipped(const fs::path& configs) {
  std::error_code ignored;
  const bool there = fs::exists(configs / "quickstart.yaml", ignored);
  return {there ? State::Fine : State::Note,
          "configurations",
          there ? configs.string() : "none in " + configs.string(),
          there ? "" : "set TEMPER_CONFIGS to the folder of the shipped configurations"};
}

Finding sandbox() {
  const Status can = actors::check_sandbox(actors::SandboxKind::Namespaces);
  return {
      can ? State::Fine : State::Note,
      "sandbox",
      can ? "namespaces" : "limits only: " + can.error().context,
      can ? "" : "run untrusted verifiers on a machine where `verifier.sandbox: namespaces` works"};
}

/// The first line of a program's output; empty: none within the time limit.
std::string first_line(const std::vector<std::string>& command) {
  const auto process = actors::GuardedProcess::start(command);
  if (!process)
    return {};
  std::string text;
  std::array<char, 256> piece{};
  pollfd ready{process->output(), POLLIN, 0};
  while (text.find('\n') == std::string::npos && ::poll(&ready, 1, kPatienceMs) > 0) {
    const ssize_t got = ::read(process->output(), piece.data(), piece.size());
    if (got <= 0)
      break;
    text.append(piece.data(), static_cast<std::size_t>(got));
  }
  return text.substr(0, text.find('\n'));
}

Finding python() {
  const std::string name = actors::default_python();
  const auto path = actors::find_executable(name);
  if (!path) {
    return {State::Note,
            "Python",
            "not found: " + name,
            "needed only for roles and rewards in Python; set TEMPER_PYTHON to an interpreter"};
  }
  // Either the package itself or one of its dependencies may be missing.
  const std::string said =
      first_line({*path,
                  "-c",
                  "try:\n import temper\n print('temper', temper.__version__)\n"
                  "except ImportError as error:\n print('without', error.name)"});
  if (said.starts_with("temper "))
    return {State::Fine, "Python", fmt::format("{} with {}", *path, said), ""};
  const bool needs = said.starts_with("without ") && said != "without temper";
  return {State::Note,
          "Python",
          needs ? fmt::format("{} {}, which the temper package needs", *path, said)
                : *path + " without the temper package",
          needs ? "needed only for roles and rewards in Python: apt-get install python3-msgpack "
                  "python3-numpy python3-zmq, or use pip in a virtual environment"
                : "needed only for roles and rewards in Python; see docs/how-to/install.md"};
}

}  // namespace

std::vector<Finding> examine_machine(const fs::path& programs, const fs::path& configs) {
  return {program(programs, "temper-worker", true),
          program(programs, "temper-study", false),
          program(programs, "temper-server-worker", false),
          shipped(configs),
          cores(),
          memory(),
          space("shared memory",
                "/dev/shm",
                kLeastShared,
                "weights and batches pass through it; start a container with --shm-size=1g"),
          space("temporary files", temporary_base(), kLeastDisk, "set TMPDIR to another folder"),
          sockets(),
          space("disk",
                fs::current_path(),
                kLeastDisk,
                "runs are written here; set run_dir to another folder"),
          descriptors(),
          sandbox(),
          python()};
}

}  // namespace temper::orchestrator
