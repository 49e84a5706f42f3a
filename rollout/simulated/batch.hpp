// A model of continuous batching: which responses of an engine run, which wait, which KV blocks
// they hold, and when each ends. Counts steps, not time.
//
// Rules (those of vLLM): responses wait first come, first served. One enters while fewer than
// `concurrency` run and the free blocks cover its own tokens and, for the first of its group, the
// prompt, with 1 % of the cache to spare unless nothing runs. If the next step needs more blocks
// than are free, the youngest response is preempted: its blocks are released, it waits at the head
// of the queue, and its own cache is recomputed when it re-enters, or copied back from the host if
// it was parked there, whichever is faster. With deadline_first, responses wait in the order of
// their ids, which is that of their groups and approximately that of their deadlines, and the one
// with the highest id is preempted, so that the most urgent group is served first. Full blocks of a
// prompt are shared by the running responses of a group; each has its own copy of the last, partial
// one. Prefill creates cached tokens, each decode step one token of every running response.
//
// Chunked prefill: responses enter together, once no prefill is pending. Until theirs is done they
// hold their blocks, and others decode, except while caches are recomputed under new weights.
//
// Disaggregated prefill: likewise, but responses only enter together while what they prefill fills
// at most one step of the prefill instance and its cache, or is that of one response. The owner
// admits no others until it calls finish_prefill(). A response without anything to prefill that
// enters behind others waits for them.
//
// Tools: a response that calls one leaves the batch and later returns to the end of the queue, with
// the result as tokens to be prefilled. Its cache stays in its blocks until others need them. Then
// the one that called first loses its blocks, and its cache is parked or recomputed as above.
//
// Versions: tokens are of the version of their step, those of a result of the current one when it
// comes. With `finish`, all tokens of a response are of the version under which it entered first;
// withdrawn, it loses them.
//
// Assumption: responses spread so evenly over the replicas that their caches act as one. A response
// that needs more than the cache of one replica fails at once. With `finish`, too, a prompt is
// computed and cached once for all running responses of a group.
// Cost: O(log n) for each response and O(block) for each run of steps, none per token.
#pragma once

#include "actors/protocol/counted.hpp"
#include "actors/simulation/tool_calls.hpp"
#include "rollout/simulated/kv_blocks.hpp"
#include "rollout/simulated/slot_index.hpp"

#include <algorithm>
#include <deque>
#include <limits>
#include <map>
#include <numeric>
#include <unordered_map>

namespace temper::rollout {

struct BatchLimits {
  std::int64_t concurrency = std::numeric_limits<std::int64_t>::max();
  std::int64_t blocks = 0;          ///< Blocks of all replicas.
  std::int64_t replica_blocks = 0;  ///< Blocks of one replica.
  std::int64_t block = 128;         ///< Tokens per block.
  std::int64_t drafts = 0;          ///< Tokens of a response that a step caches besides the next.
  bool deadline_first = false;      ///< Serve lower ids first, hence older groups; see the rules.
  bool finish = false;              ///< Responses end under the version that began them.
  bool chunked_prefill = false;     ///< Responses decode beside the prefill of others.
  bool disaggregated = false;       ///< Others than those that decode prefill.
  std::int64_t prefill_tokens = 0;  ///< Disaggregated: tokens of a prefill step,
  std::int64_t prefill_cache = 0;   ///< and cached tokens that the prefill instance holds.
  const actors::ToolCalls* tools = nullptr;  ///< Null: no response calls a tool.
};

struct BatchRequest {
  LeaseId lease;
  ResponseId response;
  GroupId group;
  std::int64_t prompt = 0;
  std::int64_t prefix = 0;  ///< Tokens that it already has.
  std::int64_t length = 0;  ///< Tokens at its end, prefix included.
  bool cut_off = false;     ///< A limit ends it at that length.
  bool kept = false;        ///< After an interruption, the prefix may still be cached here.
  bool moved = false;       ///< The cache of the prefix comes from another engine.
};

/// Running responses that one version generates.
struct VersionLoad {
  std::int64_t running = 0;
  std::int64_t context = 0;  ///< Tokens of all of them; the prompt counts for each.
};

/// Tokens to cache before decoding continues, after `offset` tokens of the same sequence.
struct PrefillPiece {
  std::int64_t tokens = 0;
  std::int64_t offset = 0;
  bool parked = false;    ///< In host memory: copied, not computed.
  bool repeated = false;  ///< Computed before, here or elsewhere.
  bool moved = false;     ///< On another engine: copied, not computed.
  /// Of the tokens before it, those that are not computed together with it.
  std::int64_t cached = 0;

