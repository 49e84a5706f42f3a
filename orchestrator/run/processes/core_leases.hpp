// Cores of this machine, each for one run as long as there are enough. A run takes a lease of those
// that its cards are; another one takes others, and where none are left it shares and says so.
//
// A lease is a lock of one byte of a file that all runs of this machine know. The kernel lets it go
// with the process, however that ends. One object of a process at a time. Threads: any one.
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
  /// Another run that has cores of ours. The process may be of another container: 0.
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
