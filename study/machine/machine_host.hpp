// Hosts the actors of a forecast run: in this process, in virtual time, on the cores of the machine
// that a calibration describes. It models with sim_hw/cores what `temper run` does with processes
// and the operating system: every process has its threads on the cores of its cards, the
// orchestrator is a process too, and all of them share the CPU time of the same cores.
//
// A process. Its main thread does one thing at a time: it reads a received message, or else runs
// its actor's next task (machine_actor.hpp); it writes outgoing messages first. Reading and writing
// take the calibrated time of a message and of the responses in it, and a message is in transit for
// a `hop`. The orchestrator reads a message, passes it to the driver, and writes the resulting
// commands in order before it reads the next one. It may use any core, but a woken process stays
// where it was woken: it runs on the (first) core of the sender of its message, even if other cores
// are idle.
//
// Unlike with other hosts, an actor may send messages when another one is advanced. next_event()
// therefore returns the next instant at which anything happens, for every actor.
#pragma once

#include "orchestrator/run/virtual/actor_host.hpp"
#include "sim_hw/cores/shared_cores.hpp"
#include "study/machine/machine_actor.hpp"

#include <map>

namespace temper::study {

class MachineHost final : public orchestrator::ActorHost {
 public:
  /// Requires: make_machine_actor() succeeds for every slot; slots use existing cores.
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
    ActorId actor;  ///< Sender or receiver.
    actors::IncomingMessage message;
    std::size_t responses = 0;
  };
  struct Process;
  struct Thread {
    Process* process = nullptr;
    std::function<void()> then;
  };
  enum class ThreadKind { Main, Second };

  void advance_to(Time now);
  void start(Process& process,
             ThreadKind kind,
             const MachineTask& task,
             std::function<void()> then);
  void run_threads();
  void continue_actor(Process& process);
  void continue_orchestrator();
  void send(Process& process, actors::OutgoingMessage message);
  MachineTask handling(const MessageTimes& times, std::size_t responses) const;

  // Constant after construction.
  std::unique_ptr<MachineWorld> world_;
  const std::vector<orchestrator::ActorSpec> slots_;

  // Mutable state.
  sim_hw::SharedCores cores_;
  std::map<sim_hw::SharedCores::JobId, std::pair<Thread, ThreadKind>> threads_;
  std::vector<std::unique_ptr<Process>> processes_;  ///< Actors by id.
  std::unique_ptr<Process> orchestrator_;
  Timers under_way_;  ///< Messages between processes.
  std::vector<Arrival> arrivals_;
  Status status_;
};

}  // namespace temper::study
