// A simulated engine that takes every decode step of every response. Written from the rules in
// rollout/simulated/batch.hpp and engine_cost.hpp, without any of their data structures.
#pragma once

#include "actors/simulation/role_layouts.hpp"
#include "actors/simulation/role_memory.hpp"
#include "actors/simulation/tool_calls.hpp"
#include "actors/simulation/weight_moves.hpp"
#include "tests/rollout/simulated/naive_pass.hpp"
#include "tests/rollout/simulated/naive_pool.hpp"
#include "tests/rollout/simulated/simulated_world.hpp"

#include <cmath>
#include <deque>
#include <limits>
#include <map>
#include <optional>
#include <utility>
#include <vector>

namespace temper::rollout {

struct NaivelyFinished {
  ResponseId response;
  std::int64_t tokens = 0;
  double seconds = 0;
  std::vector<actors::Segment> segments;
};

class NaiveEngine {
 public:
  NaiveEngine(const actors::SimulationSettings& s, std::uint64_t seed, OnNewWeights on_new_weights)
      : s_(s),
        on_new_weights_(on_new_weights),
        cost_(s),
        pass_(s),
        prompts_(s.config.prompt, seed, actors::kPromptLengths),
        responses_(s.config.response, seed, actors::kResponseLengths) {
    if (s.config.tools)
      tools_.emplace(*s.config.tools, seed);
    capacity_ = actors::kv_tokens(s).count() / s.config.rollout.block * pass_.replicas();
    if (s.config.rollout.prefill_cards > 0)
      pool_.emplace(s);
  }

  void run(const std::vector<Scheduled>& messages, double start) {
    now_ = start;
    std::size_t next = 0;
    while (true) {
      const auto message_at = [&] {
        return next < messages.size() ? seconds(messages[next].at) : kNever;
      };
      const auto event_at = [&] { return std::min(message_at(), answer_at()); };
      while (event_at() <= now_) {
        if (answer_at() < message_at())
          answer();
        else
          arrive(messages[next++]);
      }
      if (pool_) {
        if (!step_with_pool(event_at()))
          break;
        continue;
      }
      if (pieces_.empty())
        join();
      if (pieces_.empty() || !s_.config.rollout.chunked_prefill)
        admit();
      if (pieces_.empty() || !s_.config.rollout.chunked_prefill)
        join();
      if (!pieces_.empty() && s_.config.rollout.chunked_prefill && !recomputing_ &&
          !running_.empty()) {
        step();
        ++prefills;
        cost_.finish_prefill(pieces_);
      } else if (!pieces_.empty()) {
        now_ += cost_.prefill(pieces_, 0);
        cost_.finish_prefill(pieces_);
        ++prefills;
      } else if (!running_.empty()) {
        step();
      } else if (event_at() < kNever) {
        now_ = event_at();
      } else {
        break;
      }
    }
  }

  std::vector<NaivelyFinished> finished;
  std::int64_t steps = 0;      ///< Of one token each.
  std::int64_t undrafted = 0;  ///< Of them, those with a pass without drafts.
  std::int64_t prefills = 0;
  std::int64_t preemptions = 0;
  std::int64_t most_blocks = 0;
  std::int64_t parked = 0;
  std::int64_t evicted = 0;  ///< Caches of responses that were not running.

 private:
  static constexpr double kNever = NaivePool::kNever;
  struct Response {
    ResponseId id;
    std::uint64_t group = 0;
    std::int64_t prompt = 0;
    std::int64_t prefix = 0;
    std::int64_t done = 0;
    std::int64_t length = 0;
    bool parked = false;
    std::vector<actors::Segment> segments = {};
    std::optional<PolicyVersion> began = {};  ///< When it entered first.
    std::deque<actors::ToolCall> calls = {};
    std::int64_t fresh = 0;   ///< Of an answer, not computed yet.
    bool cached = false;      ///< Has its blocks, without running.
    double called_at = 0;     ///< The time of its current call,
    double answered = 0;      ///< its end,
    std::int64_t called = 0;  ///< and its number.
  };

