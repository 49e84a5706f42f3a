#include "actors/guard/internal/call_filter.hpp"

#include <linux/audit.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace temper::actors {
namespace {

#if defined(__x86_64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_X86_64;
#elif defined(__aarch64__)
constexpr std::uint32_t kArchitecture = AUDIT_ARCH_AARCH64;
#else
constexpr std::uint32_t kArchitecture = 0;
#endif
constexpr std::uint32_t kFirstOfX32 = 0x40000000;

constexpr std::uint32_t kRefused[] = {
    // File systems and namespaces
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_setns,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_name_to_handle_at,
    SYS_open_by_handle_at,
    SYS_quotactl,
    SYS_fanotify_init,
    // Keys
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    // Large parts of the kernel
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    // The machine
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_kexec_load,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
    SYS_syslog,
    SYS_settimeofday,
    SYS_clock_settime,
#if defined(__x86_64__)
    SYS_kexec_file_load,
    SYS_iopl,
    SYS_ioperm,
    SYS_modify_ldt,
    SYS_uselib,
    SYS_ustat,
    SYS_sysfs,
#endif
};

constexpr std::uint32_t kNewNamespaces = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER |
                                         CLONE_NEWPID | CLONE_NEWNET | CLONE_NEWCGROUP;
/// No AF_UNIX: by a path a program could reach services of its user (containers, keys, the desktop)
/// from any namespace. Internet and netlink sockets see only its own network.
constexpr std::uint32_t kFamilies[] = {AF_INET, AF_INET6, AF_NETLINK};
/// Calls that create memory without a mapping, which would not be counted; they fail as on a kernel
/// without them.
constexpr std::uint32_t kUncounted[] = {
    SYS_memfd_create,
    SYS_shmget,
#if defined(SYS_memfd_secret)
    SYS_memfd_secret,
#endif
};

/// The type of a socket() without its flags.
constexpr std::uint32_t kKindOfSocket = 0xf;

constexpr std::uint32_t refusal(std::uint32_t error) {
  return SECCOMP_RET_ERRNO | error;
}

/// Assembles the filter's instructions. Each part either ends the filter or falls through to the
/// next part with the call number loaded.
struct Program {
  std::array<sock_filter, 160> code{};
  std::size_t size = 0;

  constexpr void add(std::uint16_t code_,
                     std::uint32_t k,
                     std::uint8_t yes = 0,
                     std::uint8_t no = 0) {
    code[size++] = {code_, yes, no, k};
  }
  constexpr void load(std::size_t offset) {
    add(BPF_LD | BPF_W | BPF_ABS, static_cast<std::uint32_t>(offset));
  }
  /// The lower half of an argument; both architectures are little endian.
  constexpr void load_argument(std::size_t n) {
    load(offsetof(seccomp_data, args) + n * sizeof(std::uint64_t));
  }
  constexpr void end(std::uint32_t with) { add(BPF_RET | BPF_K, with); }
  constexpr void end_if_equal(std::uint32_t value, std::uint32_t with) {
    add(BPF_JMP | BPF_JEQ | BPF_K, value, 0, 1);
    end(with);
  }
  /// Refuses a call whose first argument has flags that create namespaces.
  constexpr void keep_namespaces(std::uint32_t call) {
    add(BPF_JMP | BPF_JEQ | BPF_K, call, 0, 4);
    load_argument(0);
    add(BPF_JMP | BPF_JSET | BPF_K, kNewNamespaces, 0, 1);
    end(refusal(EPERM));
    end(SECCOMP_RET_ALLOW);
  }
  constexpr void keep_families() {
    constexpr auto kLength = static_cast<std::uint8_t>(2 * std::size(kFamilies) + 2);
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_socket, 0, kLength);
    load_argument(0);
    for (const std::uint32_t family : kFamilies)
      end_if_equal(family, SECCOMP_RET_ALLOW);
    end(refusal(EAFNOSUPPORT));
  }
  /// Allows connected stream pairs only: a datagram pair could later send to any path.
  constexpr void keep_pairs() {
    add(BPF_JMP | BPF_JEQ | BPF_K, SYS_socketpair, 0, 10);
    load_argument(0);
    add(BPF_JMP | BPF_JEQ | BPF_K, AF_UNIX, 1, 0);
    end(refusal(EAFNOSUPPORT));
    load_argument(1);
    add(BPF_ALU | BPF_AND | BPF_K, kKindOfSocket);
    end_if_equal(SOCK_STREAM, SECCOMP_RET_ALLOW);
    end_if_equal(SOCK_SEQPACKET, SECCOMP_RET_ALLOW);
    end(refusal(EPERM));
  }
};

constexpr Program make_program() {
  Program p;
  p.load(offsetof(seccomp_data, arch));
  p.add(BPF_JMP | BPF_JEQ | BPF_K, kArchitecture, 1, 0);
  p.end(refusal(ENOSYS));  // 32-bit programs use other call numbers
  p.load(offsetof(seccomp_data, nr));
  if (kArchitecture == AUDIT_ARCH_X86_64) {
    p.add(BPF_JMP | BPF_JGE | BPF_K, kFirstOfX32, 0, 1);
    p.end(refusal(ENOSYS));
  }
  for (const std::uint32_t call : kRefused)
    p.end_if_equal(call, refusal(EPERM));
  // its flags are in memory and cannot be checked; programs fall back to clone
  p.end_if_equal(SYS_clone3, refusal(ENOSYS));
  p.keep_namespaces(SYS_clone);
  p.keep_namespaces(SYS_unshare);
  for (const std::uint32_t call : kUncounted)
    p.end_if_equal(call, refusal(ENOSYS));
  p.keep_families();
  p.keep_pairs();
  p.end(SECCOMP_RET_ALLOW);
  return p;
}

constexpr Program kProgram = make_program();

}  // namespace

int filter_calls() {
  if (kArchitecture == 0)
    return 0;
  // The kernel's type is not const, but the kernel only reads.
  const sock_fprog filter{static_cast<std::uint16_t>(kProgram.size),
                          const_cast<sock_filter*>(kProgram.code.data())};
  if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter, 0, 0) == 0 || errno == EINVAL)
    return 0;
  return errno;
}

}  // namespace temper::actors
