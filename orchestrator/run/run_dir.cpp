#include "orchestrator/run/run_dir.hpp"

#include "core/files.hpp"
#include "core/manifest.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

}  // namespace

fs::path RunDir::log_of(std::string_view actor) const {
  return root_ / "logs" / fmt::format("{}.log", actor);
}

Status RunDir::create() const {
  if (fs::exists(file("events.log"))) {
    return invalid_input(
        fmt::format("{} holds a run already; use --resume to go on with it, or another run_dir",
                    root_.string()));
  }
  TEMPER_TRY_STATUS(make_folder(root_ / "checkpoints"));
  return make_folder(root_ / "logs");
}

Result<RunLock> RunDir::lock() const {
  const fs::path path = file(".lock");
  FileDescriptor fd(::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644));
  if (!fd.is_open())
    return io_error("cannot open " + path.string(), errno);
  // Not flock(): a child that is being started would hold that too, beyond our own end.
  struct flock whole {};
  whole.l_type = F_WRLCK;
  whole.l_whence = SEEK_SET;
  if (::fcntl(fd.get(), F_SETLK, &whole) == 0)
    return RunLock(std::move(fd));
  if (errno != EACCES && errno != EAGAIN)
    return io_error("cannot lock " + path.string(), errno);
  return Error{ErrorCode::Unavailable,
               fmt::format("the run in {} is going on; it can be resumed when it has ended",
                           root_.string())};
}

Status RunDir::seal_inputs() const {
  std::vector<std::string> names{"config.yaml"};
  std::error_code ignored;
  for (const auto& entry : fs::directory_iterator(base(), ignored))
    names.push_back("base/" + entry.path().filename().string());
  std::ranges::sort(names);
  TEMPER_TRY(auto files, sum_files(root_, names));
  return write_manifest(file(kInputsManifest), {{}, std::move(files)});
}

Status RunDir::check_inputs() const {
  TEMPER_TRY(const Manifest manifest, read_manifest(file(kInputsManifest)));
  if (manifest.find("config.yaml") == nullptr)
    return corrupt(file(kInputsManifest).string() + " has no config.yaml");
  const Status whole = check_files(root_, manifest);
  if (whole)
    return {};
  return corrupt(
      fmt::format("{}; a run goes on from what it began with: bring the file back "
                  "(settings are changed with --set)",
                  whole.error().context));
}

}  // namespace temper::orchestrator
