#include "rollout/simulated/rollout_actor.hpp"

#include "actors/simulation/role_clusters.hpp"
#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/weight_moves.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace temper::rollout {

SimulatedRollout::SimulatedRollout(actors::SimulationSettings settings,
                                   std::uint64_t seed,
                                   PolicyVersion first,
                                   OnNewWeights on_new_weights,
                                   std::shared_ptr<actors::Publications> publications)
    : settings_(std::move(settings)),
      seed_(seed),
      on_new_weights_(on_new_weights),
      version_(first),
      publications_(std::move(publications)),
      tensors_(settings_),
      meter_(settings_, settings_.cards, actors::outside_of(settings_, actors::RoleKind::Rollout)) {
}

Status SimulatedRollout::start(Time now, actors::Outbox& out) {
  static_cast<void>(out);
  const actors::SimulationConfig& c = settings_.config;
  TEMPER_TRY_STATUS(actors::check_lengths(c.prompt));
  TEMPER_TRY_STATUS(actors::check_lengths(c.response));
  if (c.rollout.prefill_cards > 0 &&
      (c.rollout.chunked_prefill || on_new_weights_ == OnNewWeights::Recompute)) {
    return invalid_input(
        "simulation.rollout.prefill_cards: expected chunked_prefill = false, and running responses "
        "that keep their caches under new weights");
  }
  if (c.rollout.block < 1 || c.rollout.prefill_tokens < 1)
    return invalid_input("simulation.rollout: block and prefill_tokens must be at least 1");
  TEMPER_TRY_STATUS(actors::check_rollout(settings_));

  const actors::ActorMemory memory = actors::rollout_memory(settings_);
  TEMPER_TRY_STATUS(make_instances());
  staged_bytes_ = memory.host.weights;
  version_bytes_ = actors::version_bytes(settings_);

  prompts_.emplace(c.prompt, seed_, actors::kPromptLengths);
  responses_.emplace(c.response, seed_, actors::kResponseLengths);
  if (c.tools) {
    TEMPER_TRY_STATUS(actors::check_tools(*c.tools));
    tools_.emplace(*c.tools, seed_);
    calls_ = OpenCalls(*tools_, c.tools->pool);
  }
  cost_.emplace(settings_);
  cost_->use_version(version_);
  if (c.rollout.prefill_cards > 0) {
    prefill_.emplace(settings_);
    meter_.engine().prefill_devices = prefill_->devices();
    prefill_->use_version(version_);
  }
  const sim_hw::Fabric fabric = sim_hw::make_fabric(settings_.cluster);
  const double left =
      settings_.host_left.value_or(actors::host_capacity(settings_) - memory.host.total());
  most_parked_ = static_cast<std::int64_t>(left / cost_->kv_token_bytes()) * cost_->replicas();
  swap_ = from_seconds(actors::swap_seconds(fabric, settings_));
  swap_beside_ = from_seconds(actors::swap_beside_seconds(fabric, settings_));
  batch_.emplace(limits(), version_);
  has_weights_ = has_kv_ = !settings_.colocated;
  double Instance::*const at_start = settings_.colocated ? &Instance::draft : &Instance::weights;
  const double loaded = std::ranges::max(instances_, {}, at_start).*at_start;
  meter_.predict(memory);
  meter_.add_from_host(on_all(at_start));
  now_ = now;
  begin(Operation::Loading,
        now,
        from_seconds(loaded > 0 ? sim_hw::to_device_seconds(fabric, loaded) : 0));
  next_message_ = next_change();
  return {};
}

// --- Time

std::optional<Time> SimulatedRollout::next_change() const {
  std::optional<Time> next;
  const auto consider = [&](Time t) { next = next ? std::min(*next, t) : t; };
  if (operation_ != Operation::None)
    consider(ends_);
  else if (!inbox_.empty())
    consider(now_);
  if (staging_until_)
    consider(*staging_until_);
  if (report_due_)
    consider(*report_due_);
  if (const auto answer = calls_.next())
    consider(*answer);
  if (prefill_ && prefill_->ends())
    consider(*prefill_->ends());
  return next;
}