  bool copied() const { return parked || moved; }
};

class Batch {
  using Slot = std::uint32_t;

 public:
  using FinishedResponse = actors::CountedGenerated::Item;

  Batch(const BatchLimits& limits, PolicyVersion version);

  /// Replaces a response with the same id. Appends finished responses to `ended`.
  void add(const BatchRequest& request, std::vector<FinishedResponse>& ended);
  /// Removes a response, with its tokens if it has any; no effect if it is not here.
  void cancel(ResponseId response, std::vector<FinishedResponse>& ended);
  /// Removes these responses, in the given order, each with its tokens, to continue on another
  /// engine; no effect on those that are not here.
  void withdraw(const std::vector<ResponseId>& responses, std::vector<FinishedResponse>& ended);
  /// Removes all responses, by id, each with its tokens. Caches for which `park(piece)` returns
  /// true are kept in host memory until the response returns, or the next interruption.
  template <class Park>
  void interrupt(std::vector<FinishedResponse>& ended, Park&& park) {
    forget_kept();
    for (Response& r : responses_) {
      if (r.state != State::Free)
        keep(r, park);
    }
    take_all(ended);
  }
  /// Tokens have this version from the next step on.
  void begin_version(PolicyVersion version);
  /// All caches must be recomputed, as under other weights.
  void invalidate_cache();

  /// Admits waiting responses. `park(piece)`: as in preempt().
  template <class Park>
  void admit(Park&& park) {
    if (limits_.chunked_prefill && !prefill_.empty())
      return;
    if (prefill_.empty())
      join();
    pending_ = {};
    if (limits_.disaggregated)
      pending_ = std::accumulate(prefill_.begin(), prefill_.end(), PrefillLoad{});
    while (const auto slot = next_admitted(park)) {
      queue_.pop_front();
      enter(*slot);
    }
    if (prefill_.empty())
      join();
  }
  /// Whether running responses decode in a step with the pending prefills.
  bool decodes_beside_prefill() const { return enter_together() && running_ > 0 && !recomputing_; }
  /// All pending prefills are done. Requires: disaggregated.
  void finish_prefill() {
    prefill_.clear();
    join();
  }
  /// Preempts responses to make space for the next step. `park(piece)` decides whether a cache
  /// moves to host memory. Requires: the next step decodes.
  template <class Park>
  void preempt(Park&& park) {
    while (kv_.free() < 0) {
      if (!evict(std::nullopt, park))
        preempt_youngest(park);
    }
    drop_void_ends();
  }
  /// Steps until the next response ends or the cache is full; 0 if none runs.
  std::int64_t steps() const;
  /// Requires: k <= steps().
  void decode(std::int64_t k, std::vector<FinishedResponse>& ended);

  /// A response that waits for a tool.
  class Call {
   public:
    ResponseId response() const { return response_; }
    const actors::ToolCall& call() const { return call_; }
    std::uint64_t ticket() const { return ticket_; }  ///< Grows from call to call.

   private:
    friend class Batch;
    Call(Slot slot, std::uint64_t ticket, ResponseId response, const actors::ToolCall& call)
        : slot_(slot), ticket_(ticket), response_(response), call_(call) {}

