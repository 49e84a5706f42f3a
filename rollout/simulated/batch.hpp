// Continuous batching, counted: which responses of an engine run, which wait, what they hold of the
// KV cache, and when each ends. Knows steps, not time.
//
// Rules (those of vLLM): responses wait first come, first served; one enters while fewer than
// `concurrency` run and the free blocks cover its own tokens and, for the first of its group, the
// prompt, with 1 % of the cache left over unless nothing runs; when the next step needs more blocks
// than there are, the youngest leaves: its blocks are free at once, it waits at the head of the
// queue, and what it had cached of its own is computed again when it re-enters, or copied back from
// the host where it was parked, whichever takes less time. With deadline_first responses wait in
// the order of their ids, which is that of their groups and so about that of their deadlines, and
// the one of the highest id leaves: what an update needs first is served first. Full blocks of a
// prompt are held once for the responses of a group that run; each has its own copy of the last,
// partial one. Prefill makes cached tokens, each decode step one token of every running response.
//
// Assumed: responses spread over the replicas so evenly that their caches act as one. One response
// never needs more than the cache of one replica: it fails at once instead.
// Cost: O(log n) for each response and O(block) for each run of steps, none per token.
#pragma once

#include "actors/protocol/counted.hpp"
#include "rollout/simulated/kv_blocks.hpp"
#include "rollout/simulated/slot_index.hpp"

#include <deque>
#include <limits>
#include <map>
#include <unordered_map>

namespace temper::rollout {

struct BatchLimits {
  std::int64_t concurrency = std::numeric_limits<std::int64_t>::max();
  std::int64_t blocks = 0;          ///< Of all replicas.
  std::int64_t replica_blocks = 0;  ///< Of one.
  std::int64_t block = 128;         ///< Tokens.
  bool deadline_first = false;      ///< By response, which is by group: see the rules.
};

struct BatchRequest {
  LeaseId lease;
  ResponseId response;
  GroupId group;
  std::int64_t prompt = 0;
  std::int64_t prefix = 0;  ///< Tokens that it has already.
  std::int64_t length = 0;  ///< Tokens that it will have, prefix included.
  bool cut_off = false;     ///< At that length by a limit.
  bool kept = false;        ///< The prefix may still be cached here, since it was interrupted.
  bool moved = false;       ///< The prefix comes cached from another engine.
};

/// Tokens to be cached before decoding goes on, after `offset` ones of the same sequence.
struct PrefillPiece {
  std::int64_t tokens = 0;
  std::int64_t offset = 0;
  bool parked = false;    ///< On the host: to be copied, not computed.
  bool repeated = false;  ///< Was computed before, here or elsewhere.
  bool moved = false;     ///< On another engine: to be copied, not computed.
};

class Batch {
 public:
  using FinishedResponse = actors::CountedGenerated::Item;

  Batch(const BatchLimits& limits, PolicyVersion version);

  /// Replaces a response of the same id. What ends, it appends to `ended`.
  void add(const BatchRequest& request, std::vector<FinishedResponse>& ended);
  /// Takes it out, with what it has, if that is anything; no effect on a response that is not here.
  void cancel(ResponseId response, std::vector<FinishedResponse>& ended);
  /// Takes these out, in the order given, each with what it has, on its way to another engine's
  /// cache; no effect on one not here.
  void withdraw(const std::vector<ResponseId>& responses, std::vector<FinishedResponse>& ended);
  /// Takes everything out, by response id, each with what it has. What `park(piece)` says yes to is
  /// kept on the host until it comes back, or the next interruption.
  template <class Park>
  void interrupt(std::vector<FinishedResponse>& ended, Park&& park) {
    forget_kept();
    for (Response& r : responses_) {
      if (r.state != State::Free)
        keep(r, park);
    }
    take_all(ended);
  }
  /// Tokens are of this version from the next step on.
  void begin_version(PolicyVersion version);
  /// Everything cached has to be computed again, as under other weights.
  void invalidate_cache();

  /// Lets waiting responses in.
  void admit();
  /// Makes room for the next step. `park(piece)` says whether what a response has cached goes to
  /// the host. Requires: nothing is to be prefilled.
  template <class Park>
  void preempt(Park&& park) {
    while (kv_.free() < 0)
      preempt_youngest(park);
    drop_void_ends();
  }
  /// Until the next response ends or the cache is full; 0 if none runs.
  std::int64_t steps() const;
  /// Requires: k <= steps().
  void decode(std::int64_t k, std::vector<FinishedResponse>& ended);

