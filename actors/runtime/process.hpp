// What a worker does to its own process.
#pragma once

#include "core/result.hpp"
#include "core/units.hpp"

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace temper::actors {

/// From now on the kernel kills this process when the thread that spawned it ends. Error:
/// `parent`, who spawned it, is gone already.
Status die_with_parent(std::int64_t parent);

/// The name that ps and top show; cut to 15 bytes.
void name_process(std::string_view name);

/// The cores this process may use, ascending.
std::vector<std::uint32_t> usable_cores();

/// Restricts the calling thread, and threads it creates later, to these cores. No cores: no change.
/// Error: a core that this machine or container does not have, named.
Status pin_to_cores(std::span<const std::uint32_t> cores);

/// As pin_to_cores, to the cores that stand for these cards on a host without accelerators: card n
/// is the n-th of `usable`, the cores that this process was given, which may be any (a container,
/// `taskset`, Slurm). Error: these are fewer.
Status pin_to_cards(std::span<const std::uint32_t> cards, std::span<const std::uint32_t> usable);

/// Resident memory of this process now, and at its highest; zero where /proc does not tell.
Bytes resident_memory();
Bytes peak_resident_memory();

/// Gives what this process has freed back to the system, as far as its allocator kept it.
void release_freed_memory();

std::string host_name();

}  // namespace temper::actors
