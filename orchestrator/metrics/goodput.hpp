// Where the time of a run went, from its records alone (docs/semantics.md, section 5.3). Each
// instant from the start on belongs to one of
//   start       not all actors have been ready yet
//   down        the run has gone back to a checkpoint, and its trainer, or the last of its rollout
//               engines or of its reward actors, is not ready again
//   checkpoint  the trainer saves
//   missing     engines are down: of each instant, the share of rollout cards that is theirs
//   again       work (none of the above) behind the checkpoint that the run later went back to
//   useful      work that was kept
// Goodput is useful / all: never above 1, whatever the run is compared with. Integer nanoseconds;
// the parts sum to the whole exactly.
#pragma once

#include "orchestrator/record/event_log.hpp"

#include <map>
#include <set>

namespace temper::orchestrator {

struct TimeLost {
  Duration wall{}, useful{};
  Duration start{}, down{}, checkpoint{}, missing{}, again{};
  std::uint64_t rollbacks = 0;  ///< Times the run went back.
  std::uint64_t losses = 0;     ///< Of actors that were ready, but for those of a rollback.
  std::uint64_t updates = 0;    ///< That were kept.
  std::uint64_t checkpoints = 0;
  /// 0 of a run of no time.
  double goodput() const;
};

class Goodput {
 public:
  /// To be called for every record, in order.
  void feed(const Record& record);
  /// Up to `until`, or to the last record if that is later.
  TimeLost lost(Time until) const;

 private:
  /// What a checkpoint keeps.
  struct Kept {
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
  bool begun_ = false;  ///< All were ready once.
  bool back_ = false;   ///< Went back, and cannot work yet.
  bool saving_ = false;
  Time now_{};
  TimeLost lost_;
  std::map<std::uint64_t, Kept> kept_;  ///< By sequence of Started and CheckpointSaved.
};

}  // namespace temper::orchestrator
