// Reports of a simulated rollout: activity, finished responses, answers and resource use; when the
// next one may come.
#include "rollout/simulated/rollout_actor.hpp"

#include <cmath>

namespace temper::rollout {
namespace {

using actors::CardState;

}  // namespace

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
  out.send(actors::Activity{std::move(spans_), meter_.report(now)});
  spans_.clear();
}

SimulatedRollout::HeldMemory SimulatedRollout::held() const {
  const double device = (has_weights_ ? weight_bytes_ : 0) + (has_kv_ ? kv_bytes_ : 0);
  const double parked = static_cast<double>(batch_->parked_tokens()) * cost_->kv_token_bytes() /
                        static_cast<double>(cost_->replicas());
  return {actors::bytes_on(settings_, settings_.cards, device),
          actors::bytes_on(settings_, settings_.cards, parked + (staged_ ? staged_bytes() : 0))};
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
  const Time end = std::min(ends_, calls_.next().value_or(ends_));
  Time word = std::min(empty, report_due_.value_or(end + settings_.config.report_every));
  if (staging_until_)
    word = std::min(word, *staging_until_);
  return word;
}

// --- Usage

void SimulatedRollout::count_steps(std::int64_t steps) {
  meter_.add_flops(each() * cost_->decode_flops(batch_->running(), steps, run_context_));
  for (const EngineCost::Decode& pass : run_cost_)
    meter_.add_sent(pass.sent, static_cast<double>(steps) * meter_.devices());
}

void SimulatedRollout::count_prefill() {
  const EngineCost::PrefillUse use = cost_->prefill_use(batch_->prefill());
  meter_.add_flops(each() * use.flops);
  meter_.add_sent(use.sent, each());
  meter_.add_to_host(each() * use.copied);
  meter_.add_from_host(each() * use.copied);
}

void SimulatedRollout::count_held() {
  const double used =
      static_cast<double>(batch_->most_blocks()) / static_cast<double>(batch_->kv().capacity());
  const double parked = static_cast<double>(batch_->parked_tokens()) * cost_->kv_token_bytes() /
                        static_cast<double>(cost_->replicas());
  const double older = static_cast<double>(batch_->older_versions()) * version_bytes_;
  meter_.hold(has_weights_ ? weight_bytes_ + older + other_bytes_ + used * kv_bytes_ : 0,
              parked + (staged_ ? staged_bytes() : 0));
}

void SimulatedRollout::report(Time now, actors::Outbox& out) {
  report_due_.reset();
  if (ended_.empty())
    return;
  send_activity(now, out);
  out.send(actors::CountedGenerated{std::move(ended_)});
  ended_.clear();
}

SimulatedRollout::Counters SimulatedRollout::counters() const {
  Counters out = counters_;
  out.decode_steps = static_cast<std::int64_t>(
      std::ceil(static_cast<double>(batch_->steps_done()) / cost_->tokens_per_step()));
  out.preemptions = batch_->preemptions();
  out.most_blocks = batch_->most_blocks();
  out.blocks = batch_->kv().capacity();
  return out;
}

}  // namespace temper::rollout
