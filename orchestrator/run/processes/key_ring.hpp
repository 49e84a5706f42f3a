// The keys of a run whose workers attach: RUN_DIR/keys, a folder of mode 0700 with files of 0600.
//
//   head          what the run's orchestrators prove themselves with, and the run's id
//   ring          the open keys that were made, what each may be, and which were revoked
//   NAME.key      what a worker is given: of `temper keys make`
//   incarnation   how often the run was begun or resumed
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
  std::string open;       ///< Its open half.
  std::string place;      ///< What its worker may be: an actor slot, a role, or `any`.
  std::string made;       ///< When, for people.
  std::string revoked{};  ///< When; empty: it is good.
};

struct KeyList {
  std::vector<GrantedKey> keys;
};

class KeyRing {
 public:
  /// The one of this run; Make::Missing makes it, with the run's folder. Error NotFound: there is
  /// none.
  enum class Make { Missing, No };
  static Result<KeyRing> open(const std::filesystem::path& run_dir, Make make);

  const HeadIdentity& head() const { return head_; }
  const std::vector<GrantedKey>& keys() const { return list_.keys; }

  /// The file for a worker; `name` empty: the first of key-1, key-2, ... that is free. Error: there
  /// is one of that name.
  Result<std::filesystem::path> make(std::string name, const std::string& place);
  /// Error: none of that name, or it is revoked already.
  Status revoke(const std::string& name);
  /// Reads again what others changed. True: something has.
  Result<bool> refresh();

  /// The next orchestrator's number, from 1; from here on it is the run's.
  Result<std::uint64_t> begin_incarnation();
  Result<std::uint64_t> incarnation() const;

 private:
  explicit KeyRing(std::filesystem::path folder) : folder_(std::move(folder)) {}
  Status read();
  Status write();

  std::filesystem::path folder_;
  HeadIdentity head_;
  KeyList list_;
  std::string stamp_;  ///< Of the file that list_ was read from.
};

/// Whether a key or a worker's wish for `place` (a slot, a role, or `any`) takes in this slot.
bool covers(const std::string& place, const std::string& slot);

}  // namespace temper::orchestrator