  /// False if nothing happens any more.
  bool step_with_pool(double event_at) {
    if (pool_->ends <= now_) {
      pieces_.clear();
      join();
      prefills += pool_->steps;
      pool_->ends = kNever;
    }
    if (pool_->ends == kNever) {
      admit();
      if (pieces_.empty())
        join();
      else
        pool_->begin(pieces_, now_);
    }
    if (!running_.empty())
      step();
    else if (const double next = std::min(event_at, pool_->ends); next < kNever)
      now_ = next;
    else
      return false;
    return true;
  }
  bool fits_pool(const Response& r) const {
    const auto same = [&](const Response& o) { return o.group == r.group; };
    const bool alone = !r.cached && std::ranges::none_of(in_blocks(), same);
    return pool_->takes(pieces_, pieces_of(r, alone));
  }
  static std::deque<PrefillPiece> pieces_of(const Response& r, bool alone) {
    std::deque<PrefillPiece> out;
    const std::int64_t old = r.done - r.fresh;
    std::int64_t before = alone ? 0 : r.prompt;  // On the other devices.
    if (alone)
      out.push_back({r.prompt, 0});
    if (old > 0 && !r.cached) {
      out.push_back({old, r.prompt, r.parked});
      out.back().cached = before;
    }
    before = old > 0 && !r.cached && !r.parked ? 0 : before + old;
    if (r.fresh > 0) {
      out.push_back({r.fresh, r.prompt + old});
      out.back().cached = before;
    }
    return out;
  }
  bool copying_pays(const PrefillPiece& piece) {
    return pool_ ? pool_->copying_pays(piece) : cost_.copying_pays(piece);
  }

  /// Those whose prefills are done run.
  void join() {
    running_.insert(running_.end(), entering_.begin(), entering_.end());
    entering_.clear();
    recomputing_ = false;
  }
  std::vector<Response> in_blocks() const {
    std::vector<Response> out = running_;
    out.insert(out.end(), entering_.begin(), entering_.end());
    return out;
  }

  double answer_at() const {
    double first = kNever;
    for (const Response& r : calling_)
      first = std::min(first, r.answered);
    return first;
  }
  void answer() {
    const auto first = std::ranges::min_element(calling_, {}, &Response::answered);
    Response r = *first;
    calling_.erase(first);
    give_to_tools(r.answered);
    r.fresh = r.calls.front().result;
    r.calls.pop_front();
    r.done += r.fresh;
    add_tokens(r, r.fresh);
    waiting_.push_back(r);
  }
  void call(Response r) {
    r.called_at = now_;
    r.answered = kNever;
    r.called = ++calls_;
    calling_.push_back(r);
    give_to_tools(now_);
  }
  void give_to_tools(double now) {
    const auto served = [](const Response& r) { return r.answered < kNever; };
    for (Response& r : calling_) {
      if (s_.config.tools->pool > 0 &&
          std::ranges::count_if(calling_, served) >= s_.config.tools->pool)
        return;
      if (!served(r))
        r.answered = std::max(now, r.called_at) + seconds(tools_->latency(r.id, r.calls.front()));
    }
  }
  void add_tokens(Response& r, std::int64_t tokens) const {
    if (tokens == 0)
      return;
    if (r.segments.empty() || r.segments.back().version != version_of(r))
      r.segments.push_back({version_of(r), Tokens(0)});
    r.segments.back().tokens += Tokens(tokens);
  }

