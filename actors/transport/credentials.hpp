// What a worker proves itself with, and the orchestrator to it: handed out at launch, or made by
// `temper keys`, in a file that only its user can read, never on a command line or in an
// environment. And where a worker that was not launched finds its run.
#pragma once

#include "core/describe.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <filesystem>
#include <string>

namespace temper::actors {

/// Of CURVE, in ZeroMQ's text form (Z85, 40 characters each).
struct KeyPair {
  std::string open;    ///< May be known to anyone.
  std::string secret;  ///< To nobody else.

  static KeyPair create();
};
/// Whether a stranger's words are an open key in text form.
bool is_key(const std::string& text);

struct Credentials {
  std::string secret;            ///< Of the run, for actor.hello.
  std::string orchestrator_key;  ///< Its open key; empty: the connection is not encrypted.
  KeyPair own;                   ///< Of this process alone.
  std::string run{};             ///< Of `temper keys`: the run that it is of,
  std::string name{};            ///< and its name there.
};

/// The file RUN_DIR/endpoint, replaced as a whole by each orchestrator of the run.
struct RunAddress {
  std::string endpoint;  ///< Empty: the run has ended.
  std::string run;
  std::uint64_t incarnation = 0;  ///< How often the run was begun or resumed.
};

template <class V>
void describe(V& v, KeyPair& k) {
  v.field(1, "open", k.open);
  v.field(2, "secret", k.secret);
}
template <class V>
void describe(V& v, Credentials& c) {
  v.field(1, "secret", c.secret);
  v.field(2, "orchestrator_key", c.orchestrator_key);
  v.field(3, "own", c.own);
  v.field(4, "run", c.run);
  v.field(5, "name", c.name);
}
template <class V>
void describe(V& v, RunAddress& a) {
  v.field(1, "endpoint", a.endpoint);
  v.field(2, "run", a.run);
  v.field(3, "incarnation", a.incarnation);
}

/// A new file of mode 0600, as YAML. Error: it is there already, or cannot be written.
Status write_credentials(const std::filesystem::path& path, const Credentials& credentials);
/// Errors: not a file of this user alone (mode 0600), not what write_credentials() wrote.
Result<Credentials> read_credentials(const std::filesystem::path& path);

Status write_address(const std::filesystem::path& path, const RunAddress& address);
/// Error NotFound: it is not there (yet).
Result<RunAddress> read_address(const std::filesystem::path& path);

}  // namespace temper::actors
