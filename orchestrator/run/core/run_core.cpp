#include "orchestrator/run/core/run_core.hpp"

#include "orchestrator/scheduler/scheduler.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::orchestrator {

RunCore::RunCore(RunCoreOptions options, Driver& driver, RunObserver observer, const Log& log)
    : options_(std::move(options)),
      driver_(driver),
      observer_(std::move(observer)),
      log_(log),
      events_(EventLog::unwritten()),
      scheduler_(std::make_unique<Scheduler>()) {}

RunCore::~RunCore() = default;

const RunState& RunCore::state() const {
  return scheduler_->state();
}

std::optional<Time> RunCore::next_deadline() const {
  return scheduler_->next_deadline();
}

bool RunCore::wants_to_know_that_loads(ActorId actor) const {
  return scheduler_->wants_to_know_that_loads(actor, now());
}

void RunCore::tick() const {
  if (observer_.on_tick)
    observer_.on_tick({state(), scheduler_->phase(), now()});
}

// --- Begin and resume

Status RunCore::open() {
  if (options_.resume)
    return open_resumed();
  if (options_.log.empty())
    return {};
  TEMPER_TRY(events_, EventLog::create(options_.log, options_.writing));
  return {};
}

Status RunCore::open_resumed() {
  HistoryReader reader(options_.checkpoints.folder());
  TEMPER_TRY(const LogSummary summary,
             scan_event_log(options_.log, [&](const Record& record, const LogPosition& behind) {
               reader.feed(record, behind);
               if (observer_.on_record)
                 observer_.on_record(record);
               return Status();
             }));
  options_.checkpoints.set_history(reader.history());
  TEMPER_TRY(events_, EventLog::reopen(options_.log, summary, options_.writing));
  TEMPER_TRY(std::vector<ResponseId> lost, return_to_checkpoint());
  resumed_ = reader.resumed(checkpoint_sequence_, options_.config, options_.changes);
  resumed_.lost = std::move(lost);
  return {};
}

void RunCore::begin() {
  if (options_.resume)
    post(resumed_);
  else
    post(event::Started{options_.config});
}

// --- Events

void RunCore::post(Event event) {
  queue_.push_back(std::move(event));
  process();
}

void RunCore::process() {
  if (delivering_)
    return;
  delivering_ = true;
  while (!queue_.empty()) {
    Event event = std::move(queue_.front());
    queue_.pop_front();
    deliver(std::move(event));
  }
  delivering_ = false;
  driver_.on_settled();
}

void RunCore::deliver(Event event) {
  // After the end, only the last activity of actors is of interest.
  if (outcome_ && !std::holds_alternative<event::Activity>(event))
    return;
  Record record{events_.next_sequence(), now(), std::move(event), {}};
  record.commands = scheduler_->on(record.event, record.time);
  Status status = events_.append(record);
  if (status && std::holds_alternative<event::Resumed>(record.event))
    status = events_.sync();
  if (!status)
    return abort_unrecorded(std::move(record), status.error().context);
  if (const auto* saved = std::get_if<event::CheckpointSaved>(&record.event);
      saved != nullptr && saved->error.empty())
    complete_checkpoint(record.sequence, saved->version);
  if (observer_.on_record)
    observer_.on_record(record);
  for (const Command& command : record.commands)
    execute(command);
}

void RunCore::complete_checkpoint(std::uint64_t sequence, PolicyVersion version) {
  CheckpointKeeper& checkpoints = options_.checkpoints;
  if (!checkpoints.keeps_any())
    return;
  const Status status =
      checkpoints.complete({sequence, version, scheduler_->snapshot(), driver_.payloads()},
                           events_,
                           state().evaluation.version());
  if (!status)
    return fail(status.error().context);
  checkpoint_sequence_ = sequence;
  rollbacks_ = 0;
}

/// The log cannot be written: the observers alone learn how the run ends.
void RunCore::abort_unrecorded(Record record, const std::string& reason) {
  if (outcome_)
    return;
  queue_.clear();
  const command::Finish finish{false, false, reason_with(ReasonKind::Aborted, reason)};
  record.event = event::Aborted{reason, false};
  record.commands = {finish};
  if (observer_.on_record)
    observer_.on_record(record);
  execute(finish);
}

// --- Commands

void RunCore::execute(const Command& command) {
  if (std::holds_alternative<command::Waiting>(command))
    return;
  if (const auto* evaluated = std::get_if<command::Evaluated>(&command)) {
    if (Status kept = options_.checkpoints.note(*evaluated); !kept)
      fail(kept.error().context);
  } else if (const auto* rollback = std::get_if<command::Rollback>(&command)) {
    roll_back(rollback->reason);
  } else if (const auto* finish = std::get_if<command::Finish>(&command)) {
    if (outcome_)
      return;
    outcome_ = RunOutcome{end_of(*finish, options_.config.actors), now(), 0};
    driver_.on_finish();
  } else {
    driver_.execute(command);
  }
}

void RunCore::roll_back(const Reason& reason) {
  const std::string why = text(reason);
  if (!options_.rolls_back)
    return fail(why);
  log_.warning("rolling back to the last checkpoint", {{"why", why}});
  queue_.clear();
  driver_.end_actors();
  auto lost = return_to_checkpoint();
  if (!lost)
    return fail(fmt::format("{}; the rollback failed: {}", why, lost.error().context));
  queue_.push_back(
      event::Resumed{.sequence = checkpoint_sequence_, .rollbacks = ++rollbacks_, .lost = *lost});
  if (stop_requests_ > 0)
    queue_.push_back(event::StopRequested{});  // the user's request outlives the rollback
}

Result<std::vector<ResponseId>> RunCore::return_to_checkpoint() {
  TEMPER_TRY(Checkpoint checkpoint, options_.checkpoints.roll_back(log_));
  TEMPER_TRY(*scheduler_, Scheduler::restored(options_.config, checkpoint.state.scheduler));
  checkpoint_sequence_ = checkpoint.state.sequence;
  return driver_.restore(std::move(checkpoint));
}

// --- Validation

Status RunCore::validate(ActorId sender, std::uint32_t tag) const {
  if (scheduler_->may_say(sender, tag))
    return {};
  return invalid_input(fmt::format("not for an actor of role {} that is {}",
                                   name_of(state().fleet.spec(sender).role),
                                   name_of(scheduler_->stage_of(sender))));
}

Status RunCore::validate(const Event& said) const {
  if (auto violation = scheduler_->find_invalid_claim(said, now()))
    return invalid_input(std::move(violation->what));
  return {};
}

// --- The end

void RunCore::request_stop() {
  if (++stop_requests_ == 1) {
    log_.info("stopping after this step and a checkpoint; repeat the signal to stop at once");
    return post(event::StopRequested{});
  }
  fail(options_.checkpoints.keeps_folder()
           ? "stopped at once, on request; --resume continues from the last checkpoint"
           : "stopped at once, on request");
}

void RunCore::fail(std::string reason) {
  if (outcome_)
    return;
  const bool stopped = stop_requests_ > 0;
  if (!scheduler_->finished())
    return post(event::Aborted{std::move(reason), stopped});
  // A scheduler that has asked for a rollback, or for the end, gives no more commands.
  outcome_ = RunOutcome{{false, stopped, std::move(reason)}, now(), 0};
  driver_.on_finish();
}

RunOutcome RunCore::close() {
  if (Status status = events_.sync(); !status && outcome_->finish.ok)
    outcome_->finish = {false, false, status.error().context};
  outcome_->log_hash = events_.hash();
  return *outcome_;
}

}  // namespace temper::orchestrator
