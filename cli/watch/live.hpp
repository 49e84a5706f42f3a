// live.json: the current state of a run, rewritten about once a second for other processes: the web
// page, `temper watch`, an exporter. The file is replaced atomically, so that readers never see a
// partial one. It is not synced: after a crash it is rebuilt from the log.
#pragma once

#include "cli/view/frame.hpp"
#include "orchestrator/metrics/summary.hpp"
#include "orchestrator/watch/alarms.hpp"

#include <map>
#include <optional>

namespace temper::cli {

inline constexpr std::string_view kLiveFile = "live.json";

struct LiveActor {
  std::string name;
  actors::RoleKind role = actors::RoleKind::Rollout;
  actors::CardState state = actors::CardState::Idle;
  std::string on;
  std::int32_t load = 0, capacity = 0, restarts = 0;
  orchestrator::WaitKind cause = orchestrator::WaitKind::Work;  ///< The cause that `on` describes.
};

/// Cards with the same actors, which therefore share all their states.
struct LiveCards {
  std::vector<std::uint32_t> cards;            ///< Ranges: first id, count, first id, count, ...
  std::vector<std::uint32_t> actors;           ///< Indices into Live::actors.
  std::map<actors::CardState, double> recent;  ///< Shares of states over the last kRecent.
  std::map<actors::CardState, double> whole;   ///< Shares over the whole run.
  std::string host{};  ///< Host of the attached worker; empty: the orchestrator's.
};

struct LiveHealth {
  std::int64_t memory_bytes = 0;
  std::int64_t disk_free_bytes = 0;
};

struct Live {
  std::string subtitle;
  std::int64_t pid = 0;
  std::string host;
  double began = 0, updated = 0;  ///< Seconds since 1970.
  bool over = false;
  std::string placement;
  std::uint64_t steps = 0;    ///< Configured number of steps.
  std::uint64_t updates = 0;  ///< Valid lines of metrics.jsonl, one per step.
  double elapsed_s = 0;
  std::optional<double> left_s;
  bool drawn = false;           ///< Rewards are random numbers: no training takes place.
  std::vector<double> rewards;  ///< Reward curve of at most 2048 points.
  FrameRates recent;
  orchestrator::QueueDepth queue;
  std::int64_t slots = 0,
               slots_held = 0;  ///< Slots of all engines; slots that hold a response now.
  double slots_mean = 0;        ///< Mean share of held slots while engines had work.
  std::vector<LiveActor> actors;
  std::vector<LiveCards> cards;
  std::vector<orchestrator::Alarm> alarms;                         ///< The latest alarms.
  std::map<orchestrator::AlarmKind, std::uint64_t> alarms_raised;  ///< Count of all alarms by kind.
  LiveHealth health;
  orchestrator::Summary summary;  ///< Without the list of cards.
};

/// The state of a run. `frame` must be of the same moment.
Live make_live(const Frame& frame,
               const orchestrator::RunMetrics& metrics,
               const orchestrator::RunIdentity& identity);
/// The frame that the terminal shows for this state.
Frame frame_of(const Live& live);

void describe(auto& v, FrameRates& r) {
  v.field(1, "raw", r.generated);
  v.field(2, "trained", r.trained);
  v.field(3, "effective", r.effective);
}
void describe(auto& v, LiveActor& a) {
  v.field(1, "name", a.name);
  v.field(2, "role", a.role);
  v.field(3, "state", a.state);
  v.field(4, "on", a.on);
  v.field(5, "load", a.load);
  v.field(6, "capacity", a.capacity);
  v.field(7, "restarts", a.restarts);
  v.field(8, "cause", a.cause);
}
void describe(auto& v, LiveCards& c) {
  v.field(1, "cards", c.cards);
  v.field(2, "actors", c.actors);
  v.field(3, "recent", c.recent);
  v.field(4, "whole", c.whole);
  v.field(5, "host", c.host);
}
void describe(auto& v, LiveHealth& h) {
  v.field(1, "memory_bytes", h.memory_bytes);
  v.field(2, "disk_free_bytes", h.disk_free_bytes);
}
void describe(auto& v, Live& l) {
  v.field(1, "subtitle", l.subtitle);
  v.field(2, "pid", l.pid);
  v.field(3, "host", l.host);
  v.field(4, "began", l.began);
  v.field(5, "updated", l.updated);
  v.field(6, "over", l.over);
  v.field(7, "placement", l.placement);
  v.field(8, "steps", l.steps);
  v.field(9, "updates", l.updates);
  v.field(10, "elapsed_s", l.elapsed_s);
  v.field(11, "left_s", l.left_s);
  v.field(12, "rewards", l.rewards);
  v.field(13, "recent", l.recent);
  v.field(14, "queue", l.queue);
  v.field(15, "actors", l.actors);
  v.field(16, "cards", l.cards);
  v.field(17, "alarms", l.alarms);
  v.field(18, "health", l.health);
  v.field(19, "summary", l.summary);
  v.field(20, "slots", l.slots);
  v.field(21, "slots_held", l.slots_held);
  v.field(22, "slots_mean", l.slots_mean);
  v.field(23, "alarms_raised", l.alarms_raised);
  v.field(24, "drawn", l.drawn);
}

}  // namespace temper::cli
