#include "orchestrator/run/run_dir.hpp"

#include "core/files.hpp"
#include "core/manifest.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <tuple>
#include <utility>

namespace temper::orchestrator {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kConfigBefore = "config.yaml.before";

/// Something that no start of a run, and no making of its keys, left here; empty: nothing.
std::string foreign_file(const fs::path& root) {
  std::error_code ignored;
  if (fs::exists(root / ".lock", ignored))
    return {};
  for (const auto& entry : fs::directory_iterator(root, ignored)) {
    std::string name = entry.path().filename();
    constexpr std::string_view kOurs[] = {"base", "checkpoints", "logs", "keys", "endpoint"};
    if (!name.starts_with('.') && std::ranges::count(kOurs, name) == 0)
      return name;
  }
  return {};
}

}  // namespace

fs::path RunDir::log_of(std::string_view actor) const {
  return root_ / "logs" / fmt::format("{}.log", actor);
}

namespace {

/// The end of a file to which a process still appends.
Status move_tail(const fs::path& log) {
  const FileDescriptor fd(::open(log.c_str(), O_RDWR | O_APPEND | O_NOFOLLOW | O_CLOEXEC));
  if (!fd.is_open())
    return io_error("cannot open " + log.string(), errno);
  const std::int64_t size = ::lseek(fd.get(), 0, SEEK_END);
  std::string tail(static_cast<std::size_t>(kLogKept), '\0');
  const ssize_t read = ::pread(fd.get(), tail.data(), tail.size(), size - kLogKept);
  tail.resize(read > 0 ? static_cast<std::size_t>(read) : 0);
  TEMPER_TRY_STATUS(write_file_atomically(log.string() + ".1", tail));
  if (::ftruncate(fd.get(), 0) != 0)
    return io_error("cannot cut " + log.string(), errno);
  const std::string note = fmt::format(
      "(temper: output continues here; the {} bytes before it are in {}.1, {} older bytes were "
      "dropped)\n",
      tail.size(),
      log.filename().string(),
      size - kLogKept);
  static_cast<void>(!::write(fd.get(), note.data(), note.size()));
  return {};
}

}  // namespace

void RunDir::bound_logs() const {
  std::error_code listing, ignored;
  for (fs::directory_iterator it(root_ / "logs", listing), end; !listing && it != end;
       it.increment(listing)) {
    if (it->path().extension() == ".log" && it->path().stem() != "orchestrator" &&
        it->is_regular_file(ignored) && !it->is_symlink(ignored) &&
        std::cmp_greater(it->file_size(ignored), kLogBytes) && !ignored)
      std::ignore = move_tail(it->path());
  }
}

Status RunDir::create() const {
  if (fs::exists(file("events.log"))) {
    return invalid_input(fmt::format(
        "{} holds a run already; use --resume to continue it, or another run_dir", root_.string()));
  }
  if (const std::string name = foreign_file(root_); !name.empty()) {
    return invalid_input(
        fmt::format("{} is no folder of a run, but holds {}; name another run_dir, which need not "
                    "be there yet",
                    root_.string(),
                    name));
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
               fmt::format("the run in {} is in progress; it can be resumed when it has ended",
                           root_.string())};
}

bool RunDir::in_progress() const {
  const FileDescriptor fd(::open(file(".lock").c_str(), O_RDONLY | O_CLOEXEC));
  struct flock whole {};
  whole.l_type = F_RDLCK;
  whole.l_whence = SEEK_SET;
  return fd.is_open() && ::fcntl(fd.get(), F_GETLK, &whole) == 0 && whole.l_type != F_UNLCK;
}

Status RunDir::seal_inputs(std::map<std::string, std::uint64_t> outside) const {
  std::vector<std::string> names{"config.yaml"};
  std::error_code ignored;
  for (const auto& entry : fs::recursive_directory_iterator(base(), ignored)) {
    if (!entry.is_directory(ignored))
      names.push_back(entry.path().lexically_relative(root_).string());
  }
  std::ranges::sort(names);
  TEMPER_TRY(auto files, sum_files(root_, names));
  return write_manifest(file(kInputsManifest), {std::move(outside), std::move(files)});
}

Status RunDir::replace_config(std::string_view yaml) const {
  TEMPER_TRY(const std::string before, read_file(file("config.yaml")));
  const fs::path kept = free_name(file(kConfigBefore));
  TEMPER_TRY_STATUS(write_file_atomically(kept, before));
  Status put = put_config(yaml);
  if (!put) {  // else a later change would be counted as two
    std::error_code ignored;
    fs::remove(kept, ignored);
  }
  return put;
}

std::size_t RunDir::replaced_configs() const {
  std::error_code ignored;
  std::size_t n = 0;
  while (fs::exists(file(fmt::format("{}-{}", kConfigBefore, n + 1)), ignored))
    ++n;
  return n;
}

fs::path RunDir::replaced_config(std::size_t changes) const {
  return file(fmt::format("{}-{}", kConfigBefore, replaced_configs() + 1 - changes));
}

Status RunDir::restore_config(std::size_t changes) const {
  const std::size_t replaced = replaced_configs();
  TEMPER_TRY(const std::string before, read_file(replaced_config(changes)));
  TEMPER_TRY_STATUS(put_config(before));
  // The newest first: if this is interrupted, the remaining ones are still consecutive.
  std::error_code ignored;
  for (std::size_t n = replaced; n > replaced - changes; --n)
    fs::remove(file(fmt::format("{}-{}", kConfigBefore, n)), ignored);
  return {};
}

Status RunDir::put_config(std::string_view yaml) const {
  TEMPER_TRY_STATUS(write_file_atomically(file(kNextConfig), yaml));
  TEMPER_TRY(Manifest manifest, read_manifest(file(kInputsManifest)));
  TEMPER_TRY(const auto next, sum_files(root_, {std::string(kNextConfig)}));
  for (FileSum& sum : manifest.files) {
    if (sum.name == "config.yaml")
      sum = {sum.name, next.front().bytes, next.front().hash};
  }
  TEMPER_TRY_STATUS(write_manifest(file(kInputsManifest), manifest));
  return rename_durably(file(kNextConfig), file("config.yaml"));
}

Status RunDir::settle_inputs() const {
  std::error_code ignored;
  if (!fs::exists(file(kNextConfig), ignored))
    return {};
  TEMPER_TRY(const Manifest manifest, read_manifest(file(kInputsManifest)));
  TEMPER_TRY(const auto next, sum_files(root_, {std::string(kNextConfig)}));
  const FileSum* sealed = manifest.find("config.yaml");
  if (sealed != nullptr && sealed->hash == next.front().hash)
    return rename_durably(file(kNextConfig), file("config.yaml"));
  fs::remove(file(kNextConfig), ignored);
  return {};
}

Status RunDir::check_inputs() const {
  TEMPER_TRY(const Manifest manifest, read_manifest(file(kInputsManifest)));
  if (manifest.find("config.yaml") == nullptr)
    return corrupt(file(kInputsManifest).string() + " has no config.yaml");
  const Status whole = check_files(root_, manifest);
  if (whole)
    return {};
  return corrupt(
      fmt::format("{}; a run resumes with the inputs that it started with: restore the file "
                  "(settings are changed with --set)",
                  whole.error().context));
}

}  // namespace temper::orchestrator
