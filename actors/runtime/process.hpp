// Operations of a worker on its own process.
#pragma once

#include "core/result.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

/// From now on the kernel kills this process when the thread that spawned it ends. Error
/// Unavailable: the parent process has already ended.
Status die_with_parent(std::int64_t parent);

/// Sets the name that ps and top show, truncated to 15 bytes.
void name_process(std::string_view name);

/// The cores that this process may use, in ascending order.
std::vector<std::uint32_t> usable_cores();

/// Restricts the calling thread, and threads that it creates later, to these cores; no cores: no
/// change. Error Unavailable: names the cores that this process may not use.
Status pin_to_cores(std::span<const std::uint32_t> cores);

/// Like pin_to_cores(), for the cores that stand for these cards on a host without accelerators:
/// card n is the n-th core of `usable`, which a container, `taskset` or Slurm may have limited.
/// Error: there are fewer cores.
Status pin_to_cards(std::span<const std::uint32_t> cards, std::span<const std::uint32_t> usable);

/// Current and peak resident memory of this process; zero if /proc is unavailable.
Bytes resident_memory();
Bytes peak_resident_memory();

/// Returns freed memory that the allocator kept to the system.
void release_freed_memory();

std::string host_name();

}  // namespace temper::actors