  void arrive(const Scheduled& s) {
    const auto message = actors::IncomingMessage::from(s.message);
    if (message.is<actors::CountedGenerate>())
      generate(*message.decode<actors::CountedGenerate>());
    if (message.is<actors::CommitWeights>())
      commit(message.decode<actors::CommitWeights>()->version);
    if (message.is<actors::Cancel>()) {
      const auto cancel = *message.decode<actors::Cancel>();
      const bool some_entered = !entering_.empty();
      for (const ResponseId id : cancel.responses) {
        give_back(running_, id);
        give_back(waiting_, id);
        give_back(calling_, id);
        give_back(entering_, id);
        std::erase_if(entering_, [&](const Response& r) { return r.id == id; });
        std::erase_if(calling_, [&](const Response& r) { return r.id == id; });
        std::erase_if(running_, [&](const Response& r) { return r.id == id; });
        std::erase_if(waiting_, [&](const Response& r) { return r.id == id; });
      }
      if (entering_.empty() && (running_.empty() || (some_entered && !recomputing_)))
        pieces_.clear();
      if (pool_ && pieces_.empty())
        pool_->ends = kNever;
    }
  }

  /// The tokens sampled so far.
  template <class Responses>
  void give_back(const Responses& responses, ResponseId id) {
    for (const Response& r : responses) {
      if (r.id == id && r.done > r.prefix)
        finished.push_back({r.id, r.done - r.prefix, now_, r.segments});
    }
  }

  void generate(const actors::CountedGenerate& m) {
    for (const auto& item : m.items) {
      waiting_.push_back({item.response,
                          m.group.value(),
                          prompts_.of(m.group.value()).count(),
                          item.prefix.count(),
                          item.prefix.count(),
                          responses_.of(item.response.value()).count()});
      Response& r = waiting_.back();
      if (!tools_)
        continue;
      for (auto c = tools_->left(r.id, r.length, r.prefix).next; c;
           c = tools_->after(r.id, r.length, *c))
        r.calls.push_back(*c);
      if (!r.calls.empty() && r.calls.front().at == r.prefix) {
        call(r);
        waiting_.pop_back();
      }
    }
  }

  void commit(PolicyVersion version) {
    if (pool_ && pool_->ends > now_)
      pool_->ends = kNever;
    now_ += actors::swap_seconds(sim_hw::make_fabric(s_.cluster), s_);
    version_ = version;
    if (on_new_weights_ != OnNewWeights::Recompute)
      return;
    pieces_.clear();
    for (Response& r : waiting_)
      r.parked = r.cached = false;
    for (Response& r : calling_)
      r.parked = r.cached = false;
    recomputing_ = !running_.empty();
    std::map<std::uint64_t, bool> prompt_done;
    for (const Response& r : in_blocks()) {
      if (!std::exchange(prompt_done[r.group], true))
        pieces_.push_back({r.prompt, 0});
      if (r.done > 0)
        pieces_.push_back({r.done, r.prompt});
    }
  }

  /// The responses that hold blocks without running; not this one.
  std::vector<Response*> holders(std::optional<ResponseId> except = {}) {
    std::vector<Response*> out;
    for (auto* list : {&calling_, &waiting_}) {
      for (Response& r : *list) {
        if (r.cached && r.id != except)
          out.push_back(&r);
      }
    }
    return out;
  }
  bool evict(std::optional<ResponseId> except = {}) {
    const auto held = holders(except);
    if (held.empty())
      return false;
    Response& r = **std::ranges::min_element(held, {}, &Response::called);
    r.cached = false;
    r.parked = copying_pays({r.done - r.fresh, r.prompt, true});
    parked += r.parked ? 1 : 0;
    ++evicted;
    return true;
  }

  /// Ensures space for one more token of each response.
  std::int64_t blocks_of(const std::vector<Response>& responses,
                         const std::vector<Response*>& held) const {
    const std::int64_t block = s_.config.rollout.block;
    std::map<std::uint64_t, std::int64_t> prompts;
    std::int64_t blocks = 0;
    for (const Response& r : responses) {
      prompts[r.group] = r.prompt / block;
      const std::int64_t own = r.prompt % block + r.done + 1 + s_.config.rollout.speculation.depth;
      blocks += (own + block - 1) / block;
    }
    for (const Response* r : held) {
      prompts[r->group] = r->prompt / block;
      blocks += (r->prompt % block + r->done - r->fresh) / block + 1;
    }
    for (const auto& [group, shared] : prompts)
      blocks += shared;
    return blocks;
  }

