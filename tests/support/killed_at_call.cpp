// Preloaded into a process, this sends it a signal at a chosen system call of those that change
// files: just before the n-th that concerns a file below a folder. From the environment:
//
//   TEMPER_KILL_BELOW   the folder; without it nothing happens
//   TEMPER_KILL_AT      n, from 1 on; 0: never
//   TEMPER_KILL_SIGNAL  the signal; 9 (SIGKILL) unless set
//   TEMPER_KILL_COUNT   file that gets the number of such calls when the process ends by itself
//   TEMPER_POWER_FAILS  if set, the machine fails with the process: of every file that was written
//                       since its last sync, only what was synced remains
//
// Linked into a test, which forks, the child asks for the same with temper_kill_below(); with
// `exchanges` 0 the file system is one that cannot exchange two names.
//
// Counted: open() that makes a file, write(), ftruncate(), fsync(), fdatasync(), rename(),
// unlink(), mkdir() and their kin. Children do not inherit it.
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <mutex>
#include <string>

namespace {

std::recursive_mutex& lock() {
  static auto* mutex = new std::recursive_mutex;
  return *mutex;
}

template <class F>
F* real(const char* name) {
  return reinterpret_cast<F*>(::dlsym(RTLD_NEXT, name));
}

struct State {
  std::string below, count_file;
  long at = 0, calls = 0;
  int signal = SIGKILL;
  bool power = false;
  bool exchanges = true;
  bool syncs = true;
  /// By path: how many bytes a file has that are on the disk.
  std::map<std::string, off_t> synced;
};

const char* setting(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void leave_count();

State& state() {
  static auto* s = [] {
    auto* made = new State;
    made->below = setting("TEMPER_KILL_BELOW");
    made->at = std::strtol(setting("TEMPER_KILL_AT"), nullptr, 10);
    if (const char* signal = std::getenv("TEMPER_KILL_SIGNAL"))
      made->signal = std::atoi(signal);
    made->count_file = setting("TEMPER_KILL_COUNT");
    made->power = std::getenv("TEMPER_POWER_FAILS") != nullptr;
    for (const char* name : {"TEMPER_KILL_BELOW", "LD_PRELOAD"})
      ::unsetenv(name);  // not for children
    std::atexit(leave_count);
    return made;
  }();
  return *s;
}

void leave_count() {
  State& s = state();
  if (s.count_file.empty() || s.below.empty())
    return;
  if (std::FILE* file = std::fopen(s.count_file.c_str(), "w")) {
    std::fprintf(file, "%ld\n", s.calls);
    std::fclose(file);
  }
}

bool is_below(const std::string& path) {
  const std::string& below = state().below;
  return !below.empty() && path.compare(0, below.size(), below) == 0;
}

std::string path_of(int fd) {
  char link[64], path[4096];
  std::snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t n = ::readlink(link, path, sizeof path);
  return n > 0 ? std::string(path, static_cast<std::size_t>(n)) : std::string();
}

/// What was written and not synced is gone.
void lose_power() {
  for (const auto& [path, bytes] : state().synced) {
    struct stat info {};
    if (::stat(path.c_str(), &info) == 0 && info.st_size > bytes)
      static_cast<void>(::truncate(path.c_str(), bytes));
  }
}

/// Before a call that changes this file.
void counted(const std::string& path) {
  if (!is_below(path))
    return;
  State& s = state();
  if (++s.calls != s.at)
    return;
  if (s.power)
    lose_power();
  ::kill(::getpid(), s.signal);
  if (s.signal == SIGKILL)
    ::pause();
}

void written(const std::string& path) {
  struct stat info {};
  if (is_below(path) && ::stat(path.c_str(), &info) == 0)
    state().synced.try_emplace(path, info.st_size);
}

void synced(const std::string& path) {
  state().synced.erase(path);
}

int open_with(const char* name, const char* path, int flags, mode_t mode) {
  const std::lock_guard guard(lock());
  if ((flags & O_CREAT) != 0)
    counted(path);
  return real<int(const char*, int, ...)>(name)(path, flags, mode);
}

}  // namespace

extern "C" {

int open(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_with("open", path, flags, mode);
}

int open64(const char* path, int flags, ...) {
  va_list rest;
  va_start(rest, flags);
  const mode_t mode = (flags & O_CREAT) != 0 ? va_arg(rest, mode_t) : 0;
  va_end(rest);
  return open_with("open64", path, flags, mode);
}

ssize_t write(int fd, const void* data, size_t size) {
  const std::lock_guard guard(lock());
  const std::string path = state().below.empty() ? std::string() : path_of(fd);
  counted(path);
  written(path);
  return real<ssize_t(int, const void*, size_t)>("write")(fd, data, size);
}

int ftruncate(int fd, off_t size) {
  const std::lock_guard guard(lock());
  counted(path_of(fd));
  return real<int(int, off_t)>("ftruncate")(fd, size);
}

int fsync(int fd) {
  const std::lock_guard guard(lock());
  const std::string path = path_of(fd);
  counted(path);
  const int result = state().syncs ? real<int(int)>("fsync")(fd) : 0;
  synced(path);
  return result;
}

int fdatasync(int fd) {
  const std::lock_guard guard(lock());
  const std::string path = path_of(fd);
  counted(path);
  const int result = state().syncs ? real<int(int)>("fdatasync")(fd) : 0;
  synced(path);
  return result;
}

int rename(const char* from, const char* to) {
  const std::lock_guard guard(lock());
  counted(to);
  auto& bytes = state().synced;
  if (const auto it = bytes.find(from); it != bytes.end()) {
    bytes[to] = it->second;
    bytes.erase(from);
  } else {
    bytes.erase(to);
  }
  return real<int(const char*, const char*)>("rename")(from, to);
}

int renameat2(int from_at, const char* from, int to_at, const char* to, unsigned flags) {
  const std::lock_guard guard(lock());
  if (!state().exchanges) {
    errno = EINVAL;
    return -1;
  }
  counted(to);
  return real<int(int, const char*, int, const char*, unsigned)>("renameat2")(
      from_at, from, to_at, to, flags);
}

int unlink(const char* path) {
  const std::lock_guard guard(lock());
  counted(path);
  return real<int(const char*)>("unlink")(path);
}

int remove(const char* path) {
  const std::lock_guard guard(lock());
  counted(path);
  return real<int(const char*)>("remove")(path);
}

int unlinkat(int fd, const char* path, int flags) {
  const std::lock_guard guard(lock());
  counted(path[0] == '/' ? std::string(path) : path_of(fd) + "/" + path);
  return real<int(int, const char*, int)>("unlinkat")(fd, path, flags);
}

int mkdir(const char* path, mode_t mode) {
  const std::lock_guard guard(lock());
  counted(path);
  return real<int(const char*, mode_t)>("mkdir")(path, mode);
}

/// For tests in which no power fails: they write thousands of small files.
void temper_sync_nothing() {
  const std::lock_guard guard(lock());
  state().syncs = false;
}

void temper_kill_below(const char* folder, long at, int exchanges) {
  const std::lock_guard guard(lock());
  state().below = folder;
  state().at = at;
  state().calls = 0;
  state().exchanges = exchanges != 0;
}

}  // extern "C"
