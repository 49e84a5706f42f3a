// The keys of a run whose workers attach: RUN_DIR/keys, a folder of mode 0700 with files of 0600.
//
//   head          the identity of the run's orchestrators, and the run's id
//   ring          the public keys, their scopes, and which were revoked
//   NAME.key      the credentials of a worker, from `temper keys make`
//   incarnation   how often the run was started or resumed
//
// `temper keys` changes the ring while an orchestrator reads it: it is replaced as a whole.
#pragma once

#include "actors/transport/credentials.hpp"

#include <filesystem>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// The same for all orchestrators of a run.
struct HeadIdentity {
  std::string run;     ///< 32 hexadecimal digits.
  std::string secret;  ///< For actor.hello.
  actors::KeyPair key;
};

struct GrantedKey {
  std::string name;
  std::string open;       ///< Its public half.
  std::string place;      ///< Its scope: an actor slot, a role, or `any`.
  std::string made;       ///< When, for people.
  std::string revoked{};  ///< When; empty: it is valid.
};

struct KeyList {
  std::vector<GrantedKey> keys;
};

class KeyRing {
 public:
  /// The key ring of a run. Make::Missing creates it, and the run folder. Error NotFound: there is
  /// none.
  enum class Make { Missing, No };
  static Result<KeyRing> open(const std::filesystem::path& run_dir, Make make);

  const HeadIdentity& head() const { return head_; }
  const std::vector<GrantedKey>& keys() const { return list_.keys; }

  /// Makes a key and its file for a worker. `name` empty: the first free of key-1, key-2, ...
  /// Error: the name is taken.
  Result<std::filesystem::path> make(std::string name, const std::string& place);
  /// Error: there is no such key, or it is revoked already.
  Status revoke(const std::string& name);
  /// Reads changes by other processes. True: there were some. Errors: those of read_file();
  /// InvalidInput if the ring is damaged.
  Result<bool> refresh();

  /// Takes the next orchestrator number, from 1. Errors: those of incarnation(); Io if locking the
  /// ring or writing the number fails.
  Result<std::uint64_t> begin_incarnation();
  /// The newest orchestrator number of the run; 0 before the first. Errors: Corrupt if the file
  /// holds no number; those of read_file().
  Result<std::uint64_t> incarnation() const;

 private:
  explicit KeyRing(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Status read();
  Status write();

  std::filesystem::path folder_;
  HeadIdentity head_;
  KeyList list_;
  std::string stamp_;  ///< Of the file from which list_ was read.
};

/// Whether `place` (a slot, a role, or `any`) includes this slot.
bool covers(const std::string& place, const std::string& slot);

}  // namespace temper::orchestrator
