#include "orchestrator/run/run_dir.hpp"

#include "core/files.hpp"
#include "core/msgpack.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kPartial = ".partial";
constexpr std::string_view kStateFile = "orchestrator.msgpack";

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

fs::path RunDir::checkpoint_folder(PolicyVersion version) const {
  return root_ / "checkpoints" / fmt::format("step-{:06}", version.value());
}

Result<fs::path> RunDir::begin_checkpoint(PolicyVersion version) const {
  const fs::path folder = checkpoint_folder(version).string() + std::string(kPartial);
  std::error_code ignored;
  fs::remove_all(folder, ignored);
  TEMPER_TRY_STATUS(make_folder(folder));
  return folder;
}

Status RunDir::complete_checkpoint(const CheckpointState& state, std::int32_t keep) const {
  const fs::path whole = checkpoint_folder(state.version);
  const fs::path partial = whole.string() + std::string(kPartial);
  TEMPER_TRY_STATUS(write_file_atomically(partial / kStateFile, encode(state)));
  std::error_code error;
  fs::remove_all(whole, error);
  fs::rename(partial, whole, error);
  if (error)
    return io_error("cannot complete " + whole.string(), error.value());
  auto all = checkpoints();
  while (all.size() > static_cast<std::size_t>(keep)) {
    fs::remove_all(all.front(), error);
    all.erase(all.begin());
  }
  return {};
}

Result<std::optional<Checkpoint>> RunDir::newest_checkpoint(std::uint64_t last_sequence) const {
  auto all = checkpoints();
  while (!all.empty()) {
    const fs::path folder = all.back();
    all.pop_back();
    TEMPER_TRY(const std::string bytes, read_file(folder / kStateFile));
    auto state = decode<CheckpointState>(bytes);
    if (!state)
      return std::move(state).error().within((folder / kStateFile).string());
    if (state->sequence > last_sequence)
      continue;  // the log did not reach the disk that far
    return std::optional(Checkpoint{folder, *std::move(state)});
  }
  return std::optional<Checkpoint>();
}

std::vector<fs::path> RunDir::checkpoints() const {
  std::vector<fs::path> all;
  std::error_code error;
  for (const auto& entry : fs::directory_iterator(root_ / "checkpoints", error)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with("step-") && !name.ends_with(kPartial))
      all.push_back(entry.path());
  }
  // A step of more than six digits makes its name longer, not later in the alphabet.
  std::ranges::sort(all, {}, [](const fs::path& folder) {
    std::string name = folder.filename().string();
    return std::pair(name.size(), std::move(name));
  });
  return all;
}

}  // namespace temper::orchestrator
