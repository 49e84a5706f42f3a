// Reports of a simulated rollout: activity, finished responses and resource use.
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
      case Operation::None:
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
