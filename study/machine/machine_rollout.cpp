#include "study/machine/machine_rollout.hpp"

#include <algorithm>
#include <map>
#include <unordered_set>

namespace temper::study {
namespace {

using actors::CardState;
using actors::FinishReason;

constexpr std::int64_t kPrefillRows = 2048;  ///< As TorchEngineOptions::prefill_tokens.
constexpr std::size_t kAdmissionShare = 8;   ///< As the engine's time_to_admit().

}  // namespace

MachineRollout::MachineRollout(const MachineWorld& world, const orchestrator::ActorSpec& slot)
    : MachineActor(world),
      times_(*world.calibration.with_threads(std::max<std::size_t>(1, slot.cards.size()))),
      threads_(slot.cards.size() > 1 ? MachineTask::Threads::Team : MachineTask::Threads::One),
      slots_(static_cast<std::size_t>(slot.concurrency)),
      untouched_(slots_) {}

MachineTask MachineRollout::of_engine(double seconds) const {
  return {seconds, world_.calibration.slowdowns.decode, threads_, {}};
}

Status MachineRollout::on_message(const actors::IncomingMessage& message, actors::Outbox& out) {
  return actors::dispatch(
             message,
             [&](const actors::CountedGenerate& work) { add(work); },
             [&](const actors::Cancel& work) { remove(work.responses, nullptr); },
             [&](const actors::Withdraw& work) {
               actors::CountedGenerated given_up;
               remove(work.responses, &given_up);
               if (!given_up.items.empty())
                 out.send(given_up);
             },
             [&](const actors::StageWeights& work) { to_stage_ = work.weights.version; },
             [&](const actors::CommitWeights& work) {
               orders_.push_back(shown(CardState::WeightSync,
                                       {world_.calibration.weights.commit_us * kMicro,
                                        world_.calibration.slowdowns.other,
                                        MachineTask::Threads::One,
                                        {}},
                                       [this, version = work.version](actors::Outbox& o) {
                                         commit(version);
                                         o.send(actors::WeightsCommitted{version, ""});
                                       }));
             },
             [&](const actors::Switch& work) { orders_.push_back(perform(work.action)); })
      .value_or(Status());
}

void MachineRollout::commit(PolicyVersion version) {
  version_ = version;
  const rollout::OnNewWeights mode = world_.config.rollout.on_new_weights;
  if (mode == rollout::OnNewWeights::Finish)
    return;
  for (Response& r : running_) {
    r.version = version;
    r.outdated = mode == rollout::OnNewWeights::Recompute;
  }
}

void MachineRollout::add(const actors::CountedGenerate& work) {
  const std::int64_t prompt = world_.prompt_length(work.group).count();
  for (const auto& item : work.items) {
    Response r;
    r.lease = work.lease;
    r.id = item.response;
    r.group = work.group;
    r.prompt = prompt;
    r.prefix = item.prefix.count();
    r.length = world_.response_length(item.response, work.group).count();
    if (world_.tools)
      r.call = world_.tools->left(r.id, r.length, r.prefix).next;
    enqueue(std::move(r));
  }
}

void MachineRollout::enqueue(Response r) {
  const auto at = world_.config.stragglers.deadline_first
                      ? std::ranges::upper_bound(queue_, r.id, {}, &Response::id)
                      : queue_.end();
  queue_.insert(at, std::move(r));
}

/// Each answer is a request of its own, whose context is computed again.
void MachineRollout::take_answers() {
  while (!calling_.empty() && calling_.begin()->first <= activity_.now()) {
    Response r = std::move(calling_.extract(calling_.begin()).mapped());
    r.made += r.call->result;
    r.segments.back().tokens += Tokens(r.call->result);
    r.call = world_.tools->after(r.id, r.length, *r.call);
    enqueue(std::move(r));
  }
}

std::optional<Time> MachineRollout::wakes() const {
  return calling_.empty() ? std::nullopt : std::optional(calling_.begin()->first);
}

void MachineRollout::remove(const std::vector<ResponseId>& ids, actors::CountedGenerated* report) {
  const std::unordered_set<ResponseId> gone(ids.begin(), ids.end());
  const auto leaves = [&](Response& r) {
    if (!gone.contains(r.id))
      return false;
    if (report != nullptr) {
      if (world_.tools) {  // Another agent begins it anew.
        r.made = 0;
        r.segments.clear();
      }
      report->items.push_back({r.lease,
                               r.id,
                               Tokens(r.prompt),
                               Tokens(r.made),
                               std::move(r.segments),
                               FinishReason::Interrupted});
    }
    return true;
  };
  std::erase_if(running_, leaves);
  std::erase_if(queue_, leaves);
  for (auto call = calling_.begin(); call != calling_.end();)
    call = leaves(call->second) ? calling_.erase(call) : std::next(call);
}

void MachineRollout::show_wait() {
  if (!all_call_since_ || *all_call_since_ == activity_.now())
    return;
  activity_.add(CardState::WaitTools, *all_call_since_);
  all_call_since_ = activity_.now();
}

std::optional<MachineTask> MachineRollout::next() {
  show_wait();
  all_call_since_.reset();
  take_answers();
  if (!orders_.empty()) {
    MachineTask task = std::move(orders_.front());
    orders_.pop_front();
    return task;
  }
  if (staged_) {
    return MachineTask{0, 1, MachineTask::Threads::One, [this](actors::Outbox& out) {
                         out.send(actors::WeightsStaged{*std::exchange(staged_, {}), ""});
                       }};
  }
  return step();
}

std::optional<MachineTask> MachineRollout::next_second() {
  if (!to_stage_)
    return std::nullopt;
  const PolicyVersion version = *std::exchange(to_stage_, {});
  return MachineTask{world_.calibration.weights.stage_us * kMicro,
                     world_.calibration.slowdowns.other,
                     MachineTask::Threads::One,
                     [this, version](actors::Outbox&) { staged_ = version; }};
}

std::optional<MachineTask> MachineRollout::step() {
  if (queue_.empty() && running_.empty()) {
    if (!calling_.empty())
      all_call_since_ = activity_.now();
    return std::nullopt;
  }
  if (auto again = recompute())
    return again;
  const std::size_t few = std::max<std::size_t>(1, slots_ / kAdmissionShare);
  const std::size_t free = slots_ - running_.size();
  if (!queue_.empty() && free >= std::min(few, queue_.size())) {
    if (auto task = prefill())
      return task;
  }
  return decode();
}

/// None: the new responses need no computation.
std::optional<MachineTask> MachineRollout::prefill() {
  std::int64_t rows = 0, copies = 0;
  std::int64_t entered = 0;
  std::optional<std::pair<GroupId, std::int64_t>>
      computed;  ///< Group and tokens of the last computed response.
  while (!queue_.empty() && running_.size() < slots_ && rows < kPrefillRows) {
    Response r = std::move(queue_.front());
    queue_.pop_front();
    const std::pair content{r.group, r.tokens()};
    if (computed == content && r.tokens() == 0) {
      ++copies;
    } else {
      rows += r.cached();
      computed = content;
    }
    r.version = version_;
    running_.push_back(std::move(r));
    ++entered;
  }
  const auto touched = std::min(static_cast<std::int64_t>(untouched_), entered);
  untouched_ -= static_cast<std::size_t>(touched);
  if (rows == 0)
    return std::nullopt;
  const double seconds = prefill_seconds(times_, rows, copies) +
                         times_.prefill.touch_us * kMicro * static_cast<double>(touched);
  return shown(CardState::Prefill, of_engine(seconds), [](actors::Outbox&) {});
}

/// Recomputes caches of older weights, as many rows as a prefill holds; each prompt once.
std::optional<MachineTask> MachineRollout::recompute() {
  std::int64_t rows = 0, copies = 0;
  std::optional<GroupId> computed;
  for (Response& r : running_) {
    if (!r.outdated || rows >= kPrefillRows)
      continue;
    rows += r.cached() - (computed == r.group ? r.prompt - 1 : 0);
    copies += computed == r.group ? 1 : 0;
    computed = r.group;
    r.outdated = false;
  }
  if (rows == 0)
    return std::nullopt;
  return shown(
      CardState::Prefill, of_engine(prefill_seconds(times_, rows, copies)), [](actors::Outbox&) {});
}

MachineTask MachineRollout::decode() {
  struct Pass {
    std::int64_t batch = 0, context = 0;
  };
  // Adapters of several versions are applied in one pass.
  const bool one_pass = world_.config.model.lora.has_value();
  std::map<PolicyVersion, Pass> passes;
  for (const Response& r : running_) {
    Pass& pass = passes[one_pass ? version_ : r.version];
    ++pass.batch;
    pass.context += r.cached();
  }
  double seconds = 0;
  for (const auto& [version, pass] : passes)
    seconds += decode_seconds(times_, pass.batch, pass.context);
  return shown(
      CardState::Decode, of_engine(seconds), [this](actors::Outbox& out) { finish_step(out); });
}

void MachineRollout::finish_step(actors::Outbox& out) {
  actors::CountedGenerated finished;
  for (std::size_t i = 0; i < running_.size();) {
    Response& r = running_[i];
    ++r.made;
    if (r.segments.empty() || r.segments.back().version != r.version)
      r.segments.push_back({r.version, Tokens(0)});
    r.segments.back().tokens += Tokens(1);
    const bool calls = r.call && r.tokens() == r.call->at;
    if (!calls && r.tokens() < r.length) {
      ++i;
      continue;
    }
    if (calls) {
      calling_.emplace(activity_.now() + world_.tools->latency(r.id, *r.call), std::move(r));
    } else {
      const bool cut_off = r.length == world_.config.sampling.max_new_tokens.count();
      finished.items.push_back({r.lease,
                                r.id,
                                Tokens(r.prompt),
                                Tokens(r.made),
                                std::move(r.segments),
                                cut_off ? FinishReason::Length : FinishReason::End});
    }
    if (i + 1 < running_.size())
      r = std::move(running_.back());
    running_.pop_back();
  }
  if (!finished.items.empty())
    out.send(finished);
}

MachineTask MachineRollout::perform(actors::SwitchAction action) {
  using A = actors::SwitchAction;
  const SwitchTimes& t = world_.calibration.switches;
  const double us = action == A::Interrupt     ? t.interrupt_us
                    : action == A::FreeKv      ? t.free_kv_us
                    : action == A::FreeWeights ? t.free_weights_us
                                               : t.allocate_kv_us;
  MachineTask task{us * kMicro, world_.calibration.slowdowns.other, MachineTask::Threads::One, {}};
  const Duration takes = from_seconds(task.seconds);
  return shown(CardState::Switch, std::move(task), [this, action, takes](actors::Outbox& out) {
    if (action == A::Interrupt) {
      actors::CountedGenerated all;
      std::vector<ResponseId> ids;
      for (const Response& r : running_)
        ids.push_back(r.id);
      for (const Response& r : queue_)
        ids.push_back(r.id);
      for (const auto& [answered, r] : calling_)
        ids.push_back(r.id);
      remove(ids, &all);
      if (!all.items.empty())
        out.send(all);
    }
    if (action == A::AllocateKv)
      untouched_ = slots_;
    actors::Switched done;
    done.action = action;
    done.cost.duration = takes;
    out.send(done);
  });
}

}  // namespace temper::study
