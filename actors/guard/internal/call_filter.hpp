// System call filter for programs in namespaces. Async-signal-safe.
#pragma once

namespace temper::actors {

/// Filters the system calls of this process and its descendants permanently. Refuses calls that
/// could undo the confinement (mounts, namespaces, modules, keys, clocks, reboot), calls into large
/// kernel subsystems that no verifier needs (bpf, perf_event_open, userfaultfd, io_uring, socket
/// families other than Internet and netlink; connected socket pairs are allowed), and calls that
/// create memory without a mapping. Refused calls fail with an error. Returns 0, also if the kernel
/// has no filters or the processor is neither x86-64 nor ARMv8; otherwise errno. Requires: no new
/// privileges.
int filter_calls();

}  // namespace temper::actors
