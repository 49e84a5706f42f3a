// The order in which workers pass weights on: a chain over the hosts, and on each host a chain over
// its workers.
//
//   The trainer's worker feeds the first worker of a version; if it does not relay, the
//   orchestrator does. The first worker of each other host is fed by the first worker of the
//   previous host, every other worker by the previous one on its host. So each host's link carries
//   an image once in and at most once out, whatever the number of workers. A worker asks its feeder
//   first, then its feeder's feeder, then the trainer's worker, then the orchestrator.
//
// Hosts come in the order in which their workers are told to stage, which is that of their ids. A
// host is an address at which a worker listens. A worker only asks workers that were told to stage
// before it, so that no cycle forms. No I/O.
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
  /// A worker has attached. Without an address it takes no part.
  void join(ActorId actor, const actors::RelayAddress& address);
  struct Feed {
    ActorId feeder;
    std::string key;  ///< Of the worker to feed.
    bool admitted;    ///< False: no longer to be fed.
    bool operator==(const Feed&) const = default;
  };
  /// The worker is gone or was replaced. Returns the messages for its feeders.
  std::vector<Feed> leave(ActorId actor);

  bool has(ActorId actor) const { return workers_.contains(actor); }

  /// The holder of each new version: the worker of this trainer, or without one the orchestrator.
  /// Requires: has(*trainer).
  void begin_with(std::optional<ActorId> trainer) { trainer_ = trainer; }

  struct Plan {
    std::vector<actors::RelayAddress>
        sources;              ///< To ask, in this order; empty: the orchestrator sends.
    std::vector<Feed> feeds;  ///< Messages for the sources, to be sent first.
  };
  /// The worker is told to stage `version`. None: it takes no part.
  std::optional<Plan> plan(ActorId actor, PolicyVersion version);
  /// Published versions are void: another version with the same number may follow.
  void forget_versions() { version_.reset(); }

 private:
  struct Worker {
    actors::RelayAddress address;
    std::string host;
    std::set<ActorId> told;         ///< The feeders that know its key.
    std::optional<ActorId> feeder;  ///< Of the newest version.
  };
  void take_out(ActorId actor);
  void begin_chain(PolicyVersion version);
  /// The worker asks the source too; the source is told its key once.
  static void add_source(Plan& plan, Worker& worker, ActorId id, const Worker& source);

  std::map<ActorId, Worker> workers_;
  std::optional<ActorId> trainer_;
  std::optional<PolicyVersion> version_;
  std::vector<ActorId> leaders_;                       ///< The first of each host, in order.
  std::map<std::string, std::vector<ActorId>> hosts_;  ///< Their workers, in order.
};

}  // namespace temper::orchestrator
