// Weights on their way from the trainer to the engines: through shared memory, as chunks over the
// sockets, as files, or from worker to worker (relay_order.hpp).
//
// The worker of an attached trainer feeds the engines itself. The orchestrator then knows of an
// image only what was announced, and fetches it from the trainer once an engine needs it from the
// orchestrator: one that does not relay, one that shares this machine, or one that no other worker
// feeds.
#pragma once

#include "orchestrator/run/live/actor_links.hpp"
#include "orchestrator/run/relay_order.hpp"
#include "orchestrator/run/weight_store.hpp"

#include <filesystem>
#include <optional>
#include <vector>

namespace temper::orchestrator {

class WeightSync {
 public:
  /// `folder`: for weights that engines read as files. The references outlive this.
  WeightSync(
      RunCore& core, ActorLinks& links, WeightsBy by, std::filesystem::path folder, const Log& log);

  void execute(const command::StageWeights& c);
  void execute(const command::CommitWeights& c);
  /// Sends engines the images that they need from here, and requests those that are not here. They
  /// follow all other messages of their commands, so that an engine knows its receivers before an
  /// image fills its connection.
  void send_images();

  /// The trainer publishes weights. `announcement` is posted once they can be had. Error: a
  /// protocol violation.
  Status announce(const actors::WeightsHandle& handle, Event announcement);
  Status add(const actors::WeightsChunk& chunk);
  /// An engine asks for the rest of what it stages, because no other worker sends it. Error: a
  /// protocol violation.
  Status fetch(ActorId actor, const actors::FetchWeights& request);

  /// A worker that can pass weights on, if it has an address, is this actor now.
  void join_relays(ActorId actor, const actors::RelayAddress& address) {
    relays_.join(actor, address);
  }
  /// Whether the actor is a trainer whose worker sends its images to the engines.
  bool serves_weights(ActorId actor) const;
  /// The actor feeds no other, and no other feeds it.
  void leave_relays(ActorId actor);
  /// Published weights are void: the run rolls back.
  void forget();

 private:
  std::optional<actors::StageWeights> stage_message(const command::StageWeights& c,
                                                    const actors::WeightsHandle& handle);
  void tell_feeders(const std::vector<RelayOrder::Feed>& feeds);
  struct NeededImage {
    ActorId actor;
    PolicyVersion version;
    std::uint64_t offset = 0;  ///< Of the first chunk that the actor lacks.
  };
  /// False: the image is on its way here.
  bool send_image(const NeededImage& needed);

  RunCore& core_;
  ActorLinks& links_;
  const WeightsBy by_;
  const std::filesystem::path folder_;
  const Log log_;
  WeightStore weights_;
  RelayOrder relays_;
  std::vector<NeededImage> images_;  ///< To be sent.
};

}  // namespace temper::orchestrator
