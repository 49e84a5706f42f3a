// Who is connected for which actor slot, who they say they are, and when they were last heard.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/transport/socket.hpp"

#include <bit>
#include <map>
#include <optional>
#include <string>
#include <vector>

namespace temper::orchestrator {

/// What is known of a worker that asks for a place, besides what it says: its key, and the run.
struct Applicant {
  std::string key;                ///< Name of its key.
  std::string place;              ///< What that key is for: a slot, a role, or `any`.
  std::string run;                ///< Whose orchestrator it asks,
  std::uint64_t incarnation = 0;  ///< and its number.
};

class Connections {
 public:
  Connections(std::vector<std::string> names, std::string secret);

  /// The process now expected for a slot; an earlier connection of it is forgotten.
  void expect(ActorId actor, std::int64_t pid);
  void forget(ActorId actor);

  /// One more slot, behind the others.
  void add(std::string name) { slots_.push_back({.name = std::move(name)}); }
  /// From here on the slot is one for workers that others start.
  void attach(ActorId actor) { slots_[actor.value()].attached = true; }
  bool is_attached(ActorId actor) const { return slots_[actor.value()].attached; }
  /// How many slots for others' workers a key for `place` takes in.
  std::size_t places(const std::string& place) const;
  /// Requires: attach(). The slot is free for whoever asks.
  void await(ActorId actor);

  /// Binds a peer to the slot it was started for. Error: why it is refused, in words for its user.
  Result<ActorId> admit(const actors::PeerId& peer, const actors::Hello& hello, Time now);
  /// Binds a peer that nobody of the run started to a free slot: the one that it had, the one that
  /// it names, or the first of those that it and its key allow. Errors, in words for its user:
  /// Unavailable, there is none now and it may come again; else it is refused.
  Result<ActorId> admit_attached(const actors::PeerId& peer,
                                 const actors::Hello& hello,
                                 const Applicant& applicant,
                                 Time now);
  /// Who does not know it is given no answer: a guess costs us no more than reading it.
  bool has_secret(const actors::Hello& hello) const { return hello.secret == secret_; }
  /// Counts a refusal. True: it is one to be logged, the 1st, 2nd, 4th, 8th, ...
  bool note_refusal() { return std::has_single_bit(++refused_); }
  std::uint64_t refused() const { return refused_; }
  /// The actor behind a peer; nullopt: a stranger, or one that was replaced.
  std::optional<ActorId> actor_of(const actors::PeerId& peer) const;
  /// Null while nobody is connected for the slot.
  const actors::PeerId* peer_of(ActorId actor) const;
  /// Those that are connected by this key.
  std::vector<ActorId> connected_by(const std::string& key) const;

  void heard(ActorId actor, Time now) { slots_[actor.value()].last_heard = now; }
  /// Connected actors that were silent since before `since`.
  std::vector<ActorId> silent_since(Time since) const;
  /// Connected peers.
  const std::map<actors::PeerId, ActorId>& peers() const { return peers_; }

 private:
  static constexpr std::int64_t kNobody = 0;
  struct Slot {
    std::string name;
    std::int64_t pid = kNobody;  ///< Of the process that is expected.
    std::optional<actors::PeerId> peer{};
    Time last_heard{};
    bool attached = false;
    bool awaited = false;  ///< Attached: free.
    std::string key{};     ///< Attached: name of the key that its worker has.
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
