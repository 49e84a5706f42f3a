// The connections of a run: which worker is connected for which actor slot, its identity, and when
// it was last heard.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/transport/socket.hpp"

#include <bit>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// A worker that asks to be admitted: its key and its run, beside its own claims.
struct Applicant {
  std::string key;                ///< The name of its key.
  std::string place;              ///< The key's scope: a slot, a role, or `any`.
  std::string run;                ///< The run of the orchestrator.
  std::uint64_t incarnation = 0;  ///< The orchestrator's number.
};

class Connections {
 public:
  Connections(std::vector<std::string> names, std::string secret);

  /// Expects this process for a slot; an earlier connection is forgotten.
  void expect(ActorId actor, std::int64_t pid);
  void forget(ActorId actor);
  /// The expected process; nullopt: none.
  std::optional<std::int64_t> pid_of(ActorId actor) const {
    const std::int64_t pid = slots_[actor.value()].pid;
    return pid == kNobody ? std::nullopt : std::optional(pid);
  }

  /// Adds a slot after the others.
  void add(std::string name) { slots_.push_back({.name = std::move(name)}); }
  /// The slot is for workers that others start.
  void attach(ActorId actor) { slots_[actor.value()].attached = true; }
  bool is_attached(ActorId actor) const { return slots_[actor.value()].attached; }
  /// The number of slots for attaching workers that a key for `place` covers.
  std::size_t places(const std::string& place) const;
  /// Requires: attach(). The slot is free.
  void await(ActorId actor);

  /// Binds a peer to the slot for which it was started. Error: why it is refused, for its user.
  Result<ActorId> admit(const actors::PeerId& peer, const actors::Hello& hello, Time now);
  /// Binds a peer that the run did not start to a free slot: the one that it had, the one that it
  /// names, or the first that it and its key allow. Errors, for its user: Unavailable if no slot is
  /// free now and it may retry; otherwise it is refused.
  Result<ActorId> admit_attached(const actors::PeerId& peer,
                                 const actors::Hello& hello,
                                 const Applicant& applicant,
                                 Time now);
  /// A peer without the secret gets no answer.
  bool has_secret(const actors::Hello& hello) const { return hello.secret == secret_; }
  /// Counts a refusal. True for the 1st, 2nd, 4th, 8th, ...: to be logged.
  bool note_refusal() { return std::has_single_bit(++refused_); }
  std::uint64_t refused() const { return refused_; }
  /// The actor of a peer; nullopt: unauthenticated, or replaced.
  std::optional<ActorId> actor_of(const actors::PeerId& peer) const;
  /// Null: no worker is connected for the slot.
  const actors::PeerId* peer_of(ActorId actor) const;
  /// The actors whose workers have this key.
  std::vector<ActorId> connected_by(const std::string& key) const;

  void heard(ActorId actor, Time now) { slots_[actor.value()].last_heard = now; }
  /// Connected actors that were last heard before `since`.
  std::vector<ActorId> silent_since(Time since) const;
  /// Connected peers.
  const std::map<actors::PeerId, ActorId>& peers() const { return peers_; }

 private:
  static constexpr std::int64_t kNobody = 0;
  struct Slot {
    std::string name;
    std::int64_t pid = kNobody;  ///< Of the expected process.
    std::optional<actors::PeerId> peer{};
    Time last_heard{};
    bool attached = false;
    bool awaited = false;  ///< Attached: free.
    std::string key{};     ///< Attached: the name of its worker's key.
  };
  Status check(const actors::Hello& hello) const;
  Status check_run(const actors::Hello& hello, const Applicant& applicant) const;
  Result<std::optional<std::size_t>> find_place(const actors::Hello& hello,
                                                const Applicant& applicant) const;
  ActorId bind(std::size_t slot, const actors::PeerId& peer, Time now);

  const std::string secret_;
  std::vector<Slot> slots_;
  std::map<actors::PeerId, ActorId> peers_;
  std::uint64_t refused_ = 0;
};

}  // namespace temper::orchestrator
