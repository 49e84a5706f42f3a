// Resources and reports of a simulated rollout: memory of its instances and limits of its batch;
// activity, finished responses, answers and resource use; when the next report may come.
#include "actors/simulation/role_layouts.hpp"
#include "rollout/simulated/rollout_actor.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::rollout {
namespace {

using actors::CardState;

/// `replica_blocks`: blocks of KV cache of a replica; one is the least.
Status check_fits(const sim_hw::Ledger& device, double capacity, std::int64_t replica_blocks) {
  if (device.total() <= capacity && replica_blocks >= 1)
    return {};
  return Error{
      ErrorCode::OutOfMemory,
      fmt::format(
          "simulation.rollout: weights of {:.2f} GB, a KV cache of {:.2f} GB and other {:.2f} GB "
          "exceed the {:.2f} GB of a device; use more cards per engine, a "
          "larger tp or ep, or a smaller kv_share",
          device.weights / 1e9,
          device.kv_cache / 1e9,
          (device.total() - device.weights - device.kv_cache) / 1e9,
          capacity / 1e9)};
}

}  // namespace

// --- Memory

/// Errors: weights or cache that do not fit.
Status SimulatedRollout::make_instances() {
  const bool disaggregated = settings_.config.rollout.prefill_cards > 0;
  const auto add = [&](const actors::SimulationSettings& s, std::int64_t cards) -> Status {
    const sim_hw::Ledger device = actors::decode_memory(s).device;
    TEMPER_TRY_STATUS(check_fits(
        device, actors::device_capacity(s), actors::kv_tokens(s).count() / s.config.rollout.block));
    instances_.push_back(
        {cards,
         static_cast<double>(cards * s.cluster.dies_per_card),
         device.weights,
         actors::decoded_version(s),
         actors::frozen_draft_bytes(s),
         device.kv_cache,
         device.total() - device.weights - device.older_weights - device.kv_cache});
    return {};
  };
  TEMPER_TRY_STATUS(add(settings_, settings_.cards - settings_.config.rollout.prefill_cards));
  return disaggregated
             ? add(actors::prefill_instance(settings_), settings_.config.rollout.prefill_cards)
             : Status();
}

double SimulatedRollout::on_all(double Instance::*bytes) const {
  double sum = 0;
  for (const Instance& instance : instances_)
    sum += instance.devices * instance.*bytes;
  return sum;
}

BatchLimits SimulatedRollout::limits() const {
  const actors::RolloutEngineConfig& c = settings_.config.rollout;
  BatchLimits limits;
  if (settings_.concurrency > 0)
    limits.concurrency = settings_.concurrency;
  limits.block = c.block;
  limits.replica_blocks = actors::kv_tokens(settings_).count() / c.block;
  limits.blocks = limits.replica_blocks * cost_->replicas();
  limits.drafts = static_cast<std::int64_t>(actors::engine_drafts(settings_).depth);
  limits.deadline_first = settings_.deadline_first;
  limits.tools = tools_ ? &*tools_ : nullptr;
  limits.chunked_prefill = c.chunked_prefill;
  limits.finish = on_new_weights_ == OnNewWeights::Finish;
  if (prefill_) {
    limits.disaggregated = true;
    limits.prefill_tokens = prefill_->step_tokens();
    limits.prefill_cache = prefill_->cache();
    limits.replica_blocks = std::min(limits.replica_blocks, prefill_->replica_cache() / c.block);
  }
  return limits;
}

Status SimulatedRollout::perform(actors::SwitchAction action) {
  using A = actors::SwitchAction;
  if (action == A::Interrupt) {
    batch_->interrupt(ended_, [this](const PrefillPiece& piece) { return parks(piece); });
    calls_.hand_over(ended_);
    return {};
  }
  if (action != A::FreeKv && action != A::FreeWeights && action != A::AllocateKv)
    return invalid_input(
        fmt::format("a rollout actor does not support the action {}", name_of(action)));
  if (batch_->running() > 0 || (action != A::AllocateKv && batch_->load() > 0))
    return invalid_input(fmt::format(
        "{}: the engine must be idle, but has {} responses", name_of(action), batch_->load()));
  if (action == A::FreeKv) {
    has_kv_ = false;
  } else if (action == A::FreeWeights) {
    has_weights_ = false;
  } else {
    for (const Instance& i : instances_) {
      const double needs = i.weights + i.kv + i.other;
      if (needs > actors::device_capacity(settings_)) {
        return Error{ErrorCode::OutOfMemory,
                     fmt::format("KV cache of {:.2f} GB does not fit: {:.2f} GB of {:.2f} GB",
                                 i.kv / 1e9,
                                 needs / 1e9,
                                 actors::device_capacity(settings_) / 1e9)};
      }
    }
  }
  return {};
}

