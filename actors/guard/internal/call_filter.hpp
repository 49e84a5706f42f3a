// Which system calls a program in namespaces of its own may make: an async-signal-safe call only.
#pragma once

namespace temper::actors {

/// For this process and whoever it starts, for ever. Refused are calls that give more than they
/// take (mounts, namespaces, modules, keys, clocks, the machine itself) and those whose parts of
/// the kernel are large and that no verifier needs (bpf, perf_event_open, userfaultfd, io_uring,
/// sockets of other families than Internet and netlink; pairs of connected sockets are allowed),
/// and those that make memory which no mapping holds. They fail with an error, as if the program
/// had no right to them. 0, also on a kernel without such filters or another processor than x86-64
/// and ARMv8; or errno. Requires: no new privileges.
int filter_calls();

}  // namespace temper::actors
