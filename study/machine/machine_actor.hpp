// An actor of a local run as a user of the machine: its next task and the duration of that task,
// from a calibration. It has no clock and no cores; machine_host.hpp schedules it.
#pragma once

#include "actors/roles/activity_log.hpp"
#include "actors/runtime/role.hpp"
#include "actors/simulation/tool_calls.hpp"
#include "core/clock.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/scheduler/state/actor_spec.hpp"
#include "study/machine/calibration.hpp"

#include <deque>
#include <functional>
#include <memory>
#include <optional>

namespace temper::study {

/// Uninterrupted work of one thread of an actor, or of a team of threads.
struct MachineTask {
  double seconds = 0;
  double slowdown = 1;
  enum class Threads { One, Team } threads = Threads::One;
  /// Called at the end of the task.
  std::function<void(actors::Outbox&)> done;
};

/// State that all actors of a run share.
struct MachineWorld {
  orchestrator::PipelineConfig config;
  MachineModel calibration;
  /// Prompt length of a group, by its number.
  std::function<Tokens(GroupId)> prompt_length;
  /// Length of a response that is generated to its end.
  std::function<Tokens(ResponseId, GroupId)> response_length;
  /// Those of an agent; nullopt: every response has one turn.
  std::optional<actors::ToolCalls> tools;
  ManualClock clock;
};

class MachineActor {
 public:
  explicit MachineActor(const MachineWorld& world) : world_(world), activity_(world.clock) {}
  virtual ~MachineActor() = default;

  /// Called once, when the process has started.
  virtual void start(actors::Outbox&) {}
  /// Handles a message. Error: an unknown message.
  virtual Status on_message(const actors::IncomingMessage& message, actors::Outbox& out) = 0;
  /// The next task of the main thread; nullopt: it waits for messages.
  virtual std::optional<MachineTask> next() { return std::nullopt; }
  /// The next task of a second thread that runs concurrently.
  virtual std::optional<MachineTask> next_second() { return std::nullopt; }
  /// When next() may have a task although nothing has happened before.
  virtual std::optional<Time> wakes() const { return std::nullopt; }
  /// Reports activity, throttled (report) or immediately (flush).
  void report(actors::Outbox& out) { activity_.report(out); }
  void flush(actors::Outbox& out) {
    show_wait();
    activity_.flush(out);
  }

 protected:
  /// Shows the time of a wait so far as activity.
  virtual void show_wait() {}
  /// A task whose time appears in the state of the cards.
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