  std::deque<PrefillPiece>& prefill() { return prefill_; }
  const std::deque<PrefillPiece>& prefill() const { return prefill_; }
  std::int64_t running() const { return running_; }
  std::int64_t waiting() const { return waiting_; }
  std::int64_t load() const { return running_ + waiting_; }
  /// Decode steps before the last response here may end, at least; 0 if there is none.
  std::int64_t steps_left() const { return load() == 0 ? 0 : steps_left(responses_[longest_]); }
  /// The response that needs them.
  std::optional<ResponseId> longest() const {
    return load() == 0 ? std::nullopt : std::optional(responses_[longest_].request.response);
  }
  /// Tokens of all running responses, prompts counted for each.
  std::int64_t context() const { return context_; }
  const KvBlocks& kv() const { return kv_; }
  std::int64_t steps_done() const { return counter_; }
  /// Tokens cached on the host for responses that wait.
  std::int64_t parked_tokens() const { return parked_tokens_; }
  std::int64_t preemptions() const { return preemptions_; }
  /// That any decode step used.
  std::int64_t most_blocks() const { return most_blocks_; }

 private:
  using Slot = std::uint32_t;
  enum class State : std::uint8_t { Free, Waiting, Running };

  struct Response {
    BatchRequest request;
    std::int64_t done = 0;     ///< Tokens when it entered; while waiting: now.
    std::int64_t entered = 0;  ///< Step at which it did.
    std::uint64_t ticket = 0;  ///< Of its last change of state; marks older references void.
    Slot group = 0;
    State state = State::Free;
    bool parked = false;                    ///< What it has done is cached on the host.
    bool moved = false;                     ///< Or on another engine.
    std::vector<actors::Segment> segments;  ///< Of earlier stays in the batch.
  };
  struct Group {
    GroupId id;
    std::int64_t prompt = 0;
    std::int32_t members = 0;
    std::int32_t running = 0;
    bool prompted = false;  ///< Its prompt was cached before.
  };
  struct Reference {
    Slot slot;
    std::uint64_t ticket;
    ResponseId response{};
  };
  struct End {
    std::int64_t step;
    Reference response;
    /// For a heap with the earliest end on top, the older of two.
    bool operator<(const End& o) const {
      return step != o.step ? step > o.step : response.ticket > o.response.ticket;
    }
  };
  struct VersionStart {
    std::int64_t step;
    PolicyVersion version;
  };

  bool valid(const Reference& r) const { return responses_[r.slot].ticket == r.ticket; }
  Slot group_of(const BatchRequest& request);
  std::int64_t own_tokens(const Response& r) const;
  std::int64_t shared_blocks(const Group& g) const { return g.prompt / kv_.block(); }
  bool fits(const Response& r) const;
  /// Into a queue that is served from the front, or given up from the back.
  template <class Queue>
  void file(Queue& queue, const Reference& r) const;
  void enter(Slot slot);
  void leave(Response& r);
  Slot take_youngest();
  /// Out of the batch or the queue.
  void stop(Response& r);
  template <class Park>
  void preempt_youngest(Park&& park) {
    Response& r = responses_[take_youngest()];
    r.parked = r.done > 0 && park(PrefillPiece{r.done, r.request.prompt});
    if (r.parked)
      parked_tokens_ += r.done;
  }
  void unpark(Response& r);
  void forget_kept();
  void take_all(std::vector<FinishedResponse>& ended);
  /// Its prefix is, here or on the host; none is while any is being computed.
  bool is_cached(const Response& r) const {
    return r.parked || (r.state == State::Running && prefill_.empty());
  }
  template <class Park>
  void keep(const Response& r, Park&& park) {
    const std::int64_t done = r.done + (r.state == State::Running ? counter_ - r.entered : 0);
    if (done == 0 || !is_cached(r) || !(r.parked || park(PrefillPiece{done, r.request.prompt})))
      return;
    kept_[r.request.response] = done;
    parked_tokens_ += done;
  }
  void add_segments(Response& r) const;
  void forget(Slot slot);
  std::int64_t steps_left(const Response& r) const {
    return r.request.length - r.done - (r.state == State::Running ? counter_ - r.entered : 0);
  }
  void find_longest();
  FinishedResponse take(Slot slot, actors::FinishReason finish);
  void drop_void_ends();

  // Constant after construction.
  BatchLimits limits_;
  // Mutable state.
  KvBlocks kv_;
  std::vector<Response> responses_;
  std::vector<Slot> free_slots_;
  Slot longest_ = 0;  ///< The most steps left, while there is a load.
  SlotIndex by_id_;
  std::vector<Group> groups_;
  std::vector<Slot> free_groups_;
  std::unordered_map<GroupId, Slot> group_by_id_;
  std::map<ResponseId, std::int64_t> kept_;  ///< Tokens on the host of what was interrupted.
  std::deque<Reference> queue_;              ///< Waiting, with void ones.
  std::vector<Reference> ages_;  ///< Running; the first to leave is the last; with void ones.
  std::vector<End> ends_;        ///< Heap, with void ones below the top.
  std::deque<PrefillPiece> prefill_;
  std::vector<VersionStart> versions_;
  std::int64_t running_ = 0;
  std::int64_t waiting_ = 0;
  std::int64_t context_ = 0;
  std::int64_t counter_ = 0;
  std::int64_t parked_tokens_ = 0;
  std::int64_t preemptions_ = 0;
  std::int64_t most_blocks_ = 0;
  std::uint64_t ticket_ = 0;
};

}  // namespace temper::rollout
