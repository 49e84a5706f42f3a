#include "rollout/simulated/batch.hpp"

#include <algorithm>
#include <utility>

namespace temper::rollout {
namespace {

constexpr std::int64_t kWatermark = 100;  ///< One in this many blocks is kept free on admission.

}  // namespace

Batch::Batch(const BatchLimits& limits, PolicyVersion version)
    : limits_(limits), kv_(limits.blocks, limits.block), versions_{{0, version}} {}

// --- Adding

Batch::Slot Batch::group_of(const BatchRequest& request) {
  const auto [entry, added] = group_by_id_.try_emplace(request.group, 0);
  if (added) {
    if (free_groups_.empty()) {
      free_groups_.push_back(static_cast<Slot>(groups_.size()));
      groups_.emplace_back();
    }
    entry->second = free_groups_.back();
    free_groups_.pop_back();
    groups_[entry->second] = {request.group, request.prompt, 0, 0};
  }
  return entry->second;
}

void Batch::add(const BatchRequest& request, std::vector<FinishedResponse>& ended) {
  cancel(request.response, ended);
  const std::int64_t last = request.prompt % kv_.block() + request.length - 1 + limits_.drafts;
  const bool too_long = request.prompt / kv_.block() + kv_.needs(last) > limits_.replica_blocks;
  if (too_long || request.prefix >= request.length) {
    FinishedResponse out;
    out.lease = request.lease;
    out.response = request.response;
    out.prompt = Tokens(request.prompt);
    out.finish = too_long          ? actors::FinishReason::Failed
                 : request.cut_off ? actors::FinishReason::Length
                                   : actors::FinishReason::End;
    ended.push_back(std::move(out));
    return;
  }
  if (free_slots_.empty()) {
    free_slots_.push_back(static_cast<Slot>(responses_.size()));
    responses_.emplace_back();
  }
  const Slot slot = free_slots_.back();
  free_slots_.pop_back();
  Response& r = responses_[slot];
  r.request = request;
  r.done = request.prefix;
  r.group = group_of(request);
  r.state = State::Waiting;
  r.ticket = ++ticket_;
  r.segments.clear();
  r.version.reset();
  r.moved = request.moved;
  r.parked = false;
  if (const auto kept = kept_.find(request.response); kept != kept_.end()) {
    // It counts as parked either way: only its owner changes.
    r.parked = request.kept && kept->second == request.prefix;
    parked_tokens_ -= r.parked ? 0 : kept->second;
    kept_.erase(kept);
  }
  ++groups_[r.group].members;
  by_id_.add(request.response, slot);
  file(queue_, {slot, r.ticket, request.response});
  if (load() == 0 || steps_left(r) > steps_left())
    longest_ = slot;
  ++waiting_;
}

// --- Removing

void Batch::add_segment(Response& r, PolicyVersion version, std::int64_t tokens) {
  if (tokens == 0)
    return;
  if (!r.segments.empty() && r.segments.back().version == version)
    r.segments.back().tokens += Tokens(tokens);
  else
    r.segments.push_back({version, Tokens(tokens)});
}

/// The tokens of the current stay, by version.
void Batch::add_segments(Response& r) const {
  if (r.version)
    return add_segment(r, *r.version, counter_ - r.entered);
  std::int64_t from = r.entered;
  auto next = std::upper_bound(
      versions_.begin(), versions_.end(), from, [](std::int64_t step, const VersionStart& v) {
        return step < v.step;
      });
  while (from < counter_) {
    const std::int64_t to = next == versions_.end() ? counter_ : std::min(next->step, counter_);
    add_segment(r, std::prev(next)->version, std::max<std::int64_t>(0, to - from));
    from = to;
    if (next != versions_.end())
      ++next;
  }
}

std::int64_t Batch::own_tokens(const Response& r) const {
  return r.request.prompt % kv_.block() + r.done + (counter_ - r.entered) + limits_.drafts;
}

/// Removes it from the batch, and brings its tokens and segments up to date. The caller sets its
/// state.
void Batch::leave(Response& r) {
  add_segments(r);
  kv_.remove(own_tokens(r));
  r.done += counter_ - r.entered;
  context_ -= r.request.prompt + r.done;
  count(r, -1);
  Group& g = groups_[r.group];
  if (--g.running == 0)
    kv_.release(shared_blocks(g));
  --running_;
  if (running_ == 0)
    prefill_.clear();
}

/// Adds so many responses with the tokens of this one to those that its version generates.
void Batch::count(const Response& r, std::int64_t responses) {
  if (!r.version)
    return;
  VersionLoad& load = open_.at(*r.version).load;
  load.running += responses;
  load.context += responses * (r.request.prompt + r.done);
}

std::vector<VersionLoad> Batch::loads() const {
  if (!limits_.finish)
    return {{running_, context_}};
  std::vector<VersionLoad> out;
  for (const auto& [version, open] : open_) {
    if (open.load.running > 0)
      out.push_back(open.load);
  }
  return out;
}

std::int64_t Batch::older_versions() const {
  return std::ssize(open_) - static_cast<std::int64_t>(open_.contains(versions_.back().version));
}

void Batch::forget(Slot slot) {
  Response& r = responses_[slot];
  unpark(r);
  if (r.version && --open_.at(*r.version).responses == 0)
    open_.erase(*r.version);
  by_id_.remove(r.request.response);
  Group& g = groups_[r.group];
  if (--g.members == 0) {
    group_by_id_.erase(g.id);
    free_groups_.push_back(r.group);
  }
  r.state = State::Free;
  r.ticket = ++ticket_;
  free_slots_.push_back(slot);
  if (slot == longest_)
    find_longest();
}

void Batch::find_longest() {
  std::int64_t most = 0;
  for (Slot slot = 0; slot < responses_.size(); ++slot) {
    const Response& r = responses_[slot];
    if (r.state != State::Free && steps_left(r) > most) {
      most = steps_left(r);
      longest_ = slot;
    }
  }
}

/// Requires: it waits, or was just removed from the batch.
Batch::FinishedResponse Batch::take(Slot slot, actors::FinishReason finish) {
  Response& r = responses_[slot];
  FinishedResponse out;
  out.lease = r.request.lease;
  out.response = r.request.response;
  out.prompt = Tokens(r.request.prompt);
  out.tokens = Tokens(r.done - r.request.prefix);
  out.segments = std::move(r.segments);
  out.finish = finish;
  forget(slot);
  return out;
}

void Batch::drop_void_ends() {
  while (!ends_.empty() && !valid(ends_.front().response)) {
    std::pop_heap(ends_.begin(), ends_.end());
    ends_.pop_back();
  }
}

void Batch::cancel(ResponseId response, std::vector<FinishedResponse>& ended) {
  const auto entry = by_id_.find(response);
  if (!entry)
    return;
  stop(responses_[*entry]);
  FinishedResponse had = take(*entry, actors::FinishReason::Interrupted);
  if (had.tokens > Tokens(0))
    ended.push_back(std::move(had));
  drop_void_ends();
}

void Batch::stop(Response& r) {
  if (r.state == State::Running)
    leave(r);
  else
    --waiting_;
}

void Batch::withdraw(const std::vector<ResponseId>& responses,
                     std::vector<FinishedResponse>& ended) {
  for (const ResponseId response : responses) {
    const auto entry = by_id_.find(response);
    if (!entry)
      continue;
    const Slot slot = *entry;
    const bool cached = is_cached(responses_[slot]);
    stop(responses_[slot]);
    if (limits_.finish) {
      responses_[slot].done = responses_[slot].request.prefix;
      responses_[slot].segments.clear();
    }
    ended.push_back(take(slot, actors::FinishReason::Interrupted));
    ended.back().cached = cached && ended.back().tokens > Tokens(0);
  }
  drop_void_ends();
}

void Batch::forget_kept() {
  for (const auto& [response, tokens] : kept_)
    parked_tokens_ -= tokens;
  kept_.clear();
}

void Batch::take_all(std::vector<FinishedResponse>& ended) {
  const std::size_t first = ended.size();
  for (Slot slot = 0; slot < responses_.size(); ++slot) {
    Response& r = responses_[slot];
    if (r.state == State::Free)
      continue;
    stop(r);
    ended.push_back(take(slot, actors::FinishReason::Interrupted));
    ended.back().cached = kept_.contains(ended.back().response);
  }
  std::sort(
      ended.begin() + static_cast<std::ptrdiff_t>(first),
      ended.end(),
      [](const FinishedResponse& a, const FinishedResponse& b) { return a.response < b.response; });
  queue_.clear();
  ages_.clear();
  ends_.clear();
}

// --- Versions

void Batch::begin_version(PolicyVersion version) {
  if (running_ == 0)
    versions_.clear();  // No stay is older.
  if (!versions_.empty() && versions_.back().step == counter_)
    versions_.back().version = version;
  else
    versions_.push_back({counter_, version});
}

void Batch::invalidate_cache() {
  prefill_.clear();
  forget_kept();
  for (Response& r : responses_) {
    unpark(r);
    r.moved = false;
  }
  std::vector<bool> prompt_done(groups_.size(), false);
  for (const Reference& age : ages_) {
    if (!valid(age))
      continue;
    const Response& r = responses_[age.slot];
    if (!prompt_done[r.group])
      prefill_.push_back({r.request.prompt, 0, false, true});
    prompt_done[r.group] = true;
    if (const std::int64_t own = r.done + (counter_ - r.entered); own > 0)
      prefill_.push_back({own, r.request.prompt, false, true});
  }
}

// --- Steps

bool Batch::fits(const Response& r) const {
  if (running_ >= limits_.concurrency)
    return false;
  const Group& g = groups_[r.group];
  const std::int64_t own = r.request.prompt % kv_.block() + r.done + limits_.drafts;
  const std::int64_t blocks = kv_.needs(own) + (g.running == 0 ? shared_blocks(g) : 0);
  const std::int64_t keep = running_ == 0 ? 0 : kv_.capacity() / kWatermark;
  return blocks + keep <= kv_.free();
}

template <class Queue>
void Batch::file(Queue& queue, const Reference& r) const {
  auto at = queue.end();
  if (limits_.deadline_first) {
    at = std::ranges::upper_bound(queue, r.response, {}, &Reference::response);
  }
  queue.insert(at, r);
}

void Batch::enter(Slot slot) {
  Response& r = responses_[slot];
  Group& g = groups_[r.group];
  if (g.running++ == 0) {
    kv_.hold(shared_blocks(g));
    if (g.prompt > 0)
      prefill_.push_back({g.prompt, 0, false, g.prompted || r.request.prefix > 0});
    g.prompted = true;
  }
  if (r.done > 0)
    prefill_.push_back({r.done, g.prompt, r.parked, true, r.moved});
  unpark(r);
  r.moved = false;
  r.state = State::Running;
  if (limits_.finish && !r.version) {
    r.version = versions_.back().version;
    ++open_[*r.version].responses;
  }
  count(r, 1);
  r.entered = counter_;
  r.ticket = ++ticket_;
  kv_.add(own_tokens(r));
  context_ += r.request.prompt + r.done;
  ++running_;
  const Reference reference{slot, r.ticket, r.request.response};
  file(ages_, reference);
  ends_.push_back({counter_ + r.request.length - r.done, reference});
  std::push_heap(ends_.begin(), ends_.end());
}

void Batch::admit() {
  while (!queue_.empty()) {
    const Reference head = queue_.front();
    if (valid(head)) {
      if (!fits(responses_[head.slot]))
        return;
      --waiting_;
      enter(head.slot);
    }
    queue_.pop_front();
  }
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
  if (std::exchange(r.parked, false))
    parked_tokens_ -= r.done;
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
      ended.push_back(
          take(end.response.slot,
               r.request.cut_off ? actors::FinishReason::Length : actors::FinishReason::End));
    }
    std::pop_heap(ends_.begin(), ends_.end());
    ends_.pop_back();
  }
  // Void references of ages_ are dropped once they are the majority.
  if (ages_.size() > 64 && static_cast<std::int64_t>(ages_.size()) > 2 * running_)
    std::erase_if(ages_, [this](const Reference& r) { return !valid(r); });
}

}  // namespace temper::rollout
