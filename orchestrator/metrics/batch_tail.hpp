// The tail of a batch, from the records of a run: the time in which cards have little or no work
// because only the last responses of a batch are generated.
//
// Definition. At an instant, a run is in a tail if
//   - the next step lacks groups that were dispatched: the trainer was last said to wait for them,
//     or computes gradients of others meanwhile, or moves to or from its cards
//   - engines have responses of training, at most one in kPart of a batch's
//   - none waits to be dispatched again
// After a resume, tails count again from the next step on. One owner, no threads.
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <optional>
#include <set>
#include <unordered_map>

namespace temper::orchestrator {

class BatchTail {
 public:
  static constexpr std::uint64_t kPart = 10;

  /// Call for every record, in order.
  void feed(const Record& record);

  /// From the last record on.
  bool now() const { return since_.has_value(); }
  /// Requires: `until` is not before the last record.
  Duration total(Time until) const { return ended_ + (since_ ? until - *since_ : Duration{}); }

 private:
  struct Holder {
    ActorId engine;
    LeaseId lease;
  };

  void take(const SchedulerConfig& config);
  void take_back(ActorId engine);
  void forget(GroupId group);
  void on_event(const event::Generated& e);
  void on_event(const event::ActorDown& e) { take_back(e.actor); }
  void on_event(const event::Trained&) { resumed_ = false; }
  void on_event(const event::TensorsLost& e);
  void on_event(const event::Resumed&);
  template <class E>
  void on_event(const E&) {}
  void on_command(const command::Dispatch& c);
  void on_command(const command::Launch& c) { take_back(c.actor); }
  void on_command(const command::Discard& c) { take_back(c.actor); }
  void on_command(const command::Retire& c) { take_back(c.actor); }
  void on_command(const command::Release& c) { forget(c.group); }
  void on_command(const command::Train&) { lacks_groups_ = false; }
  void on_command(const command::Finish&) { lacks_groups_ = false; }
  void on_command(const command::Waiting& c);
  template <class C>
  void on_command(const C&) {}

  std::optional<ActorId> trainer_;
  std::uint64_t per_group_ = 1;
  std::size_t most_ = 1;  ///< Responses in engines.

  std::unordered_map<std::uint64_t, Holder> generating_;  ///< By response; never iterated in order.
  std::set<std::uint64_t> handed_back_;
  bool lacks_groups_ = false;
  bool resumed_ = false;  ///< And no step has ended since.
  std::optional<Time> since_;
  Duration ended_{};
};

}  // namespace temper::orchestrator
