// Credentials with which a worker and the orchestrator authenticate each other. They are issued at
// launch or by `temper keys`, in a file that only its user can read, and never appear on a command
// line or in an environment. Also the address file through which attached workers find their run.
#pragma once

#include "core/describe.hpp"
#include "core/result.hpp"
#include "core/units.hpp"

#include <filesystem>
#include <string>

namespace temper::actors {

/// A CURVE key pair in ZeroMQ's text form (Z85, 40 characters each).
struct KeyPair {
  std::string open;    ///< Public key.
  std::string secret;  ///< Secret key.

  static KeyPair create();
};
/// True if untrusted text has the form of a public key.
bool is_key(const std::string& text);

struct Credentials {
  std::string secret;            ///< The run's secret, sent in actor.hello.
  std::string orchestrator_key;  ///< Public key of the orchestrator; empty: the connection is not
                                 ///< encrypted.
  KeyPair own;                   ///< Key pair of this process.
  std::string run{};             ///< Only for keys from `temper keys`: id of the run.
  std::string name{};            ///< Only for keys from `temper keys`: name of the key.
};

/// Content of the file RUN_DIR/endpoint, which each orchestrator of the run replaces atomically.
struct RunAddress {
  std::string endpoint;  ///< Empty: the run has ended.
  std::string run;
  std::uint64_t incarnation = 0;  ///< Number of times the run was started or resumed.
};

void describe(auto& v, KeyPair& k) {
  v.field(1, "open", k.open);
  v.field(2, "secret", k.secret);
}
void describe(auto& v, Credentials& c) {
  v.field(1, "secret", c.secret);
  v.field(2, "orchestrator_key", c.orchestrator_key);
  v.field(3, "own", c.own);
  v.field(4, "run", c.run);
  v.field(5, "name", c.name);
}
void describe(auto& v, RunAddress& a) {
  v.field(1, "endpoint", a.endpoint);
  v.field(2, "run", a.run);
  v.field(3, "incarnation", a.incarnation);
}

/// Writes a new YAML file with mode 0600. Error Io if the file exists or cannot be written.
Status write_credentials(const std::filesystem::path& path, const Credentials& credentials);
/// Errors: InvalidInput if the file does not belong to this user, does not have mode 0600 or was
/// not written by write_credentials().
Result<Credentials> read_credentials(const std::filesystem::path& path);

/// Replaces the file atomically. Errors: see write_file_atomically().
Status write_address(const std::filesystem::path& path, const RunAddress& address);
/// Error NotFound if the file does not exist (yet).
Result<RunAddress> read_address(const std::filesystem::path& path);

}  // namespace temper::actors
