#include "actors/runtime/process.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <malloc.h>
#include <sched.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <vector>

namespace temper::actors {

Status die_with_parent(std::int64_t parent) {
  if (::prctl(PR_SET_PDEATHSIG, SIGKILL) != 0)
    return io_error("cannot tie this process to its parent", errno);
  if (::getppid() != parent) {  // The parent ended before the call above.
    return Error{ErrorCode::Unavailable, fmt::format("the parent process {} has ended", parent)};
  }
  return {};
}

void name_process(std::string_view name) {
  const std::string cut(name.substr(0, 15));
  ::prctl(PR_SET_NAME, cut.c_str());
}

std::vector<std::uint32_t> usable_cores() {
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  std::vector<std::uint32_t> cores;
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    return cores;
  for (std::uint32_t core = 0; core < CPU_SETSIZE; ++core) {
    if (CPU_ISSET(core, &allowed))
      cores.push_back(core);
  }
  return cores;
}

Status pin_to_cores(std::span<const std::uint32_t> cores) {
  if (cores.empty())
    return {};
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  if (::sched_getaffinity(0, sizeof(allowed), &allowed) != 0)
    return io_error("cannot read the cores of this process", errno);
  cpu_set_t wanted;
  CPU_ZERO(&wanted);
  std::vector<std::uint32_t> missing;
  for (const std::uint32_t core : cores) {
    if (core < CPU_SETSIZE && CPU_ISSET(core, &allowed))
      CPU_SET(core, &wanted);
    else
      missing.push_back(core);
  }
  if (!missing.empty()) {
    return Error{ErrorCode::Unavailable,
                 fmt::format("cannot pin to core {}: this process may use {} cores",
                             fmt::join(missing, ", "),
                             CPU_COUNT(&allowed))};
  }
  if (::sched_setaffinity(0, sizeof(wanted), &wanted) != 0)
    return io_error(fmt::format("cannot pin to core {}", fmt::join(cores, ", ")), errno);
  return {};
}

Status pin_to_cards(std::span<const std::uint32_t> cards, std::span<const std::uint32_t> usable) {
  std::vector<std::uint32_t> cores;
  for (const std::uint32_t card : cards) {
    if (card >= usable.size()) {
      return Error{
          ErrorCode::Unavailable,
          fmt::format("card {} needs a core that this process may not use: it has {}; "
                      "lower placement.cards or allow more cores (taskset, --cpus-per-task)",
                      card,
                      usable.size())};
    }
    cores.push_back(usable[card]);
  }
  return pin_to_cores(cores);
}

Bytes resident_memory() {
  std::FILE* file = std::fopen("/proc/self/statm", "re");
  if (file == nullptr)
    return Bytes(0);
  long total = 0;
  long resident = 0;
  const int fields = std::fscanf(file, "%ld %ld", &total, &resident);
  std::fclose(file);
  return Bytes(fields == 2 ? resident * ::sysconf(_SC_PAGESIZE) : 0);
}

Bytes peak_resident_memory() {
  rusage usage{};
  if (::getrusage(RUSAGE_SELF, &usage) != 0)
    return Bytes(0);
  // Either counter may lag behind.
  return std::max(Bytes(usage.ru_maxrss * 1024), resident_memory());
}

void release_freed_memory() {
  ::malloc_trim(0);
}

std::string host_name() {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  return name.data();
}

}  // namespace temper::actors
