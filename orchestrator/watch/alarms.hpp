// What people set an alarm on by hand: pure functions of the figures, so that a test can plant each
// fault. An alarm is raised once, and again only after its cause has gone away.
//
//   reward_collapse    mean reward of the last kRecent updates is below half of the best such mean
//                      (of the way down to the lowest one), when that best one was kClear above it
//   entropy_collapse   mean entropy of the last kRecent updates is under a fifth of that of the
//                      kBefore updates before them, and the reward did not grow meanwhile
//   kl_blow_up         mean kl of the last kRecent updates is over 0.1 and ten times that of the
//                      kBefore updates before them
//   not_finite         a metric of an update is infinite or not a number, or an actor was lost for
//                      such numbers: an update that has them is refused
//   growing_wait       cards waited for data, weights or quota in the last kRecent updates for a
//                      share that is 0.3 above that of the kBefore updates before them
//   slow_engine        the responses of an engine get less than half as many tokens per second,
//   from
//                      their dispatch on, as those of the median engine (of three at least), over
//                      kEngineWindow
//   memory_growth      the run's processes hold over half more memory than kWarmUp after its start,
//                      and over 256 MiB more
//   disk_almost_full   less than alarms.disk_free is free under the run's folder
//   no_progress        no update for alarms.no_progress times the median step, nor for kLeastWait
#pragma once

#include "orchestrator/metrics/metrics_line.hpp"
#include "orchestrator/pipeline/watch_sections.hpp"

#include <deque>
#include <set>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct Alarm {
  AlarmKind kind = AlarmKind::NotFinite;
  Time time{};
  std::uint64_t step = 0;
  std::string text;  ///< What was found, with the figures.
};
template <class V>
void describe(V& v, Alarm& a) {
  v.field(1, "kind", a.kind);
  v.field(2, "time", a.time);
  v.field(3, "step", a.step);
  v.field(4, "text", a.text);
}

/// What the machine says of a run at one moment.
struct Health {
  Time time{};        ///< On the run's clock.
  Time wall{};        ///< On this machine's.
  Bytes memory;       ///< Held by the run's processes.
  Bytes disk_free;    ///< For the run's folder.
  bool over = false;  ///< The run has ended: nothing is expected of it any more.
};

class Alarms {
 public:
  static constexpr std::size_t kRecent = 10, kBefore = 50;
  static constexpr double kClear = 0.1;
  /// A shorter wait is a matter of the machine's other work, whatever its share of ten updates.
  static constexpr Duration kLeastRecent = std::chrono::seconds(5);
  static constexpr Duration kEngineWindow = std::chrono::seconds(20);
  static constexpr Duration kWarmUp = std::chrono::minutes(2);
  static constexpr Duration kLeastWait = std::chrono::seconds(30);

  explicit Alarms(AlarmsConfig config) : config_(std::move(config)) {}

  /// To be called for every record, in order: how fast engines decode, and why actors are lost. The
  /// alarms that this record raises.
  std::vector<Alarm> feed(const Record& record);
  /// The alarms that this update raises.
  std::vector<Alarm> on_update(const MetricsLine& line);
  /// Those that this moment raises. To be called about once a second.
  std::vector<Alarm> on_health(const Health& health);

 private:
  struct Engine {
    std::string name;
    bool generates = false;
    double tokens = 0, seconds = 0;  ///< Of responses in this window.
  };
  struct Lease {
    Time since{};
    std::size_t owed = 0;  ///< Responses.
  };
  using Figure = double (*)(const MetricsLine&);

  /// Raised unless it is already; `holds` false lets it be raised again.
  void judge(AlarmKind kind, bool holds, const std::string& key, std::string text);
  void take_actors(const std::vector<ActorSpec>& actors);
  void check_learning();
  void check_engines(Time now);
  bool enough() const { return lines_.size() == kRecent + kBefore; }
  double recent(Figure figure) const;
  double before(Figure figure) const;
  std::vector<Alarm> take();

  const AlarmsConfig config_;
  std::deque<MetricsLine> lines_;  ///< The latest kRecent + kBefore.
  std::optional<double> best_, lowest_;
  std::vector<Engine> engines_;  ///< By actor, also those that are none.
  std::map<LeaseId, Lease> leases_;
  Time engines_until_{};
  std::optional<Bytes> memory_at_first_;
  std::optional<Time> began_;     ///< On the wall.
  std::optional<Time> progress_;  ///< On the wall, of the last update.
  std::uint64_t step_ = 0;
  std::deque<double> steps_;  ///< Seconds on the wall of the latest ones.
  Time time_{};
  bool updated_ = false;
  std::set<std::pair<AlarmKind, std::string>> standing_;
  std::vector<Alarm> raised_;
};

}  // namespace temper::orchestrator