Status SimulatedRollout::advance(Time now, actors::Outbox& out) {
  run_until(now, out);
  next_message_ = compute_next_message();
  return {};
}

void SimulatedRollout::run_until(Time now, actors::Outbox& out) {
  while (const auto next = next_change()) {
    if (*next > now)
      break;
    now_ = std::max(now_, *next);
    if (const auto answer = calls_.next(); answer && *answer <= now_) {
      if (const Batch::Call call = calls_.take(*batch_, now_); batch_->is_open(call)) {
        inbox_.emplace_back(call);
        cut(now_);
      }
    } else if (prefill_ && prefill_->ends() && *prefill_->ends() <= now_) {
      count_prefill_batch(prefill_->finish());
      cut(now_);
    } else if (operation_ != Operation::None && ends_ <= now_) {
      finish(now_, out);
      start_next(now_, out);
    } else if (operation_ == Operation::None && !inbox_.empty()) {
      start_next(now_, out);
    } else if (staging_until_ && *staging_until_ <= now_) {
      staging_until_.reset();
      staged_ = staging_;
      const actors::WeightPublication& came =
          beside_ ? *publications_->beside : *publications_->whole;
      meter_.add_sent(came.received);
      if (!settings_.colocated || beside_)
        meter_.add_to_host(came.received.total());
      count_held();
      send_activity(now_, out);
      out.send(actors::WeightsStaged{staging_, ""});
    } else {
      report(now_, out);
    }
  }
  now_ = std::max(now_, now);
}

Status SimulatedRollout::on_message(const actors::IncomingMessage& message,
                                    Time now,
                                    actors::Outbox& out) {
  run_until(now, out);
  const auto keep = [&](auto work) {
    inbox_.emplace_back(std::move(work));
    cut(now);
  };
  return actors::dispatch(
             message,
             [&](const actors::StageWeights& work) { stage(work.weights.version, now); },
             [&](actors::CountedGenerate work) { keep(std::move(work)); },
             [&](actors::Cancel work) { keep(std::move(work)); },
             [&](actors::Withdraw work) { keep(std::move(work)); },
             [&](const actors::CommitWeights& work) { keep(work); },
             [&](const actors::Switch& work) { keep(work); },
             [&](const actors::CountedRelease& released) { release(released); },
             [&](const actors::Stop&) { stop(now, out); })
      .value_or(Status());
}

void SimulatedRollout::stage(PolicyVersion version, Time now) {
  beside_ = settings_.colocated && has_weights_;
  std::optional<actors::WeightPublication>& way =
      beside_ ? publications_->beside : publications_->whole;
  if (!way) {
    const sim_hw::Fabric fabric = sim_hw::make_fabric(settings_.cluster);
    way = beside_ ? actors::publish_beside(fabric, settings_)
                  : actors::publish_weights(fabric, settings_);
  }
  if (beside_)
    meter_.predict(actors::renewing(settings_));
  staging_ = version;
  staging_until_ = now + from_seconds(way->seconds);
}

void SimulatedRollout::begin(Operation what, Time now, Duration takes) {
  operation_ = what;
  began_ = reported_until_ = now;
  ends_ = now + takes;
}

Time SimulatedRollout::decode_end(std::int64_t steps) const {
  double seconds = 0;
  for (const EngineCost::Decode& pass : run_cost_)
    seconds += pass.seconds(steps);
  return began_ + from_seconds(seconds);
}

/// The smallest number of steps of the run that ends at or after `now`.
std::int64_t SimulatedRollout::steps_until(Time now) const {
  std::int64_t few = 0;
  std::int64_t many = run_steps_;
  while (few < many) {
    const std::int64_t middle = few + (many - few) / 2;
    if (decode_end(middle) < now)
      few = middle + 1;
    else
      many = middle;
  }
  return few;
}

/// Ends the current run at the end of its current step; undoes an operation that begins right now.
void SimulatedRollout::cut(Time now) {
  if (prefill_ && prefill_->began(now))
    prefill_->abort();
  const bool waits =
      operation_ == Operation::Tools || (operation_ == Operation::Prefill && prefill_);
  if (waits) {
    ends_ = now;
  } else if ((operation_ == Operation::Prefill || operation_ == Operation::Mixed) &&
             began_ == now) {
    operation_ = Operation::None;
  } else if (operation_ == Operation::Decode && ends_ > now) {
    run_steps_ = steps_until(now);
    ends_ = decode_end(run_steps_);
  }
}

