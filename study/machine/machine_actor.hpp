// An actor of a run on this machine, as a program that uses the machine: what it does next and for
// how long, from a calibration. It has no clock and no cores: machine_host.hpp lets it have its
// turns.
#pragma once

#include "actors/roles/activity_log.hpp"
#include "actors/runtime/role.hpp"
#include "core/clock.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "study/machine/calibration.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>

namespace temper::study {

/// Something that one thread of an actor, or a team of them, does in one go.
struct MachineTask {
  double seconds = 0;
  double slowdown = 1;
  enum class Threads { One, Team } threads = Threads::One;
  /// What comes of it, at its end.
  std::function<void(actors::Outbox&)> done;
};

/// What actors share: the run they are of.
struct MachineWorld {
  orchestrator::PipelineConfig config;
  MachineModel calibration;
  /// The prompt's length of a group, by its number.
  std::function<Tokens(GroupId)> prompt_length;
  /// The length of a response that is generated to its end.
  std::function<Tokens(ResponseId, GroupId)> response_length;
  ManualClock clock;
};

class MachineActor {
 public:
  explicit MachineActor(const MachineWorld& world) : world_(world), activity_(world.clock) {}
  virtual ~MachineActor() = default;

  /// Once, when the process is up.
  virtual void start(actors::Outbox&) {}
  /// A message that it has read. Error: one that it does not know.
  virtual Status on_message(const actors::IncomingMessage& message, actors::Outbox& out) = 0;
  /// What the main thread does now; none: it waits for messages.
  virtual std::optional<MachineTask> next() { return std::nullopt; }
  /// The next task of a second thread beside the first.
  virtual std::optional<MachineTask> next_beside() { return std::nullopt; }
  /// Reports what it was busy with, now and then or at once.
  void report(actors::Outbox& out) { activity_.report(out); }
  void flush(actors::Outbox& out) { activity_.flush(out); }

 protected:
  /// A task whose time is shown on the cards.
  MachineTask shown(actors::CardState state,
                    MachineTask task,
                    std::function<void(actors::Outbox&)> done) {
    task.done =
        [this, state, begin = activity_.now(), done = std::move(done)](actors::Outbox& out) {
          activity_.add(state, begin);
          done(out);
        };
    return task;
  }

  const MachineWorld& world_;
  actors::ActivityLog activity_;
};

/// Requires: the calibration has engines with as many threads as the slot has cards.
std::unique_ptr<MachineActor> make_machine_actor(const MachineWorld& world,
                                                 const orchestrator::ActorSpec& slot);

}  // namespace temper::study
