// Where the actors of a run on this machine live when the run is forecast: in this process, in
// virtual time, on the cores of the machine that a calibration describes. What `temper run` does
// with processes and the operating system, this does with sim_hw/cores: every process has its
// threads on the cores of its cards, the orchestrator is a process like the others, and all of them
// take CPU time of the same cores.
//
// A process. Its main thread does one thing at a time: it reads a message that has come, else does
// what its actor wants next (machine_actor.hpp); what it sends it writes first. Reading and writing
// take the time that the calibration has for a message and the responses in it, and a message is
// under way for a `hop`. The orchestrator reads a message, hands it to the driver, and writes the
// commands that come of it, in their order, before it reads the next. It may use any core, but a
// process that is woken stays where it was woken: it works on the (first) core of the one whose
// message it reads, be others idle or not.
//
// Differences from the other hosts: an actor says things at times when another was advanced, so
// that next_event() is the next instant at which anything happens, whoever is asked.
#pragma once

#include "orchestrator/run/virtual/actor_host.hpp"
#include "sim_hw/cores/shared_cores.hpp"
#include "study/machine/machine_actor.hpp"

#include <map>

namespace temper::study {

class MachineHost final : public orchestrator::ActorHost {
 public:
  /// Requires: make_machine_actor() can be called for every slot; slots use cores that there are.
  MachineHost(std::unique_ptr<MachineWorld> world, std::vector<orchestrator::ActorSpec> slots);
  ~MachineHost() override;

  actors::Outbox::Form form() const override { return actors::Outbox::Form::Value; }
  Status launch(ActorId actor, const actors::RoleConfig& role) override;
  void deliver(ActorId actor, actors::OutgoingMessage message) override;
  Status advance(std::span<const ActorId> actors,
                 Time now,
                 std::vector<Arrival>& arrivals) override;
  std::optional<Time> next_event(ActorId actor) const override;
  void finish(std::span<const ActorId> actors, Time now, std::vector<Arrival>& arrivals) override;

 private:
  struct Letter {
    ActorId actor;  ///< Of or for whom.
    actors::IncomingMessage message;
    std::size_t responses = 0;
  };
  struct Process;
  struct Thread {
    Process* process = nullptr;
    std::function<void()> then;
  };
  enum class Lane { Main, Beside };

  void go_through(Time now);
  void start(Process& process, Lane lane, const MachineTask& task, std::function<void()> then);
  void let_run();
  void continue_actor(Process& process);
  void continue_orchestrator();
  void say(Process& process, actors::OutgoingMessage message);
  MachineTask handling(const MessageTimes& times, std::size_t responses) const;

  // Constant after construction.
  std::unique_ptr<MachineWorld> world_;
  const std::vector<orchestrator::ActorSpec> slots_;

  // Mutable state.
  sim_hw::SharedCores cores_;
  std::map<sim_hw::SharedCores::JobId, std::pair<Thread, Lane>> threads_;
  std::vector<std::unique_ptr<Process>> processes_;  ///< Of actors, by id.
  std::unique_ptr<Process> orchestrator_;
  Timers under_way_;  ///< Messages between processes.
  std::vector<Arrival> arrivals_;
  Status status_;
};

}  // namespace temper::study
