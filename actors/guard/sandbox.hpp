// Restrictions on a child program, and the environment that it gets.
//
//   none        no restrictions; only the environment is reduced
//   limits      no new privileges (setuid has no effect), no core files; bounded memory, processes,
//               file size and descriptors
//   namespaces  limits, and user, mount, process, network and IPC namespaces: no network, no UNIX
//               sockets of other programs, no other processes visible, all file systems read-only,
//               /tmp and TMPDIR empty and private, five devices, filtered system calls. Requires a
//               kernel that lets this user create namespaces.
#pragma once

#include "core/describe.hpp"
#include "core/result.hpp"

#include <string>
#include <vector>

namespace temper {
namespace actors {

enum class SandboxKind { None, Limits, Namespaces };

struct Sandbox {
  SandboxKind kind = SandboxKind::None;
  Bytes memory{Bytes::rep{8} << 30};  ///< Memory limit of all its processes; mapped files do not
                                      ///< count.
  std::vector<std::string> environment = {};  ///< Variables passed in addition to kGivenVariables.
  std::vector<std::string> hidden = {};       ///< For namespaces: folders that appear empty.
};

/// Variables that every program gets if they are set. No other variable is passed unless it is
/// named, because an environment often holds tokens and keys.
inline constexpr std::array<std::string_view, 9> kGivenVariables{
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "OMP_NUM_THREADS"};

/// Tries to create such a sandbox. Error Unsupported: why this machine cannot, and what would help.
Status check_sandbox(SandboxKind kind);

}  // namespace actors

template <>
struct EnumNames<actors::SandboxKind> {
  using K = actors::SandboxKind;
  static constexpr std::array<std::pair<K, std::string_view>, 3> value{
      {{K::None, "none"}, {K::Limits, "limits"}, {K::Namespaces, "namespaces"}}};
};

}  // namespace temper
