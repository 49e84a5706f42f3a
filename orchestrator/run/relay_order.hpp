// Who feeds whom with weights, where workers pass them on: a chain over the hosts, and on each host
// a chain over its workers.
//
//   The first worker of a version is fed by the orchestrator. The first of each other host is fed
//   by the first of the host before it, every other worker by the one before it on its host. So
//   each host's link carries an image once in and at most once out, however many workers there are.
//   A worker asks in this order: its feeder, its feeder's feeder, the orchestrator.
//
// Hosts come in the order in which their workers are asked to stage, which is that of their ids. A
// host is an address that a worker listens at. Whoever asks only asks those that were asked to
// stage before it, so that none waits for itself. No I/O.
#pragma once

#include "actors/protocol/relay_address.hpp"
#include "core/units.hpp"

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

namespace temper::orchestrator {

class RelayOrder {
 public:
  /// A worker has come. Without an address it takes no part.
  void join(ActorId actor, const actors::RelayAddress& address);
  struct Feed {
    ActorId feeder;
    std::string key;  ///< Of whom it is to feed,
    bool admitted;    ///< or not any more.
    bool operator==(const Feed&) const = default;
  };
  /// It is gone, or was replaced: what its feeders are to be told.
  std::vector<Feed> leave(ActorId actor);

  struct Plan {
    std::vector<actors::RelayAddress> sources;  ///< Whom it asks; none: the orchestrator sends.
    std::vector<Feed> feeds;                    ///< What they are to be told before.
  };
  /// The worker is asked to stage `version`. None: it takes no part.
  std::optional<Plan> plan(ActorId actor, PolicyVersion version);
  /// What was published is void: another version by the same number may follow.
  void forget_versions() { version_.reset(); }

 private:
  struct Worker {
    actors::RelayAddress address;
    std::string host;
    std::set<ActorId> told;         ///< Its feeders that know its key.
    std::optional<ActorId> feeder;  ///< Of the newest version.
  };
  void take_out(ActorId actor);

  std::map<ActorId, Worker> workers_;
  std::optional<PolicyVersion> version_;
  std::vector<ActorId> leaders_;                       ///< The first of each host, in order.
  std::map<std::string, std::vector<ActorId>> hosts_;  ///< Their workers, in order.
};

}  // namespace temper::orchestrator
