#include "study/machine/run_calibration.hpp"

#include "actors/runtime/process.hpp"
#include "core/statistics.hpp"
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "orchestrator/scheduler/state/config.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace temper::study {
namespace {

using actors::CardState;
using actors::SwitchAction;

double ratio(double a, double b) {
  return b > 0 ? a / b : 0;
}

double mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values)
    sum += value;
  return ratio(sum, static_cast<double>(values.size()));
}

}  // namespace

void RunRecord::feed(const orchestrator::Record& record) {
  note_time(record);
  if (const auto* actors = orchestrator::actors_in(record.event))
    actors_ = *actors;
  if (const auto* started = std::get_if<orchestrator::event::Started>(&record.event)) {
    per_group_ = static_cast<std::uint64_t>(std::max(1, started->config->responses_per_group));
    per_evaluated_group_ =
        static_cast<std::uint64_t>(std::max(1, started->config->evaluation.samples));
  }
  if (const auto* generated = std::get_if<orchestrator::event::Generated>(&record.event))
    note(*generated);
  if (const auto* activity = std::get_if<orchestrator::event::Activity>(&record.event))
    note(*activity);
  for (const orchestrator::Command& command : record.commands) {
    if (const auto* train = std::get_if<orchestrator::command::Train>(&command))
      note(*train, record.time);
    if (const auto* stage = std::get_if<orchestrator::command::StageWeights>(&command))
      staging_[stage->actor] = record.time;
    if (std::holds_alternative<orchestrator::command::SaveCheckpoint>(command))
      save_asked_ = record.time;
  }
}

void RunRecord::note_time(const orchestrator::Record& record) {
  if (saved_)
    checkpoint_us_.push_back(micro(record.time - *std::exchange(saved_, {})));
  if (std::holds_alternative<orchestrator::event::ActorReady>(record.event))
    ready_us_.push_back(micro(record.time.time_since_epoch()));
  if (const auto* staged = std::get_if<orchestrator::event::WeightsStaged>(&record.event)) {
    if (const auto asked = staging_.find(staged->actor); asked != staging_.end())
      stage_us_.push_back(micro(record.time - asked->second));
  }
  if (const auto* switched = std::get_if<orchestrator::event::Switched>(&record.event))
    switches_us_[switched->action].push_back(micro(switched->cost.duration));
  if (std::holds_alternative<orchestrator::event::CheckpointSaved>(record.event)) {
    if (save_asked_)
      save_us_.push_back(micro(record.time - *save_asked_));
    saved_ = record.time;
  }
}

void RunRecord::note(const orchestrator::event::Generated& e) {
  for (const auto& item : e.items) {
    // Each evaluation generates the same ids.
    if (finished_.erase(item.response) > 0)
      so_far_.erase(item.response);
    const std::int64_t tokens = so_far_[item.response] += item.tokens.count();
    generated_ += static_cast<double>(item.tokens.count());
    if (prompts_.emplace(group_of(item.response), item.prompt.count()).second) {
      known_prompts_.push_back(item.prompt.count());
      prompt_rows_ += static_cast<double>(item.prompt.count() - 1);
    }
    if (item.finish == actors::FinishReason::Interrupted || tokens == 0)
      continue;
    finished_[item.response] = tokens;
    known_responses_.push_back(tokens);
    responses_ += 1;
  }
}

void RunRecord::note(const orchestrator::event::Activity& e) {
  const bool trainer = e.actor.value() < actors_.size() &&
                       actors_[e.actor.value()].role == actors::RoleKind::Trainer;
  for (const actors::Span& span : e.spans) {
    spans_[span.state] += seconds(span.end - span.begin);
    if (span.state == CardState::Train && train_asked_ && span.begin >= *train_asked_)
      to_train_us_.push_back(micro(span.begin - *train_asked_));
    if (span.state == CardState::WeightSync && trainer)
      export_us_.push_back(micro(span.end - span.begin));
  }
}

void RunRecord::note(const orchestrator::command::Train& c, Time now) {
  train_asked_ = now;
  batch_ = static_cast<double>(c.responses.size());
  for (const ResponseId r : c.responses)
    update_rows_ += static_cast<double>(so_far_[r] - 1);
  for (const auto& entry : c.certificate.groups)
    update_rows_ += static_cast<double>(prompt(entry.group).count());
}

GroupId RunRecord::group_of(ResponseId response) const {
  return GroupId(response.value() /
                 (orchestrator::is_evaluation(response) ? per_evaluated_group_ : per_group_));
}

Tokens RunRecord::prompt(GroupId group) const {
  const auto found = prompts_.find(group);
  return Tokens(found != prompts_.end() ? found->second
                                        : known_prompts_[group.value() % known_prompts_.size()]);
}

Tokens RunRecord::response(ResponseId response) const {
  const auto found = finished_.find(response);
  return Tokens(found != finished_.end()
                    ? found->second
                    : known_responses_[response.value() % known_responses_.size()]);
}