    Slot slot_;
    std::uint64_t ticket_;
    ResponseId response_;
    actors::ToolCall call_;
  };
  /// Those that began since the last query, in order.
  std::vector<Call> take_calls() { return std::exchange(calls_, {}); }
  /// False once the response has left or has its answer.
  bool is_open(const Call& call) const {
    const Response& r = responses_[call.slot_];
    return r.ticket == call.ticket_ && r.state == State::Calling;
  }
  /// The answer has come. Requires: is_open(call).
  void answer(const Call& call);

  std::deque<PrefillPiece>& prefill() { return prefill_; }
  const std::deque<PrefillPiece>& prefill() const { return prefill_; }
  std::int64_t running() const { return running_; }
  std::int64_t waiting() const { return waiting_; }
  /// Responses that wait for a tool.
  std::int64_t calling() const { return calling_; }
  std::int64_t load() const { return running_ + waiting_ + calling_; }
  /// Lower bound of the decode steps until the last response here ends; 0 if there is none.
  std::int64_t steps_left() const { return load() == 0 ? 0 : steps_left(responses_[longest_]); }
  /// The response that determines it.
  std::optional<ResponseId> longest() const {
    return load() == 0 ? std::nullopt : std::optional(responses_[longest_].request.response);
  }
  /// Tokens of all running responses; the prompt counts for each.
  std::int64_t context() const { return context_; }
  /// The running responses by version, oldest first; without `finish`, all in one.
  std::vector<VersionLoad> loads() const;
  /// Versions older than the current one that responses still need; without `finish` 0.
  std::int64_t older_versions() const;
  const KvBlocks& kv() const { return kv_; }
  std::int64_t steps_done() const { return counter_; }
  /// Tokens cached in host memory for waiting responses.
  std::int64_t parked_tokens() const { return parked_tokens_; }
  std::int64_t preemptions() const { return preemptions_; }
  /// Most blocks that a decode step used.
  std::int64_t most_blocks() const { return most_blocks_; }

 private:
  enum class State : std::uint8_t { Free, Waiting, Entering, Running, Calling };

  struct Response {
    BatchRequest request;
    std::int64_t done = 0;     ///< Tokens when it entered; while it waits: current tokens.
    std::int64_t entered = 0;  ///< Step at which it entered.
    std::uint64_t ticket = 0;  ///< Of its last change of state; makes older references void.
    Slot group = 0;
    State state = State::Free;
    std::optional<PolicyVersion> version;   ///< With `finish`, of the version that began it.
    std::int64_t parked = 0;                ///< Tokens of it that are cached in host memory.
    bool moved = false;                     ///< Its cache is on another engine.
    std::optional<actors::ToolCall> call;   ///< The next one, or the one whose answer it lacks.
    std::int64_t results = 0;               ///< Tokens of the answers that it lacks.
    std::int64_t fresh = 0;                 ///< Its last tokens, of an answer, not prefilled yet.
    std::int64_t held = 0;                  ///< Blocks with its cache while it is not running.
    std::vector<actors::Segment> segments;  ///< Of earlier stays in the batch.
  };
  struct Group {
    GroupId id;
    std::int64_t prompt = 0;
    std::int32_t members = 0;
    std::int32_t holders = 0;  ///< Members with blocks, which share those of the prompt.
    std::int32_t held = 0;     ///< Those of them that call, or wait after a call.
    bool prompted = false;     ///< Its prompt was cached before.
  };
  struct Reference {
    Slot slot;
    std::uint64_t ticket;
    ResponseId response{};
  };
  struct End {
    std::int64_t step;
    Reference response;
    /// For a heap with the earliest end on top, on ties the older response.
    bool operator<(const End& o) const {
      return step != o.step ? step > o.step : response.ticket > o.response.ticket;
    }
  };
  struct PrefillLoad {
    std::int64_t computed = 0;
    std::int64_t cached = 0;  ///< Tokens in the cache of those that prefill.
    PrefillLoad operator+(const PrefillPiece& piece) const {
      if (piece.copied())
        return *this;
      return {computed + piece.tokens, cached + piece.cached + piece.tokens};
    }
  };
  struct VersionStart {
    std::int64_t step;
    PolicyVersion version;
  };