// --- Activity

void SimulatedRollout::note_activity(Time end) {
  constexpr auto state = [](Operation operation) {
    switch (operation) {
      case Operation::Prefill:
        return CardState::Prefill;
      case Operation::Loading:
      case Operation::Commit:
        return CardState::WeightSync;
      case Operation::Allocate:
        return CardState::Switch;
      case Operation::Tools:
        return CardState::WaitTools;
      case Operation::None:
      case Operation::Mixed:
      case Operation::Decode:
        break;
    }
    return CardState::Decode;
  };
  if (operation_ == Operation::None || end <= reported_until_)
    return;
  if (operation_ == Operation::Decode || operation_ == Operation::Mixed)
    meter_.engine().decode += end - reported_until_;
  if (operation_ == Operation::Prefill && !prefill_)
    meter_.engine().prefill += end - reported_until_;
  const CardState now = state(operation_);
  if (!spans_.empty() && spans_.back().state == now && spans_.back().end == reported_until_)
    spans_.back().end = end;
  else
    spans_.push_back({now, reported_until_, end});
  reported_until_ = end;
}

void SimulatedRollout::send_activity(Time now, actors::Outbox& out) {
  note_activity(now);
  if (spans_.empty())
    return;
  out.send(actors::Activity{std::move(spans_), meter_.due(now)});
  spans_.clear();
}

/// The last report; finished steps of an unfinished run count.
void SimulatedRollout::stop(Time now, actors::Outbox& out) {
  note_activity(now);
  if (operation_ == Operation::Decode) {
    const std::int64_t steps = steps_until(now);
    count_steps(decode_end(steps) > now ? steps - 1 : steps);
  }
  if (tensors_.any())
    meter_.tensors().held = tensors_.held();
  out.send(actors::Activity{std::move(spans_), meter_.report(now)});
  spans_.clear();
}

SimulatedRollout::HeldMemory SimulatedRollout::held() const {
  Bytes device;
  for (const Instance& i : instances_)
    device += actors::bytes_on(
        settings_, i.cards, (has_weights_ ? i.weights : i.draft) + (has_kv_ ? i.kv : 0));
  return {device,
          actors::bytes_on(
              settings_, settings_.cards, kept_on_host() + (staged_ ? staged_bytes() : 0))};
}

double SimulatedRollout::kept_on_host() const {
  const double parked = static_cast<double>(batch_->parked_tokens()) * cost_->kv_token_bytes() /
                        static_cast<double>(cost_->replicas());
  return parked + tensors_.held_beside(batch_->context()) / meter_.devices();
}

void SimulatedRollout::answer(const actors::Switch& work,
                              HeldMemory before,
                              std::string error,
                              Time now,
                              actors::Outbox& out) {
  report(now, out);
  send_activity(now, out);
  const HeldMemory after = held();
  actors::Switched done;
  done.action = work.action;
  done.cost.duration = now - began_;
  done.cost.device_before = before.device;
  done.cost.device_after = after.device;
  done.cost.host_before = before.host;
  done.cost.host_after = after.host;
  done.error = std::move(error);
  out.send(done);
}