MachineModel RunRecord::calibration(const orchestrator::PipelineConfig& config) const {
  MachineModel c;
  c.config = config.name;
  c.model = config.model;
  c.cores = std::max<std::int32_t>(config.placement.cards,
                                   static_cast<std::int32_t>(actors::usable_cores().size()));
  const auto us = [&](CardState state, double work) {
    const auto found = spans_.find(state);
    return found == spans_.end() ? 0 : ratio(found->second * 1e6, work);
  };
  for (const orchestrator::ActorSpec& slot : actors_) {
    const auto threads = static_cast<std::int32_t>(std::max<std::size_t>(1, slot.cards.size()));
    if (slot.role == actors::RoleKind::Reward)
      continue;
    auto engine = std::ranges::find(c.engines, threads, &EngineTimes::threads);
    if (engine == c.engines.end()) {
      c.engines.emplace_back().threads = threads;
      engine = std::prev(c.engines.end());
    }
    if (slot.role == actors::RoleKind::Rollout) {
      engine->decode = {{1, us(CardState::Decode, generated_), 0}};
      // Each turn of an agent computes its context again, of which the record knows only the sum.
      const double turns = config.rollout.agent.command.empty() ? 0 : generated_;
      engine->prefill.row_us = us(CardState::Prefill, prompt_rows_ + turns);
    }
    if (slot.role == actors::RoleKind::Trainer)
      engine->update.row_us = us(CardState::Train, update_rows_);
    if (slot.role == actors::RoleKind::Reference)
      engine->reference.row_us = us(CardState::Reference, update_rows_);
  }
  c.reward.response_us = us(CardState::Reward, responses_);
  c.weights = {median(export_us_), median(stage_us_), 0, mean(save_us_)};
  const auto action = [&](SwitchAction a) {
    const auto found = switches_us_.find(a);
    return found == switches_us_.end() ? 0 : mean(found->second);
  };
  c.switches = {action(SwitchAction::Interrupt),
                action(SwitchAction::FreeKv),
                action(SwitchAction::FreeWeights),
                action(SwitchAction::AllocateKv),
                action(SwitchAction::OffloadOptimizer),
                action(SwitchAction::OnloadOptimizer),
                action(SwitchAction::OnloadReference)};
  const MessageTimes message{0, ratio(median(to_train_us_), 2 * batch_)};
  ProcessTimes& p = c.processes;
  p.orchestrator = p.rollout = p.reference = p.reward = p.trainer = message;
  // All start together and share the cores.
  p.start_us = mean(ready_us_) *
               static_cast<double>(
                   std::min<std::size_t>(static_cast<std::size_t>(c.cores), actors_.size())) /
               static_cast<double>(std::max<std::size_t>(1, actors_.size()));
  p.checkpoint_us = mean(checkpoint_us_);
  c.response.kind = actors::LengthKind::Constant;
  c.response.mean = std::max(1.0, ratio(generated_, responses_));
  c.response.cap = config.sampling.max_new_tokens;
  return c;
}

Result<RunRecord> read_run_record(const std::filesystem::path& run) {
  if (!std::filesystem::exists(run / "config.yaml") ||
      !std::filesystem::exists(run / "events.log")) {
    return invalid_input(
        fmt::format("{}: not a run folder: config.yaml or events.log is missing", run.string()));
  }
  RunRecord out;
  const auto read =
      orchestrator::read_event_log(run / "events.log", [&](const orchestrator::Record& record) {
        out.feed(record);
        return Status();
      });
  if (!read)
    return read.error();
  if (!out.has_lengths())
    return invalid_input(run.string() +
                         ": the run generated nothing; expected at least one response");
  return out;
}

void scale(MachineModel& calibration, const std::map<CardState, double>& factors) {
  const auto by = [&](CardState state) {
    const auto found = factors.find(state);
    return found == factors.end() ? 1.0 : found->second;
  };
  for (EngineTimes& engine : calibration.engines) {
    for (DecodeTimes& point : engine.decode) {
      point.step_us *= by(CardState::Decode);
      point.context_ns *= by(CardState::Decode);
    }
    PrefillTimes& p = engine.prefill;
    for (double* us : {&p.step_us, &p.row_us, &p.copy_us, &p.touch_us})
      *us *= by(CardState::Prefill);
    UpdateTimes& u = engine.update;
    for (double* us :
         {&u.update_us, &u.minibatch_us, &u.row_us, &u.token_us, &u.first_us, &u.resumed_us})
      *us *= by(CardState::Train);
    ReferenceTimes& r = engine.reference;
    for (double* us : {&r.pass_us, &r.row_us, &r.first_us})
      *us *= by(CardState::Reference);
  }
  calibration.reward.call_us *= by(CardState::Reward);
  calibration.reward.response_us *= by(CardState::Reward);
}

}  // namespace temper::study
