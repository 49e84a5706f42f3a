#include "actors/guard/internal/confine.hpp"

#include "actors/guard/internal/call_filter.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/landlock.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <iterator>

namespace temper::actors {
namespace {

constexpr rlim_t kDescriptors = 1024;
constexpr rlim_t kLargestFile = rlim_t{1} << 30;
constexpr const char* kOwnFolder = "size=1g,mode=0700";

int failed(ConfineStep step) {
  return errno | static_cast<int>(step);
}

bool write_text(const char* path, const char* text) {
  const int fd = ::open(path, O_WRONLY | O_CLOEXEC);
  if (fd < 0)
    return false;
  const auto size = static_cast<ssize_t>(std::strlen(text));
  const bool written = ::write(fd, text, static_cast<std::size_t>(size)) == size;
  const int why = errno;
  ::close(fd);
  errno = why;
  return written;
}

bool limit(__rlimit_resource what, rlim_t to) {
  rlimit now{};
  if (::getrlimit(what, &now) != 0)
    return false;
  now.rlim_max = now.rlim_max == RLIM_INFINITY ? to : (to < now.rlim_max ? to : now.rlim_max);
  now.rlim_cur = now.rlim_max;
  return ::setrlimit(what, &now) == 0;
}

/// Makes every mount below / read-only and without devices.
bool make_read_only() {
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV;
  return ::syscall(
             SYS_mount_setattr, AT_FDCWD, "/", AT_RECURSIVE, &attributes, sizeof(attributes)) == 0;
}

/// Devices that the program may open. A read-only mount does not prevent writes to devices.
constexpr const char* kDevices[] = {
    "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom"};

/// Detached mounts of these devices; -1 if this machine does not have one.
struct Devices {
  int fds[std::size(kDevices)];
};

Devices take_devices() {
  Devices taken{};
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOSUID | MOUNT_ATTR_NOEXEC;
  for (std::size_t i = 0; i < std::size(kDevices); ++i) {
    const long fd =
        ::syscall(SYS_open_tree, AT_FDCWD, kDevices[i], OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
    taken.fds[i] = static_cast<int>(fd);
    if (fd >= 0)
      ::syscall(SYS_mount_setattr, fd, "", AT_EMPTY_PATH, &attributes, sizeof attributes);
  }
  return taken;
}

/// Creates the parent folders of a path below /dev, which is empty at this point.
void make_folders(const char* path) {
  char text[PATH_MAX];
  const std::size_t size = std::strlen(path);
  if (size >= sizeof text)
    return;
  for (std::size_t i = 0; i <= size; ++i) {
    text[i] = '\0';
    if (i > 0 && (path[i] == '/' || path[i] == '\0'))
      ::mkdir(text, 0755);
    text[i] = path[i];
  }
}

/// Creates a /dev with these devices and the covered folders only.
bool make_devices(const Devices& devices, const char* const* covered) {
  constexpr unsigned long kFlags = MS_NOSUID | MS_NOEXEC;
  if (::mount("none", "/dev", "tmpfs", kFlags, "size=64k,nr_inodes=64,mode=0755") != 0)
    return false;
  for (std::size_t i = 0; i < std::size(kDevices); ++i) {
    if (devices.fds[i] < 0)
      continue;
    const int place = ::open(kDevices[i], O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (place < 0 || ::close(place) != 0 ||
        ::syscall(
            SYS_move_mount, devices.fds[i], "", AT_FDCWD, kDevices[i], MOVE_MOUNT_F_EMPTY_PATH) !=
            0)
      return false;
    ::close(devices.fds[i]);
  }
  constexpr const char* kLinks[][2] = {{"/proc/self/fd", "/dev/fd"},
                                       {"fd/0", "/dev/stdin"},
                                       {"fd/1", "/dev/stdout"},
                                       {"fd/2", "/dev/stderr"}};
  for (const auto& [to, name] : kLinks) {
    if (::symlink(to, name) != 0)
      return false;
  }
  for (; *covered != nullptr; ++covered) {
    if (std::strncmp(*covered, "/dev/", 5) == 0)
      make_folders(*covered);
  }
  mount_attr attributes{};
  attributes.attr_set = MOUNT_ATTR_RDONLY;
  return ::syscall(SYS_mount_setattr, AT_FDCWD, "/dev", 0, &attributes, sizeof attributes) == 0;
}

/// Allows opening files for writing only below these folders (a read-only mount still allows
/// writing to FIFOs). Returns true also if the kernel has no Landlock (before 5.13, or disabled).
bool keep_writes(const char* const* covered) {
  landlock_ruleset_attr rules{};
  rules.handled_access_fs = LANDLOCK_ACCESS_FS_WRITE_FILE;
  const auto ruleset =
      static_cast<int>(::syscall(SYS_landlock_create_ruleset, &rules, sizeof rules, 0));
  if (ruleset < 0)
    return errno == ENOSYS || errno == EOPNOTSUPP;
  const auto allow = [&](const char* folder) {
    landlock_path_beneath_attr below{};
    below.allowed_access = LANDLOCK_ACCESS_FS_WRITE_FILE;
    below.parent_fd = ::open(folder, O_PATH | O_CLOEXEC);
    const bool added =
        below.parent_fd >= 0 &&
        ::syscall(SYS_landlock_add_rule, ruleset, LANDLOCK_RULE_PATH_BENEATH, &below, 0) == 0;
    if (below.parent_fd >= 0)
      ::close(below.parent_fd);
    return added;
  };
  bool kept = allow("/dev") && allow("/proc");
  for (; kept && *covered != nullptr; ++covered)
    kept = allow(*covered);
  kept = kept && ::syscall(SYS_landlock_restrict_self, ruleset, 0) == 0;
  const int why = errno;
  ::close(ruleset);
  errno = why;
  return kept;
}

int make_namespaces(const ConfinePlan& plan) {
  static_cast<void>(write_text("/proc/self/setgroups", "deny"));  // does not exist on older kernels
  if (!write_text("/proc/self/uid_map", plan.user_map) ||
      !write_text("/proc/self/gid_map", plan.group_map)) {
    return failed(ConfineStep::Users);
  }
  if (::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) != 0)
    return failed(ConfineStep::Mounts);
  const Devices devices = take_devices();
  if (!make_read_only())
    return failed(ConfineStep::ReadOnly);
  if (!make_devices(devices, plan.covered))
    return failed(ConfineStep::Devices);
  constexpr unsigned long kPlain = MS_NOSUID | MS_NODEV;
  // If parts of /proc are masked, the kernel refuses to mount a new one: then use an empty folder.
  if (::mount("proc", "/proc", "proc", kPlain | MS_NOEXEC, nullptr) != 0 &&
      ::mount("none", "/proc", "tmpfs", kPlain | MS_RDONLY, nullptr) != 0) {
    return failed(ConfineStep::Mounts);
  }
  for (const char* const* folder = plan.covered; *folder != nullptr; ++folder) {
    if (::mount("none", *folder, "tmpfs", kPlain, kOwnFolder) != 0)
      return failed(ConfineStep::Cover);
  }
  // Change into it again by name: the old one may lie below a covered folder.
  if (::chdir(plan.working_folder) != 0 && ::chdir("/") != 0)
    return failed(ConfineStep::Cover);
  return 0;
}

}  // namespace

pid_t fork_confined(const ConfinePlan& plan) {
  if (plan.kind != SandboxKind::Namespaces)
    return ::fork();
  constexpr unsigned long kRooms =
      CLONE_NEWUSER | CLONE_NEWNS | CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWIPC;
  return static_cast<pid_t>(::syscall(SYS_clone, kRooms | SIGCHLD, 0, 0, 0, 0));
}

int confine_self(const ConfinePlan& plan) {
  if (plan.kind == SandboxKind::None)
    return 0;
  if (plan.kind == SandboxKind::Namespaces) {
    if (const int error = make_namespaces(plan); error != 0)
      return error;
  }
  const bool limited = limit(RLIMIT_CORE, 0) && limit(RLIMIT_NOFILE, kDescriptors) &&
                       limit(RLIMIT_FSIZE, kLargestFile) &&
                       limit(RLIMIT_DATA, static_cast<rlim_t>(plan.memory)) &&
                       ::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) == 0;
  if (!limited)
    return failed(ConfineStep::Limits);
  if (plan.kind == SandboxKind::Namespaces) {
    if (plan.tasks > 0 && !limit(RLIMIT_NPROC, static_cast<rlim_t>(plan.tasks)))
      return failed(ConfineStep::Limits);
    if (!keep_writes(plan.covered))
      return failed(ConfineStep::Writes);
    if (const int error = filter_calls(); error != 0)
      return error | static_cast<int>(ConfineStep::Filter);
  }
  return 0;
}

std::string confine_error(int number) {
  const auto step = static_cast<ConfineStep>(number & ~kErrnoMask);
  const char* what = "cannot create namespaces";
  switch (step) {
    case ConfineStep::None:
    case ConfineStep::Users:
      break;
    case ConfineStep::Mounts:
      what = "cannot create private mounts";
      break;
    case ConfineStep::ReadOnly:
      what = "cannot make the file systems read-only (requires Linux 5.12)";
      break;
    case ConfineStep::Cover:
      what = "cannot hide a folder; check that the folders in verifier.hidden exist";
      break;
    case ConfineStep::Limits:
      what = "cannot set resource limits";
      break;
    case ConfineStep::Filter:
      what = "cannot filter system calls";
      break;
    case ConfineStep::Devices:
      what = "cannot create a private /dev";
      break;
    case ConfineStep::Writes:
      what = "cannot restrict writes to its own folders (Landlock)";
      break;
  }
  return fmt::format("{}: {}", what, std::strerror(number & kErrnoMask));
}

namespace {

/// Tries to create the namespaces in a child. Returns 0 or the number that the child reported.
int try_namespaces() {
  const std::string user = fmt::format("65534 {} 1\n", ::geteuid());
  const std::string group = fmt::format("65534 {} 1\n", ::getegid());
  const char* const covered[] = {"/tmp", nullptr};
  ConfinePlan plan;
  plan.kind = SandboxKind::Namespaces;
  plan.memory = std::int64_t{1} << 40;
  plan.covered = covered;
  plan.user_map = user.c_str();
  plan.group_map = group.c_str();
  int ends[2];
  if (::pipe2(ends, O_CLOEXEC) != 0)
    return errno;
  const pid_t child = fork_confined(plan);
  if (child == 0) {
    const int error = confine_self(plan);
    static_cast<void>(!::write(ends[1], &error, sizeof(error)));
    ::_exit(0);
  }
  int error = child < 0 ? errno : ECHILD;
  ::close(ends[1]);
  if (child > 0) {
    while (::read(ends[0], &error, sizeof(error)) < 0 && errno == EINTR) {
    }
    while (::waitpid(child, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ::close(ends[0]);
  return error;
}

}  // namespace

Status check_sandbox(SandboxKind kind) {
  if (kind != SandboxKind::Namespaces)
    return {};
  const int error = try_namespaces();
  if (error == 0)
    return {};
  return Error{
      ErrorCode::Unsupported,
      fmt::format("this machine does not let this user create namespaces: {}; use `limits`, "
                  "or allow user namespaces (sysctl kernel.unprivileged_userns_clone=1, "
                  "user.max_user_namespaces; in a container, the seccomp profile of the runtime)",
                  confine_error(error))};
}

}  // namespace temper::actors