/// Applies the effects of the operation that ends now.
void SimulatedRollout::finish(Time now, actors::Outbox& out) {
  note_activity(now);
  switch (std::exchange(operation_, Operation::None)) {
    case Operation::None:
    case Operation::Tools:
      break;
    case Operation::Loading:
      out.send(actors::Ready{});
      break;
    case Operation::Prefill:
      if (prefill_)
        break;
      ++counters_.prefill_steps;
      count_prefill();
      cost_->finish_prefill(batch_->prefill());
      break;
    case Operation::Mixed:
      ++counters_.prefill_steps;
      count_prefill();
      cost_->finish_prefill(batch_->prefill());
      [[fallthrough]];
    case Operation::Decode:
      count_steps(run_steps_);
      if (std::ranges::any_of(run_cost_, [](const auto& pass) { return !pass.drafted; }))
        undrafted_steps_ += run_steps_;
      batch_->decode(run_steps_, ended_);
      keep_tensors();
      calls_.begin(*batch_, batch_->take_calls(), now_);
      count_held();
      break;
    case Operation::Commit:
      version_ = committing_;
      has_weights_ = true;
      if (beside_ || !settings_.colocated)
        meter_.add_from_host(on_all(&Instance::version));
      staged_.reset();
      batch_->begin_version(version_);
      cost_->use_version(version_);
      if (prefill_)
        prefill_->use_version(version_);
      if (on_new_weights_ == OnNewWeights::Recompute)
        batch_->invalidate_cache();
      send_activity(now, out);
      out.send(actors::WeightsCommitted{version_, ""});
      break;
    case Operation::Allocate:
      has_kv_ = true;
      answer({actors::SwitchAction::AllocateKv}, switch_before_, "", now, out);
      break;
  }
}

/// At the end of a step: handles messages, then starts the next step.
void SimulatedRollout::start_next(Time now, actors::Outbox& out) {
  while (!inbox_.empty() && operation_ == Operation::None) {
    Control work = std::move(inbox_.front());
    inbox_.pop_front();
    const auto perform = [&](auto& control) {
      if constexpr (requires { handle(control); })
        handle(control);
      else
        handle(control, now, out);
    };
    std::visit(perform, work);
  }
  if (prefill_ && (operation_ != Operation::None || batch_->prefill().empty()))
    prefill_->abort();
  if (operation_ == Operation::None)
    start_step(now);
  if (ended_.empty()) {
    if (operation_ == Operation::None)
      send_activity(now, out);
  } else if (operation_ == Operation::None || settings_.config.report_every == Duration(0)) {
    report(now, out);
  } else if (!report_due_) {
    report_due_ = now + settings_.config.report_every;
  }
}

/// Whether host memory has space, and copying takes less time than recomputing.
bool SimulatedRollout::parks(PrefillPiece piece) const {
  piece.parked = true;
  return batch_->parked_tokens() + piece.tokens <= most_parked_ && copying_pays(piece);
}

bool SimulatedRollout::copying_pays(const PrefillPiece& piece) const {
  if (!prefill_)
    return cost_->copying_pays(piece);
  PrefillPiece computed{piece.tokens, piece.offset};
  computed.cached = piece.offset;
  return cost_->copy_seconds(piece) < prefill_->cost({computed}).seconds;
}

void SimulatedRollout::start_step(Time now) {
  if (!has_weights_ || !has_kv_)
    return;
  if (prefill_)
    return start_prefill(now);
  const auto park = [this](const PrefillPiece& piece) { return parks(piece); };
  batch_->admit(park);
  const bool prefills = !batch_->prefill().empty();
  if (!prefills || batch_->decodes_beside_prefill())
    batch_->preempt(park);
  if (prefills && !batch_->decodes_beside_prefill())
    return begin(Operation::Prefill, now, from_seconds(cost_->prefill(batch_->prefill(), 0)));
  if (batch_->running() == 0) {
    if (batch_->calling() > 0)
      begin(Operation::Tools, now, *calls_.next() - now);
    return;
  }
  start_decode(now);
  if (!prefills)
    return;
  operation_ = Operation::Mixed;
  run_steps_ = 1;
  ends_ = decode_end(1) + from_seconds(cost_->prefill(batch_->prefill(), batch_->running()));
}