  bool valid(const Reference& r) const { return responses_[r.slot].ticket == r.ticket; }
  Slot group_of(const BatchRequest& request);
  /// Whether responses wait in the batch for their prefill, and others decode.
  bool enter_together() const { return limits_.chunked_prefill || limits_.disaggregated; }
  /// What must be prefilled before it runs; of the prompt only if `prompt`.
  template <class Use>
  void for_each_piece(const Response& r, bool prompt, Use&& use) const {
    const Group& g = groups_[r.group];
    const std::int64_t old = r.done - r.fresh;
    const bool recomputed = old > 0 && r.held == 0;
    const std::int64_t before = prompt ? 0 : g.prompt;
    if (prompt && g.prompt > 0)
      use({g.prompt, 0, false, g.prompted || r.request.prefix > 0});
    if (recomputed)
      use({old, g.prompt, r.parked > 0, true, r.moved, before});
    if (r.fresh > 0) {
      const bool together = recomputed && r.parked == 0 && !r.moved;
      use({r.fresh, g.prompt + old, false, false, false, together ? 0 : before + old});
    }
  }
  /// Whether it may be prefilled together with those that are pending.
  bool fits_pending(const Response& r) const {
    const Group& g = groups_[r.group];
    const bool prompt = r.held == 0 && g.holders == g.held;  // Those that hold it may lose it.
    PrefillLoad all = pending_;
    for_each_piece(r, prompt, [&](const PrefillPiece& p) { all = all + p; });
    return all.computed == pending_.computed ||
           (all.computed <= limits_.prefill_tokens && all.cached <= limits_.prefill_cache);
  }
  std::int64_t own_tokens(const Response& r) const;
  std::int64_t shared_blocks(const Group& g) const { return g.prompt / kv_.block(); }
  /// Blocks that must become free before it may enter, and those that can.
  std::int64_t missing_for(const Response& r) const;
  std::int64_t evictable_for(const Response& r) const;
  /// Adds to a queue that is served from the front; responses are abandoned from the back.
  template <class Queue>
  void file(Queue& queue, const Reference& r) const {
    auto at = queue.end();
    if (limits_.deadline_first)
      at = std::ranges::upper_bound(queue, r.response, {}, &Reference::response);
    queue.insert(at, r);
  }
  /// The head of the queue, if there is room for it.
  template <class Park>
  std::optional<Slot> next_admitted(Park&& park) {
    while (!queue_.empty() && !valid(queue_.front()))
      queue_.pop_front();
    if (queue_.empty() || running_ + std::ssize(entering_) >= limits_.concurrency)
      return std::nullopt;
    const Slot head = queue_.front().slot;
    if (limits_.disaggregated && pending_.computed > 0 && !fits_pending(responses_[head]))
      return std::nullopt;
    if (missing_for(responses_[head]) > evictable_for(responses_[head]))
      return std::nullopt;
    while (missing_for(responses_[head]) > 0)
      evict(head, park);
    return head;
  }
  void enter(Slot slot);
  void run(Slot slot);
  /// The prefills are done: those that entered run.
  void join();
  void leave(Response& r);
  std::int64_t evictable_prompt(const Group& g) const {
    return g.holders > 0 && g.holders == g.held ? shared_blocks(g) : 0;
  }
  /// Adds so many to its counts, and holds or releases the prompt. True if it holds it now, but did
  /// not before.
  bool count_holders(Group& g, std::int32_t holders, std::int32_t held);
  Slot take_youngest();
  void begin_call(Slot slot);
  void release_held(Response& r);
  /// Of those that hold blocks without running, the one whose call began first; not this one.
  std::optional<Slot> first_held(std::optional<Slot> except);
  /// Takes the blocks of that response; false if there is none.
  template <class Park>
  bool evict(std::optional<Slot> except, Park&& park) {
    const auto slot = first_held(except);
    if (!slot)
      return false;
    Response& r = responses_[*slot];
    set_parked(r, park(PrefillPiece{r.done - r.fresh, r.request.prompt}));
    release_held(r);
    return true;
  }
  /// Removes from the batch or the queue.
  void stop(Response& r);
  template <class Park>
  void preempt_youngest(Park&& park) {
    Response& r = responses_[take_youngest()];
    set_parked(r, r.done > 0 && park(PrefillPiece{r.done, r.request.prompt}));
  }
  void set_parked(Response& r, bool parked) {
    r.parked = parked ? r.done - r.fresh : 0;
    parked_tokens_ += r.parked;
  }
  void unpark(Response& r);
  void forget_kept();
  void take_all(std::vector<FinishedResponse>& ended);
  /// Whether its prefix is cached, here or in host memory; false for all during a prefill.
  bool is_cached(const Response& r) const {
    if (r.state == State::Running)
      return prefill_.empty() || decodes_beside_prefill();
    return r.state != State::Entering && r.fresh == 0 && (r.parked > 0 || r.held > 0);
  }
  template <class Park>
  void keep(const Response& r, Park&& park) {
    const std::int64_t done = r.done + (r.state == State::Running ? counter_ - r.entered : 0);
    if (done == 0 || !is_cached(r) || !(r.parked > 0 || park(PrefillPiece{done, r.request.prompt})))
      return;
    kept_[r.request.response] = done;
    parked_tokens_ += done;
  }
  void add_segments(Response& r) const;
  static void add_segment(Response& r, PolicyVersion version, std::int64_t tokens);
  void count(const Response& r, std::int64_t responses);
  void forget(Slot slot);
  std::int64_t steps_left(const Response& r) const {
    return r.request.length - r.done - r.results -
           (r.state == State::Running ? counter_ - r.entered : 0);
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
  Slot longest_ = 0;  ///< The response with most steps left, while there is a load.
  SlotIndex by_id_;
  std::vector<Group> groups_;
  std::vector<Slot> free_groups_;
  std::unordered_map<GroupId, Slot> group_by_id_;
  std::map<ResponseId, std::int64_t> kept_;  ///< Tokens in host memory of interrupted responses.
  std::deque<Reference> queue_;              ///< Waiting; includes void references.
  std::vector<Slot> entering_;               ///< In order; their prefills are pending.
  bool recomputing_ = false;     ///< The pending prefills are also of running responses.
  std::vector<Reference> ages_;  ///< Running, last one preempted first; includes void references.
  std::vector<End> ends_;        ///< Of stays. Heap; void references below the top.
  std::deque<Reference> held_;   ///< Not running, with blocks, in order of their calls; some void.
  std::vector<Call> calls_;      ///< Those that nobody has taken yet.
  std::deque<PrefillPiece> prefill_;
  PrefillLoad pending_;  ///< Of prefill_, during admit() of disaggregated prefill.
  std::vector<VersionStart> versions_;
  struct OpenVersion {
    VersionLoad load;
    std::int64_t responses = 0;  ///< That began under it and have not ended.
  };
  std::map<PolicyVersion, OpenVersion> open_;  ///< With `finish`.
  std::int64_t running_ = 0;
  std::int64_t waiting_ = 0;
  std::int64_t calling_ = 0;
  std::int64_t context_ = 0;
  std::int64_t counter_ = 0;
  std::int64_t parked_tokens_ = 0;
  std::int64_t evictable_ = 0;  ///< Blocks of responses that call, or wait after a call.
  std::int64_t preemptions_ = 0;
  std::int64_t most_blocks_ = 0;
  std::uint64_t ticket_ = 0;
};

}  // namespace temper::rollout