/// Steps end without a message as long as the engine does not become idle; then the next message is
/// the next report, or that new weights are staged.
std::optional<Time> SimulatedRollout::compute_next_message() {
  const std::optional<Time> next = next_change();
  if (operation_ != Operation::Prefill && operation_ != Operation::Mixed &&
      operation_ != Operation::Decode)
    return next;
  std::int64_t load = batch_->load();
  for (const Control& work : inbox_) {
    const auto* generate = std::get_if<actors::CountedGenerate>(&work);
    if (generate == nullptr)
      return next;
    for (const auto& item : generate->items) {
      if (item.response == batch_->longest())  // It is replaced.
        return next;
    }
    load += std::ssize(generate->items);
  }
  const std::int64_t left = batch_->steps_left() - (operation_ == Operation::Mixed ? 1 : 0);
  const Duration decode = cost_->least(left, load);
  const Time empty = std::max(ends_, (operation_ == Operation::Decode ? began_ : ends_) + decode);
  Time end = std::min(ends_, calls_.next().value_or(ends_));
  if (prefill_)
    end = std::min(end, prefill_->ends().value_or(end));
  Time word = std::min(empty, report_due_.value_or(end + settings_.config.report_every));
  if (staging_until_)
    word = std::min(word, *staging_until_);
  return word;
}

// --- Usage

void SimulatedRollout::count_steps(std::int64_t steps) {
  meter_.engine().decode_tokens += steps;
  meter_.add_flops(each() * cost_->decode_flops(batch_->running(), steps, run_context_));
  for (const EngineCost::Decode& pass : run_cost_)
    meter_.add_sent(pass.sent, static_cast<double>(steps) * instances_[0].devices);
}

void SimulatedRollout::count_prefill() {
  const EngineCost::PrefillUse use = cost_->prefill_use(batch_->prefill());
  meter_.add_flops(each() * use.flops);
  meter_.add_sent(use.sent, each());
  meter_.add_to_host(each() * use.copied);
  meter_.add_from_host(each() * use.copied);
}

std::deque<PrefillPiece> SimulatedRollout::copied_pieces() const {
  std::deque<PrefillPiece> copied = batch_->prefill();
  std::erase_if(copied, [](const PrefillPiece& piece) { return !piece.copied(); });
  return copied;
}

void SimulatedRollout::count_prefill_batch(const PrefillInstance::BatchCost& batch) {
  const EngineCost::PrefillUse copied = cost_->prefill_use(copied_pieces());
  counters_.prefill_steps += batch.steps;
  meter_.engine().prefill += from_seconds(batch.seconds);
  meter_.add_flops(each() * batch.use.flops);
  meter_.add_sent(batch.use.sent, each());
  meter_.add_sent(copied.sent, each());
  meter_.add_to_host(each() * copied.copied);
  meter_.add_from_host(each() * copied.copied);
  const Instance& prefill = instances_[1];
  meter_.hold(prefill.weights + prefill.other + batch.cached, 0);
}

void SimulatedRollout::count_held() {
  const double used =
      static_cast<double>(batch_->most_blocks()) / static_cast<double>(batch_->kv().capacity());
  const Instance& decode = instances_[0];
  const double older = static_cast<double>(batch_->older_versions()) * decode.version;
  meter_.hold(
      has_weights_ ? decode.weights + older + decode.other + used * decode.kv : decode.draft,
      kept_on_host() + (staged_ ? staged_bytes() : 0));
}

void SimulatedRollout::keep_tensors() {
  if (!tensors_.any())
    return;
  const Bytes more = tensors_.end(ended_);
  meter_.tensors().stored += more;
  meter_.add_to_host(static_cast<double>(more.count()));
}

void SimulatedRollout::release(const actors::CountedRelease& released) {
  const Bytes less = tensors_.release(released);
  if (released.after == actors::CountedRelease::After::Dropped)
    meter_.tensors().dropped += less;
}

void SimulatedRollout::report(Time now, actors::Outbox& out) {
  report_due_.reset();
  if (ended_.empty())
    return;
  keep_tensors();
  send_activity(now, out);
  calls_.forget(ended_);
  out.send(actors::CountedGenerated{std::move(ended_)});
  ended_.clear();
  tensors_.reported();
}

SimulatedRollout::Counters SimulatedRollout::counters() const {
  Counters out = counters_;
  const auto drafted = static_cast<double>(batch_->steps_done() - undrafted_steps_);
  out.decode_steps =
      undrafted_steps_ + static_cast<std::int64_t>(std::ceil(drafted / cost_->tokens_per_step()));
  out.preemptions = batch_->preemptions();
  out.most_blocks = batch_->most_blocks();
  out.blocks = batch_->kv().capacity();
  return out;
}

}  // namespace temper::rollout