/// Requires: responses run.
void SimulatedRollout::start_decode(Time now) {
  run_steps_ = batch_->steps();
  run_context_ = batch_->context();
  run_cost_.clear();
  for (const VersionLoad& load : batch_->loads())
    run_cost_.push_back(cost_->decode(load));
  begin(Operation::Decode, now, Duration(0));
  ends_ = decode_end(run_steps_);
}

/// A step with disaggregated prefill.
void SimulatedRollout::start_prefill(Time now) {
  const auto park = [this](const PrefillPiece& piece) { return parks(piece); };
  if (prefill_->take_done())
    batch_->finish_prefill();
  if (!prefill_->ends()) {
    batch_->admit(park);
    if (!batch_->prefill().empty())
      prefill_->begin(batch_->prefill(), now, from_seconds(cost_->prefill(copied_pieces(), 0)));
  }
  batch_->preempt(park);
  if (batch_->running() > 0)
    start_decode(now);
  else if (prefill_->ends())
    begin(Operation::Prefill, now, *prefill_->ends() - now);
  else if (batch_->calling() > 0)
    begin(Operation::Tools, now, *calls_.next() - now);
}

// --- Messages

void SimulatedRollout::handle(actors::CountedGenerate& work) {
  OpenCalls::Answers under_way;
  BatchRequest request;
  request.lease = work.lease;
  request.group = work.group;
  request.prompt = prompts_->of(work.group.value()).count();
  for (const auto& item : work.items) {
    request.response = item.response;
    request.prefix = item.prefix.count();
    request.kept = item.cached == actors::CachedAt::Here;
    PrefillPiece moved{request.prefix, request.prompt};
    moved.moved = item.cached == actors::CachedAt::Elsewhere;
    request.moved = moved.moved && copying_pays(moved);
    request.length = responses_->of(item.response.value(), work.group.value()).count();
    request.cut_off = request.length == responses_->cap().count();
    batch_->add(request, ended_);
    tensors_.begin(item.response, request.prefix);
    if (item.answered)
      under_way[item.response] = *item.answered;
  }
  calls_.begin(*batch_, batch_->take_calls(), now_, under_way);
}

void SimulatedRollout::handle(actors::Cancel& work) {
  for (const ResponseId r : work.responses) {
    batch_->cancel(r, ended_);
    calls_.close(r);
  }
}

void SimulatedRollout::handle(const Batch::Call& call) {
  if (!batch_->is_open(call))
    return;
  calls_.answered(call);
  batch_->answer(call);
}

void SimulatedRollout::handle(actors::Withdraw& work, Time now, actors::Outbox& out) {
  batch_->withdraw(work.responses, ended_);
  calls_.hand_over(ended_);
  report(now, out);  // Another engine waits for them.
}

void SimulatedRollout::handle(actors::CommitWeights& work, Time now, actors::Outbox& out) {
  std::string error;
  if (!staged_ || *staged_ != work.version)
    error = fmt::format("commit of version {}: it was not staged", work.version);
  else if (work.version < version_)
    error = fmt::format(
        "commit of version {}: the engine already has version {}", work.version, version_);
  if (error.empty()) {
    committing_ = work.version;
    return begin(Operation::Commit, now, beside_ ? swap_beside_ : swap_);
  }
  send_activity(now, out);
  out.send(actors::WeightsCommitted{work.version, std::move(error)});
}

void SimulatedRollout::handle(actors::Switch& work, Time now, actors::Outbox& out) {
  const HeldMemory before = held();
  const bool allocates = work.action == actors::SwitchAction::AllocateKv && !has_kv_;
  const Status status = perform(work.action);
  if (status && allocates) {
    switch_before_ = before;
    return begin(Operation::Allocate, now, from_seconds(actors::cache_seconds(settings_)));
  }
  began_ = now;
  answer(work, before, status ? "" : status.error().context, now, out);
}

}  // namespace temper::rollout
