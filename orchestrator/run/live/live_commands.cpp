// The live driver, on what the scheduler commands: work for actors, weights, checkpoints, the end.
#include "actors/protocol/catalog.hpp"
#include "orchestrator/run/live/live_driver.hpp"
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"

#include <fmt/format.h>

#include <utility>

namespace temper::orchestrator {
namespace {

/// About, once packed.
std::size_t bytes_of(const std::vector<actors::Train::Item>& items) {
  std::size_t bytes = 0;
  for (const auto& item : items) {
    bytes += 4 * (item.prompt.size() + item.response.size() + item.logprobs.size() +
                  item.reference.size() + item.rewards.size()) +
             item.mask.size() + 24 * item.segments.size() + 64;
  }
  return bytes;
}

}  // namespace

/// What a response has of an earlier evaluation is forgotten.
Status LiveDriver::start_problem(const command::Dispatch& c) {
  if (!evaluated_.has(c.group)) {
    TEMPER_TRY_STATUS(
        evaluated_.add(c.group, problems_->held_out(problem_of(c.group)), tokenizer_));
  }
  for (const ResponseId r : c.responses) {
    if (scheduler_.table_of(c.lease).row(r)->tokens == Tokens(0))
      evaluated_.response(r) = {};
  }
  return {};
}

void LiveDriver::execute(const command::Dispatch& c) {
  if (is_evaluation(c.lease)) {
    if (Status begun = start_problem(c); !begun)
      return fail(begun.error().context);
    actors::Generate work = evaluated_.generate(c.lease, c.group, c.responses);
    work.greedy = options_.pipeline.config.evaluation.greedy;
    return send(c.actor, work);
  }
  if (!payloads_.has(c.group)) {
    const Status added = payloads_.add(c.group, prompts_->train(c.group.value()), tokenizer_);
    if (!added)
      return fail(added.error().context);
  }
  send(c.actor, payloads_.generate(c.lease, c.group, c.responses));
}

void LiveDriver::execute(const command::Cancel& c) {
  send(c.actor, actors::Cancel{{c.response}});
}

void LiveDriver::execute(const command::Withdraw& c) {
  send(c.actor, actors::Withdraw{c.responses});
}

void LiveDriver::execute(const command::ScoreReference& c) {
  send(c.actor, payloads_.score(c.lease, c.responses));
}

void LiveDriver::execute(const command::Judge& c) {
  const PayloadStore& payloads = is_evaluation(c.lease) ? evaluated_ : payloads_;
  send(c.actor, payloads.judge(c.lease, c.responses));
}

void LiveDriver::execute(const command::Prepare& c) {
  const actors::Prepare groups{c.lease, c.step, payloads_.samples(c.responses)};
  send_message(c.actor, actors::outgoing_large(groups, bytes_of(groups.items)));
}

void LiveDriver::execute(const command::Train& c) {
  const actors::Train batch{c.lease, c.certificate, payloads_.samples(c.responses)};
  const std::size_t bytes = 32 * c.certificate.groups.size() + bytes_of(batch.items);
  send_message(c.actor, actors::outgoing_large(batch, bytes));
}

void LiveDriver::execute(const command::StageWeights& c) {
  const actors::WeightsHandle* handle = weights_.handle(c.version);
  if (handle == nullptr) {
    return post(event::WeightsStaged{c.actor, c.version, "the trainer has not published it"});
  }
  const auto stage = stage_by(c, *handle);
  if (!stage)
    return;
  send(c.actor, *stage);
  if (!stage->sources.empty() || !stage->weights.path.empty())
    return;  // it asks for what it needs
  images_.push_back(c);
}

/// After all that is said beside them: an engine is told whom to feed before its image fills its
/// line, not when it has it.
void LiveDriver::send_images() {
  for (const command::StageWeights& c : std::exchange(images_, {})) {
    for (actors::OutgoingMessage& chunk : weights_.chunks(c.version))
      send_message(c.actor, std::move(chunk));
  }
}

/// What the engine is told; none: the weights cannot be had that way, and the run ends.
std::optional<actors::StageWeights> LiveDriver::stage_by(const command::StageWeights& c,
                                                         const actors::WeightsHandle& handle) {
  actors::StageWeights stage{handle};
  const WeightsBy by = options_.pipeline.config.transport.weights;
  if (!is_attached(c.actor) || weights_.image(c.version) == nullptr)
    return stage;
  if (by == WeightsBy::Folder) {
    auto file = weights_.file(c.version, run_dir_.weights());
    if (!file) {
      fail("weights for the engines: " + file.error().context);
      return std::nullopt;
    }
    stage.weights.path = std::filesystem::absolute(*file).string();
  } else if (by == WeightsBy::Relay && handle.bytes > actors::kChunk) {
    if (auto plan = relays_.plan(c.actor, c.version)) {
      tell_feeders(plan->feeds);
      stage.sources = std::move(plan->sources);
    }
  }
  return stage;
}

void LiveDriver::execute(const command::CommitWeights& c) {
  send(c.actor, actors::CommitWeights{c.version});
}

void LiveDriver::execute(const command::Switch& c) {
  send(c.actor, actors::Switch{c.action});
}

void LiveDriver::execute(const command::SaveCheckpoint& c) {
  const auto folder = run_dir_.checkpoints().begin(c.version);
  if (!folder)
    return post(event::CheckpointSaved{c.version, folder.error().context});
  send(c.trainer, actors::SaveState{c.version, folder->string()});
}

void LiveDriver::execute(const command::Release& c) {
  if (c.outcome != Outcome::Trained) {
    log_.warning("group given up", {{"group", c.group}, {"why", text(c.reason)}});
  }
  if (observer_.on_release && payloads_.has(c.group))
    observer_.on_release({c, payloads_.group(c.group), tokenizer_});
  payloads_.remove(c.group);
}

void LiveDriver::execute(const command::Evaluated& c) {
  if (!scheduler_config_.evaluation.checkpoint)
    return;
  if (Status kept = best_.found(c); !kept)
    fail(kept.error().context);
}

void LiveDriver::complete_checkpoint(PolicyVersion version) {
  CheckpointState state{last_sequence_, version, scheduler_.snapshot(), payloads_.all()};
  const Checkpoints checkpoints = run_dir_.checkpoints();
  const std::int32_t keep = options_.pipeline.config.checkpoint.keep;
  Status status = events_->check_named();
  if (status)
    status = events_->sync();
  if (status)
    status = checkpoints.complete(state, events_->position(), keep);
  if (!status)
    return fail(status.error().context);
  if (scheduler_config_.evaluation.every > 0 && scheduler_config_.evaluation.checkpoint)
    status = best_.saved(
        version, checkpoints.folder_of(version), scheduler_.evaluation().version() == version);
  if (!status)
    return fail(status.error().context);
  history_[state.sequence] = events_->position();
  while (std::cmp_greater(history_.size(), keep))
    history_.erase(history_.begin());
  checkpoint_sequence_ = state.sequence;
  rollbacks_ = 0;
}

void LiveDriver::execute(const command::Rollback& c) {
  log_.warning("going back to the last checkpoint", {{"why", text(c.reason)}});
  queue_.clear();
  ending_.clear();
  // Who waits for its start is not to compute beside those that have begun.
  for (std::uint32_t i = 0; i < scheduler_config_.actors.size(); ++i) {
    dismiss(ActorId(i));
  }
  if (Status status = return_to_checkpoint(); !status) {
    return fail(fmt::format("{}; and no way back: {}", text(c.reason), status.error().context));
  }
  queue_.push_back(event::Resumed{checkpoint_sequence_, ++rollbacks_});
  if (signals_ > 0)
    queue_.push_back(event::StopRequested{});  // what was asked of the run is asked of it still
}

void LiveDriver::execute(const command::Finish& c) {
  if (outcome_)
    return;
  outcome_ = RunOutcome{end_of(c, scheduler_config_.actors), clock_->now(), 0};
  shut_down();
}

Status LiveDriver::return_to_checkpoint() {
  TEMPER_TRY(WayBack way, find_way_back(run_dir_.checkpoints(), history_));
  TEMPER_TRY(const auto aside, clear_way(run_dir_.checkpoints(), way));
  for (const std::string& line : aside)
    log_.warning("a checkpoint is passed over", {{"what", line}});
  CheckpointState state;
  start_.checkpoint.clear();
  if (way.checkpoint) {
    state = std::move(way.checkpoint->state);
    start_.checkpoint = way.checkpoint->folder;
  }
  start_.version = state.version;
  checkpoint_sequence_ = state.sequence;
  history_.erase(history_.upper_bound(checkpoint_sequence_), history_.end());  // void
  best_.went_back(checkpoint_sequence_);
  TEMPER_TRY(scheduler_, Scheduler::restored(scheduler_config_, state.scheduler));
  payloads_.restore(std::move(state.payloads));
  weights_.clear();
  relays_.forget_versions();
  return {};
}

/// The actor is of no use any more: no message of it counts, its process ends.
void LiveDriver::lose(ActorId actor, const WorkerEnd& end) {
  std::string reason = actors::bounded_text(end.reason);
  source_of(actor).forget(actor, reason);
  if (outcome_)
    return;
  queue_.push_back(event::ActorDown{actor, std::move(reason), false, end.permanent});
  process_events();
}

/// The run cannot go on for a reason outside the scheduler (a full disk, a second Ctrl-C).
void LiveDriver::fail(std::string reason) {
  post(event::Aborted{std::move(reason), signals_ > 0});
}

/// The log itself cannot be written: what just happened is not carried out, and the end of the run
/// is known to the observer alone.
void LiveDriver::abort_unrecorded(Record record, const std::string& reason) {
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

}  // namespace temper::orchestrator
