// Leases of this machine's cores: each core belongs to one run as long as there are enough. If too
// few are free, a run shares cores and says so.
//
// A lease is a lock on one byte of a file that all runs of this machine share. The kernel releases
// it when the process ends. One object per process at a time. Threads: any one.
#pragma once

#include "core/file_descriptor.hpp"

#include <sys/types.h>

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <vector>

namespace temper::orchestrator {

class CoreLeases {
 public:
  /// Another run that uses our cores. Its process is 0 if it is in another container.
  struct Other {
    pid_t process = 0;
    std::vector<std::uint32_t> cores;
  };

  /// `count` of the cores `usable`: free ones first, then those that others have. Where the file
  /// cannot be had, the first ones, and nothing is known of others.
  static CoreLeases take(std::span<const std::uint32_t> usable,
                         std::size_t count,
                         const std::filesystem::path& file = "/dev/shm/temper-cores");

  /// Ascending.
  const std::vector<std::uint32_t>& cores() const { return cores_; }
  const std::vector<Other>& others() const { return others_; }

 private:
  FileDescriptor file_;
  std::vector<std::uint32_t> cores_;
  std::vector<Other> others_;
};

/// "cores 0, 1 are also used by process 12 (temper run a.yaml): ..."; empty where there are none.
std::string to_text(const std::vector<CoreLeases::Other>& others);

}  // namespace temper::orchestrator
