// What a foreign program may do on this machine, and what it is told of it.
//
//   none        what its user may; only its environment is its own
//   limits      no new privileges (setuid programs stay what they are), no core files; bounded
//               memory, processes, file size and descriptors
//   namespaces  limits, and by user, mount, process, network and IPC namespaces: no network, no
//               UNIX sockets of others, no other process in sight, every file system read-only,
//               /tmp and TMPDIR empty and its own, five devices, system calls filtered. Needs a
//               kernel that lets this user make them.
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
  Bytes memory{Bytes::rep{8} << 30};  ///< Of all its processes; files they map do not count.
  std::vector<std::string> environment = {};  ///< Variables it is given beside kGivenVariables.
  std::vector<std::string> hidden = {};       ///< namespaces: folders that look empty to it.
};

/// Every program is given these where they are set, and no other variable unless it is named: an
/// environment is where tokens and keys of other programs lie.
inline constexpr std::array<std::string_view, 9> kGivenVariables{
    "PATH", "HOME", "USER", "LANG", "LC_ALL", "LC_CTYPE", "TZ", "TMPDIR", "OMP_NUM_THREADS"};

/// Why this machine cannot make such a sandbox, and what would help; success if it can. Tries it.
Status check_sandbox(SandboxKind kind);

}  // namespace actors

template <>
struct EnumNames<actors::SandboxKind> {
  using K = actors::SandboxKind;
  static constexpr std::array<std::pair<K, std::string_view>, 3> value{
      {{K::None, "none"}, {K::Limits, "limits"}, {K::Namespaces, "namespaces"}}};
};

}  // namespace temper