  void admit() {
    while (!waiting_.empty()) {
      const Response r = waiting_.front();
      auto with = in_blocks();
      if (std::ssize(with) >= s_.concurrency || (pool_ && !fits_pool(r)))
        return;
      const std::int64_t keep = with.empty() ? 0 : capacity_ / 100;
      with.push_back(r);
      if (blocks_of(with, {}) + keep > capacity_)
        return;  // Even if nobody else held blocks.
      while (blocks_of(with, holders(r.id)) + keep > capacity_) {
        if (!evict(r.id))
          return;
      }
      const bool alone =
          std::ranges::none_of(in_blocks(),
                               [&](const Response& o) { return o.group == r.group; }) &&
          std::ranges::none_of(holders(), [&](const Response* o) { return o->group == r.group; });
      for (const PrefillPiece& piece : pieces_of(r, alone))
        pieces_.push_back(piece);
      entering_.push_back(r);
      entering_.back().parked = entering_.back().cached = false;
      entering_.back().fresh = 0;
      entering_.back().began = r.began.value_or(version_);
      waiting_.pop_front();
    }
  }

  void step() {
    while (blocks_of(in_blocks(), holders()) > capacity_) {
      if (evict())
        continue;
      waiting_.push_front(running_.back());
      Response& r = waiting_.front();
      r.parked = r.done > 0 && copying_pays({r.done, r.prompt, true});
      parked += r.parked ? 1 : 0;
      running_.pop_back();
      ++preemptions;
    }
    most_blocks = std::max(most_blocks, blocks_of(in_blocks(), holders()));
    std::map<PolicyVersion, std::vector<const Response*>> passes;
    for (const Response& r : running_)
      passes[version_of(r)].push_back(&r);
    for (const auto& [version, responses] : passes)
      now_ += pass_seconds(responses);
    const bool drafted = std::ranges::all_of(
        passes, [this](const auto& pass) { return pass_.drafts(std::ssize(pass.second)); });
    undrafted += drafted ? 0 : 1;
    if (!pieces_.empty() && !pool_)
      now_ += cost_.prefill(pieces_, std::ssize(running_));
    ++steps;
    for (Response& r : running_) {
      add_tokens(r, 1);
      if (++r.done == r.length)
        finished.push_back({r.id, r.done - r.prefix, now_, r.segments});
      r.cached = !r.calls.empty() && r.done == r.calls.front().at;
      if (r.cached)
        call(r);
    }
    std::erase_if(running_, [](const Response& r) { return r.cached || r.done == r.length; });
  }

  PolicyVersion version_of(const Response& r) const {
    return on_new_weights_ == OnNewWeights::Finish ? *r.began : version_;
  }

  double pass_seconds(const std::vector<const Response*>& responses) const {
    double context = 0;
    for (const Response* r : responses)
      context += static_cast<double>(r->prompt + r->done);
    return pass_.seconds(std::ssize(responses), context);
  }

  actors::SimulationSettings s_;
  OnNewWeights on_new_weights_;
  EngineCost cost_;
  std::optional<NaivePool> pool_;
  NaivePass pass_;
  actors::Lengths prompts_;
  actors::Lengths responses_;
  std::optional<actors::ToolCalls> tools_;
  std::int64_t calls_ = 0;
  std::int64_t capacity_ = 0;
  double now_ = 0;
  PolicyVersion version_;
  std::deque<Response> waiting_, calling_;
  std::vector<Response> running_, entering_;
  bool recomputing_ = false;
  std::deque<PrefillPiece> pieces_;
};

}  // namespace temper::rollout
