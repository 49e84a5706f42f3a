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
/// Python may take so long to start on a busy machine.
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
          "build or install all programs: `./x build`, or the package"};
}

Finding cores() {
  const std::size_t n = actors::usable_cores().size();
  return {n > 1 ? State::Fine : State::Note,
          "cores",
          fmt::format("{} to use", n),
          n > 1 ? "" : "one card is one core: `placement.cards: 1`, `placement.mode: colocated`"};
}

Finding memory() {
  const auto bytes = memory_here();
  return {State::Fine,
          "memory",
          bytes ? gibibytes(static_cast<std::uintmax_t>(bytes->count())) : "not known",
          ""};
}

/// Free bytes below a folder.
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
                      writable ? "" : ", which this user may not write to"),
          fine ? "" : advice};
}

/// A run over `transport.kind: ipc`, the default, has its socket in TMPDIR.
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
          !known                            ? "not known"
          : limit.rlim_max == RLIM_INFINITY ? "any number"
                                            : fmt::format("up to {}", limit.rlim_max),
          few ? "a run takes 64 and 8 for each actor; raise the limit (ulimit -Hn)" : ""};
}

Finding shipped(const fs::path& configs) {
  std::error_code ignored;
  const bool there = fs::exists(configs / "quickstart.yaml", ignored);
  return {there ? State::Fine : State::Note,
          "configurations",
          there ? configs.string() : "none in " + configs.string(),
          there ? "" : "name their folder in TEMPER_CONFIGS"};
}

Finding sandbox() {
  const Status can = actors::check_sandbox(actors::SandboxKind::Namespaces);
  return {can ? State::Fine : State::Note,
          "sandbox",
          can ? "namespaces" : "limits alone: " + can.error().context,
          can ? "" : "verifiers of others are best run where `verifier.sandbox: namespaces` works"};
}

/// The first line that a program writes; empty: none in time.
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
            "no " + name,
            "only for roles and rewards in Python: name an interpreter in TEMPER_PYTHON"};
  }
  // The package itself, or what it needs, may be missing.
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
          needs ? fmt::format("{} {}, which the package temper needs", *path, said)
                : *path + " without the package temper",
          needs ? "only for roles and rewards in Python: apt-get install python3-msgpack "
                  "python3-numpy python3-zmq, or with pip in an environment of its own"
                : "only for roles and rewards in Python: docs/install.md"};
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
                "weights and batches go through it; in a container: --shm-size=1g"),
          space("temporary files", temporary_base(), kLeastDisk, "name another folder in TMPDIR"),
          sockets(),
          space("disk", fs::current_path(), kLeastDisk, "runs are written here; name run_dir"),
          descriptors(),
          sandbox(),
          python()};
}

}  // namespace temper::orchestrator
