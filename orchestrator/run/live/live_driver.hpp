// The live driver: wall clock, real processes over ZeroMQ. It turns messages, exits and timers into
// events for the scheduler, records every event, and carries out what the scheduler commands. It
// decides nothing about the run.
//
// One thread runs everything here, in one Asio loop. Whatever goes wrong ends in one of three ways:
// an event (an actor was lost), a rollback to the last checkpoint, or the end of the run with a
// reason.
#pragma once

#include "actors/asio/router.hpp"
#include "actors/transport/message.hpp"
#include "core/clock.hpp"
#include "orchestrator/pipeline/resolve.hpp"
#include "orchestrator/record/event_log.hpp"
#include "orchestrator/run/best_checkpoint.hpp"
#include "orchestrator/run/live/card_memory.hpp"
#include "orchestrator/run/live/fault_player.hpp"
#include "orchestrator/run/live/payload_events.hpp"
#include "orchestrator/run/processes/connections.hpp"
#include "orchestrator/run/processes/launch.hpp"
#include "orchestrator/run/processes/worker_source.hpp"
#include "orchestrator/run/relay_order.hpp"
#include "orchestrator/run/role_configs.hpp"
#include "orchestrator/run/run_dir.hpp"
#include "orchestrator/run/run_outcome.hpp"
#include "orchestrator/run/scale_request.hpp"
#include "orchestrator/run/way_back.hpp"
#include "orchestrator/run/weight_store.hpp"
#include "orchestrator/scheduler/scheduler.hpp"

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <string>

namespace temper::orchestrator {

struct LiveOptions {
  ResolvedPipeline pipeline;
  std::filesystem::path run_dir;
  std::filesystem::path worker;        ///< The program that runs an actor.
  std::filesystem::path base;          ///< Model folder; empty for `policy: synthetic`.
  std::vector<std::uint32_t> cores{};  ///< Which its cards are, in their order; empty: from 0 on.
  bool resume = false;
  std::vector<SettingChange> changes{};  ///< Of the settings, where it is resumed.
  /// Whether this machine can hold so many actors, before there are more of them; null: it can.
  std::function<Status(const ResolvedPipeline&)> provide{};
};

class LiveDriver {
 public:
  using Observer = RunObserver;

  /// Requires: of a run to be resumed, prepare_resume() has seen to the folder. Errors: the run
  /// folder or the socket cannot be made, no checkpoint can be gone back to.
  static Result<std::unique_ptr<LiveDriver>> create(LiveOptions options,
                                                    Observer observer,
                                                    const Log& log);
  ~LiveDriver();

  /// Runs until the scheduler finishes and every actor has ended.
  RunOutcome run();

 private:
  struct Loop;  ///< Asio's objects.
  LiveDriver(LiveOptions options,
             Observer observer,
             Handout handout,
             std::optional<KeyRing> ring,
             const Log& log);
  Status open();
  Status open_resumed();
  Status bind_socket();
  Status find_workers();

  // Events.
  void post(Event event);
  void process_events();
  void deliver(const Event& event);
  void arm_deadline();
  void on_tick();
  void on_signal(int number);

  // Messages.
  void on_message(const actors::PeerId& peer, const actors::IncomingMessage& message);
  void on_broken(const actors::PeerId& peer, const std::string& why);
  void on_hello(const actors::PeerId& peer,
                const std::string& user,
                const actors::IncomingMessage& message);
  actors::Welcome welcome_for(ActorId actor) const;
  void refuse(const actors::PeerId& peer, const actors::Hello& hello, const Error& why);
  Status on_actor_message(ActorId actor, const actors::IncomingMessage& message);
  Status on_plain(ActorId actor, Event said);
  Status on_weights(const actors::WeightsHandle& handle, Event announcement);
  Status on_fetch(ActorId actor, const actors::FetchWeights& what);
  template <class M>
  Status on_work(ActorId actor, M message);
  template <class M, class E>
  Status on_told(const Sender& sender, M message, CheckedAnswer<E> told);
  void screen(const Sender& sender,
              actors::Generated& message,
              CheckedAnswer<event::Generated>& told) const;
  void fit_spans(event::Activity& said) const;
  void read_clocks();
  void read_clock(ActorId actor);
  Status start_problem(const command::Dispatch& c);
  Status believe(const Event& said) const;
  void note_memory(ActorId actor, Bytes resident);
  void on_lie(ActorId actor, const actors::IncomingMessage& message, const std::string& what);
  template <class M>
  void send(ActorId actor, const M& message) {
    send_message(actor, actors::outgoing(message));
  }
  void send_message(ActorId actor, actors::OutgoingMessage message);

  // Failures that are planned.
  Status plan_faults();
  bool is_cut(ActorId actor) const { return faults_ != nullptr && faults_->is_cut(actor); }
  void mend_link(ActorId actor);

