// The trainer actor: takes one step per request, after checking the certificate of the batch, and
// computes gradients of its groups in advance if requested; publishes each new version, saves its
// state, and offloads its optimizer on a role switch.
#pragma once

#include "actors/protocol/weights.hpp"
#include "actors/protocol/work.hpp"
#include "actors/roles/activity_log.hpp"
#include "actors/shared_memory/shared_buffer.hpp"
#include "trainer/engine.hpp"

#include <deque>
#include <memory>

namespace temper::trainer {

enum class Publication { SharedMemory, Chunks };

class TrainerRole final : public actors::Role {
 public:
  /// `version`: current version of the engine's weights.
  TrainerRole(std::unique_ptr<Engine> engine,
              PolicyVersion version,
              Publication publication,
              const Clock& clock)
      : engine_(std::move(engine)),
        publication_(publication),
        version_(version),
        activity_(clock) {}

  Status start(actors::Outbox& out) override;
  Status on_message(const actors::IncomingMessage& message, actors::Outbox& out) override;
  Result<Work> work(actors::Outbox& out) override;
  Status stop(actors::Outbox& out) override;

 private:
  Status train(actors::Train work, actors::Outbox& out);
  Status prepare(actors::Prepare work, actors::Outbox& out);
  void save(const actors::SaveState& work, actors::Outbox& out);
  void switch_role(const actors::Switch& work, actors::Outbox& out);
  /// Sends `announcement(handle)`, then the weights if they travel as chunks.
  template <class Announcement>
  Status publish(Announcement announcement, actors::Outbox& out);

  std::unique_ptr<Engine> engine_;
  const Publication publication_;
  PolicyVersion version_;
  actors::ActivityLog activity_;
  std::deque<actors::SharedBuffer> published_;  ///< Newest last; readers may lag behind.
};

/// Checks a batch before its step: the certificate is for `version`; every group in it is there
/// once, within the bound, and in the batch; every response belongs to one of them and began no
/// earlier than the certificate says and no later than `version`. Error InvalidInput: names the
/// first violation.
Status check_certificate(const actors::Train& work, PolicyVersion version);

}  // namespace temper::trainer
