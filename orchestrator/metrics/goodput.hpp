// Goodput: where the time of a run went, from its records alone (docs/explanation/measures.md,
// section 5.3). Each instant belongs to one of
//   start       not all actors have been ready yet
//   down        the run rolled back to a checkpoint, and its trainer, or the last of its rollout
//               engines or of its reward actors, is not ready again
//   checkpoint  the trainer saves
//   missing     engines are down: at each instant, their share of the rollout cards
//   again       work (none of the above) that a later rollback discarded
//   useful      work that was kept
// Goodput is useful / all; it is at most 1 by definition. Times are integer nanoseconds and sum to
// the whole exactly.
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <map>
#include <set>

namespace temper::orchestrator {

struct TimeLost {
  Duration wall{}, useful{};
  Duration start{}, down{}, checkpoint{}, missing{}, again{};
  std::uint64_t rollbacks = 0;  ///< Rollbacks of the run.
  std::uint64_t losses = 0;     ///< Losses of ready actors, except those of a rollback.
  std::uint64_t updates = 0;    ///< Steps that were kept.
  std::uint64_t checkpoints = 0;
  /// 0 for a run without time.
  double goodput() const;
};
void describe(auto& v, TimeLost& t) {
  v.field(1, "wall", t.wall);
  v.field(2, "useful", t.useful);
  v.field(3, "start", t.start);
  v.field(4, "down", t.down);
  v.field(5, "checkpoint", t.checkpoint);
  v.field(6, "missing", t.missing);
  v.field(7, "again", t.again);
  v.field(8, "rollbacks", t.rollbacks);
  v.field(9, "losses", t.losses);
  v.field(10, "updates", t.updates);
  v.field(11, "checkpoints", t.checkpoints);
}

class Goodput {
 public:
  /// Call for every record, in order.
  void feed(const Record& record);
  /// Over [0, until], or up to the last record if that is later.
  TimeLost lost(Time until) const;

 private:
  /// State of a checkpoint.
  struct SavedProgress {
    Duration useful{};
    std::uint64_t updates = 0;
  };

  void take_actors(const std::vector<ActorSpec>& actors);
  bool all_ready() const;
  void account(Duration d, TimeLost& to) const;
  void on_event(const Record& record);
  void on_command(const Command& command);
  void go_back(std::uint64_t sequence);
  bool can_work() const;
  Duration missing_part(Duration d) const;

  std::vector<ActorSpec> actors_;
  std::int64_t rollout_cards_ = 0, missing_cards_ = 0;
  std::set<ActorId> ready_;
  bool begun_ = false;  ///< All actors were ready once.
  bool back_ = false;   ///< Rolled back, and not working yet.
  bool saving_ = false;
  Time now_{};
  TimeLost lost_;
  std::map<std::uint64_t, SavedProgress> kept_;  ///< By sequence of Started and CheckpointSaved.
};

}  // namespace temper::orchestrator
