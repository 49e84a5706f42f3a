// Steps of a batch: admission, decode, preemption and tool calls.
#include "rollout/simulated/batch.hpp"

#include <algorithm>
#include <utility>

namespace temper::rollout {
namespace {

constexpr std::int64_t kWatermark = 100;  ///< One in this many blocks is kept free on admission.

}  // namespace

std::int64_t Batch::missing_for(const Response& r) const {
  const Group& g = groups_[r.group];
  const std::int64_t own = r.request.prompt % kv_.block() + r.done + limits_.drafts;
  const std::int64_t blocks = kv_.needs(own) - r.held + (g.holders == 0 ? shared_blocks(g) : 0);
  const bool alone = running_ == 0 && entering_.empty();
  const std::int64_t keep = alone ? 0 : kv_.capacity() / kWatermark;
  return blocks + keep - kv_.free();
}

/// It needs its own blocks, and the prompt of its group, itself.
std::int64_t Batch::evictable_for(const Response& r) const {
  return evictable_ - r.held - evictable_prompt(groups_[r.group]);
}

/// Its blocks, and what must be prefilled before it runs.
void Batch::enter(Slot slot) {
  Response& r = responses_[slot];
  Group& g = groups_[r.group];
  const bool prompt = count_holders(g, 1, 0);
  for_each_piece(r, prompt, [this](const PrefillPiece& piece) {
    prefill_.push_back(piece);
    pending_ = pending_ + piece;
  });
  g.prompted = g.prompted || prompt;
  r.fresh = 0;
  release_held(r);
  unpark(r);
  r.moved = false;
  if (limits_.finish && !r.version) {
    r.version = versions_.back().version;
    ++open_[*r.version].responses;
  }
  if (!enter_together())
    return run(slot);
  r.state = State::Entering;
  r.ticket = ++ticket_;
  r.held = kv_.needs(r.request.prompt % kv_.block() + r.done + limits_.drafts);
  kv_.hold(r.held);
  entering_.push_back(slot);
}

void Batch::join() {
  for (const Slot slot : entering_) {
    kv_.release(std::exchange(responses_[slot].held, 0));
    run(slot);
  }
  entering_.clear();
  recomputing_ = false;
}

/// Requires: it was counted as waiting.
void Batch::run(Slot slot) {
  Response& r = responses_[slot];
  --waiting_;
  r.state = State::Running;
  count(r, 1);
  r.entered = counter_;
  r.ticket = ++ticket_;
  kv_.add(own_tokens(r));
  context_ += r.request.prompt + r.done;
  ++running_;
  const Reference reference{slot, r.ticket, r.request.response};
  file(ages_, reference);
  ends_.push_back({counter_ + (r.call ? r.call->at : r.request.length) - r.done, reference});
  std::push_heap(ends_.begin(), ends_.end());
}

/// Adds to the head of the queue, before all younger ones.
Batch::Slot Batch::take_youngest() {
  while (!valid(ages_.back()))
    ages_.pop_back();
  const Slot slot = ages_.back().slot;
  ages_.pop_back();
  Response& r = responses_[slot];
  leave(r);
  r.state = State::Waiting;
  r.ticket = ++ticket_;
  const Reference reference{slot, r.ticket, r.request.response};
  if (limits_.deadline_first)
    file(queue_, reference);
  else
    queue_.push_front(reference);
  ++waiting_;
  ++preemptions_;
  return slot;
}

void Batch::unpark(Response& r) {
  parked_tokens_ -= std::exchange(r.parked, 0);
}

// --- Tools

/// Requires: it has all tokens before the call, and is neither running nor waiting.
void Batch::begin_call(Slot slot) {
  Response& r = responses_[slot];
  if (r.state == State::Running) {
    r.held = kv_.needs(r.request.prompt % kv_.block() + r.done);
    kv_.hold(r.held);
    evictable_ += r.held;
    count_holders(groups_[r.group], 1, 1);
  }
  r.state = State::Calling;
  r.ticket = ++ticket_;
  ++calling_;
  if (r.held > 0)
    held_.push_back({slot, r.ticket, r.request.response});
  calls_.push_back({slot, r.ticket, r.request.response, *r.call});
  // Void references are dropped once they are the majority.
  if (std::ssize(held_) > 64 + 2 * (calling_ + waiting_))
    std::erase_if(held_, [this](const Reference& h) { return !valid(h); });
}

void Batch::answer(const Call& call) {
  Response& r = responses_[call.slot_];
  --calling_;
  ++waiting_;
  r.state = State::Waiting;
  const actors::ToolCall answered = *r.call;
  add_segment(r, r.version.value_or(versions_.back().version), answered.result);
  r.done += answered.result;
  r.fresh = answered.result;
  r.results -= answered.result;
  r.call = limits_.tools->after(r.request.response, r.request.length, answered);
  file(queue_, {call.slot_, call.ticket_, call.response_});
}

std::optional<Batch::Slot> Batch::first_held(std::optional<Slot> except) {
  const auto holds = [this](const Reference& r) { return valid(r) && responses_[r.slot].held > 0; };
  while (!held_.empty() && !holds(held_.front()))
    held_.pop_front();
  const auto first =
      std::ranges::find_if(held_, [&](const Reference& r) { return holds(r) && r.slot != except; });
  return first == held_.end() ? std::nullopt : std::optional(first->slot);
}

std::int64_t Batch::steps() const {
  return running_ == 0 ? 0 : kv_.steps(ends_.front().step - counter_);
}

void Batch::decode(std::int64_t k, std::vector<FinishedResponse>& ended) {
  if (k == 0)
    return;
  counter_ += k;
  context_ += k * running_;
  for (auto& [version, open] : open_)
    open.load.context += k * open.load.running;
  kv_.advance(k - 1);
  most_blocks_ = std::max(most_blocks_, kv_.used());
  kv_.advance(1);
  while (!ends_.empty()) {
    const End end = ends_.front();
    if (valid(end.response)) {
      if (end.step > counter_)
        break;
      Response& r = responses_[end.response.slot];
      leave(r);
      if (r.call) {
        begin_call(end.response.slot);
      } else {
        ended.push_back(
            take(end.response.slot,
                 r.request.cut_off ? actors::FinishReason::Length : actors::FinishReason::End));
      }
    }
    std::pop_heap(ends_.begin(), ends_.end());
    ends_.pop_back();
  }
  // Void references of ages_ are dropped once they are the majority.
  if (ages_.size() > 64 && static_cast<std::int64_t>(ages_.size()) > 2 * running_)
    std::erase_if(ages_, [this](const Reference& r) { return !valid(r); });
}

}  // namespace temper::rollout
