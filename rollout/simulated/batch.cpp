#include "rollout/simulated/batch.hpp"

#include <algorithm>
#include <utility>

namespace temper::rollout {

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
  r.parked = r.fresh = r.held = 0;
  const actors::ToolCalls::Left calls =
      limits_.tools == nullptr
          ? actors::ToolCalls::Left{}
          : limits_.tools->left(request.response, request.length, request.prefix);
  r.call = calls.next;
  r.results = calls.results;
  if (const auto kept = kept_.find(request.response); kept != kept_.end()) {
    // It counts as parked either way: only its owner changes.
    r.parked = request.kept && kept->second == request.prefix ? request.prefix : 0;
    parked_tokens_ -= kept->second - r.parked;
    kept_.erase(kept);
  }
  ++groups_[r.group].members;
  by_id_.add(request.response, slot);
  if (load() == 0 || steps_left(r) > steps_left())
    longest_ = slot;
  if (r.call && r.call->at == r.done)
    return begin_call(slot);  // It was interrupted during the call.
  file(queue_, {slot, r.ticket, request.response});
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
  count_holders(groups_[r.group], -1, 0);
  --running_;
  if (running_ == 0 && entering_.empty())
    prefill_.clear();
}

bool Batch::count_holders(Group& g, std::int32_t holders, std::int32_t held) {
  const bool before = g.holders > 0;
  evictable_ -= evictable_prompt(g);
  g.holders += holders;
  g.held += held;
  evictable_ += evictable_prompt(g);
  const bool after = g.holders > 0;
  if (before && !after)
    kv_.release(shared_blocks(g));
  if (after && !before)
    kv_.hold(shared_blocks(g));
  return after && !before;
}

void Batch::release_held(Response& r) {
  if (r.held == 0)
    return;
  const bool evictable = r.state != State::Entering;
  evictable_ -= evictable ? r.held : 0;
  kv_.release(std::exchange(r.held, 0));
  count_holders(groups_[r.group], -1, evictable ? -1 : 0);
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
    --(r.state == State::Calling ? calling_ : waiting_);
  if (r.state == State::Entering) {
    std::erase(entering_, *by_id_.find(r.request.response));
    if (entering_.empty() && (running_ == 0 || !recomputing_))
      prefill_.clear();
  }
  release_held(r);
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
  held_.clear();
  recomputing_ = false;
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
    if (r.state != State::Entering)
      release_held(r);
    r.moved = false;
  }
  std::vector<bool> prompt_done(groups_.size(), false);
  const auto recompute = [&](const Response& r, std::int64_t own) {
    if (!prompt_done[r.group])
      prefill_.push_back({r.request.prompt, 0, false, true});
    prompt_done[r.group] = true;
    if (own > 0)
      prefill_.push_back({own, r.request.prompt, false, true});
  };
  for (const Reference& age : ages_) {
    if (const Response& r = responses_[age.slot]; valid(age))
      recompute(r, r.done + (counter_ - r.entered));
  }
  for (const Slot slot : entering_)
    recompute(responses_[slot], responses_[slot].done);
  recomputing_ = running_ > 0;
}

}  // namespace temper::rollout