  // Workers.
  bool is_attached(ActorId actor) const;
  WorkerSource& source_of(ActorId actor);
  void dismiss(ActorId actor);
  bool may_be_silent(ActorId actor) const;
  void on_end(ActorId actor, WorkerEnd end);
  void lose(ActorId actor, const WorkerEnd& end);
  void end_if_none_left();
  void send_images();
  void leave_relays(ActorId actor);
  void tell_feeders(const std::vector<RelayOrder::Feed>& feeds);
  std::optional<actors::StageWeights> stage_by(const command::StageWeights& c,
                                               const actors::WeightsHandle& handle);

  // Another number of actors.
  void look_for_requests(Time now);
  Result<PipelineConfig> scaled_config(const ScaleRequest& request) const;
  Result<std::vector<SettingChange>> scale(const ScaleRequest& request);
  void take_actors(const std::vector<ActorSpec>& wanted);
  void end_overdue(Time now);

  // Commands.
  void execute(const command::Launch& c);
  void execute(const command::Discard& c);
  void execute(const command::Dispatch& c);
  void execute(const command::Cancel& c);
  void execute(const command::Withdraw& c);
  void execute(const command::ScoreReference& c);
  void execute(const command::Judge& c);
  void execute(const command::Train& c);
  void execute(const command::Prepare& c);
  void execute(const command::StageWeights& c);
  void execute(const command::CommitWeights& c);
  void execute(const command::Switch& c);
  void execute(const command::SaveCheckpoint& c);
  void execute(const command::Release& c);
  void execute(const command::Evaluated& c);
  void execute(const command::Waiting&) {}
  void execute(const command::Retire& c);
  void execute(const command::Rollback& c);
  void execute(const command::Finish& c);

  void complete_checkpoint(PolicyVersion version);
  void fail(std::string reason);
  /// A reason in words.
  std::string text(const std::optional<Reason>& reason) const {
    return sentence(reason, scheduler_config_.actors);
  }
  void abort_unrecorded(Record record, const std::string& reason);
  void shut_down();
  Status return_to_checkpoint();

  const LiveOptions options_;
  const Observer observer_;
  const Log log_;
  PipelineConfig config_;             ///< As config.yaml has it by now.
  SchedulerConfig scheduler_config_;  ///< With the actors that there are by now.
  const RunDir run_dir_;
  Handout handout_;
  actors::Tokenizer tokenizer_;
  const actors::ResponseLimits limits_;

  std::unique_ptr<RealClock> clock_;
  std::unique_ptr<actors::PromptSource> prompts_;
  std::unique_ptr<actors::PromptSource> problems_;  ///< Of evaluations; null: there are none.
  std::unique_ptr<EventLog> events_;
  std::unique_ptr<Loop> loop_;
  std::unique_ptr<actors::AsioRouter> router_;
  std::unique_ptr<FaultPlayer> faults_;  ///< Null: nothing is planned.

  /// What a worker whose link is cut said, and what was said to it.
  struct CutOff {
    actors::PeerId worker;
    std::deque<actors::IncomingMessage> from;
    std::deque<actors::OutgoingMessage> to;
  };
  CutOff& cut_off(ActorId actor, const actors::PeerId& worker);
  std::map<ActorId, CutOff> cut_off_;

  Scheduler scheduler_;
  Connections connections_;
  std::optional<KeyRing> ring_;  ///< Where workers attach; from find_workers() on it is theirs.
  std::unique_ptr<LaunchedWorkers> launched_;
  std::unique_ptr<AttachedWorkers> attached_;  ///< Null: this run starts all its workers.
  PayloadStore payloads_;
  PayloadStore evaluated_;  ///< Of the evaluation under way.
  BestCheckpoint best_;
  WeightStore weights_;
  RelayOrder relays_;
  Time bound_logs_at_{};
  std::vector<command::StageWeights> images_;  ///< To be sent once all commands are carried out.
  CardMemory card_memory_;
  StartingPoint start_;
  std::map<ActorId, Time> ending_;  ///< Told to end, and until when they may take.
  Time looked_for_requests_{};
  std::vector<actors::ClockReading> clocks_;  ///< By actor, as recorded; attached ones have any.
  std::deque<Event> queue_;
  bool processing_ = false;
  std::uint64_t last_sequence_ = 0;        ///< Of the record just written.
  event::Resumed resumed_;                 ///< What a run that is resumed begins with.
  std::uint64_t checkpoint_sequence_ = 0;  ///< Where a rollback goes back to.
  History history_;                        ///< Of the checkpoints that may be gone back to.
  std::int32_t rollbacks_ = 0;
  std::optional<RunOutcome> outcome_;
  std::int32_t signals_ = 0;
  bool out_of_time_ = false;  ///< By the last of them.
};

}  // namespace temper::orchestrator
