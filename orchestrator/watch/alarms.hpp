// Conditions of the alarms: pure functions of the figures, so that a test can plant each fault. An
// alarm is raised once, and again only after its condition has ceased.
//
//   reward_collapse    mean reward of the last kRecent steps is less than half of the best such
//                      mean (measured from the lowest one), if the best was kClear above the lowest
//   entropy_collapse   mean entropy of the last kRecent steps is under a fifth of that of the
//                      kBefore steps before them, and the reward did not grow meanwhile
//   kl_blow_up         mean KL of the last kRecent steps is over 0.1 and ten times that of the
//                      kBefore steps before them
//   few_effective_samples
//                      mean effective sample size of the importance ratios of the last kRecent
//                      steps is less than kEffective of their tokens; ceases above kRecovered
//   engine_mismatch    mean of |log ratio| over the tokens that the version being updated sampled,
//                      in the last kRecent steps, is above kMismatch: engine and trainer compute
//                      differently with the same weights
//   not_finite         a metric of a step is infinite or not a number, or an actor was lost because
//                      of such a value (ActorDown::not_finite): a step with one is rejected
//   growing_wait       the share of time in which cards waited for data, weights or the staleness
//                      bound is, over the last kRecent steps, 0.3 above that of the kBefore steps
//                      before them
//   slow_engine        over kEngineWindow, the responses of an engine get less than half as many
//                      tokens per second, from their dispatch on, as those of the median engine (of
//                      at least three)
//   memory_growth      the processes of the run hold over half more memory than kWarmUp after its
//                      start, and over 256 MiB more
//   disk_almost_full   less than alarms.disk_free is free on the disk of the run folder
//   no_progress        no step for alarms.no_progress times the median step, and for kLeastWait
#pragma once

#include "orchestrator/metrics/metrics_line.hpp"
#include "orchestrator/pipeline/watch_sections.hpp"
#include "orchestrator/record/event_log.hpp"

#include <deque>
#include <set>
#include <string>
#include <vector>

namespace temper::orchestrator {

struct Alarm {
  AlarmKind kind = AlarmKind::NotFinite;
  Time time{};
  std::uint64_t step = 0;
  std::string text;  ///< Description with figures.
};
void describe(auto& v, Alarm& a) {
  v.field(1, "kind", a.kind);
  v.field(2, "time", a.time);
  v.field(3, "step", a.step);
  v.field(4, "text", a.text);
}

/// State of the machine and the run at one moment.
struct Health {
  Time time{};        ///< On the clock of the run.
  Time wall{};        ///< On the clock of this machine.
  Bytes memory;       ///< Held by the processes of the run.
  Bytes disk_free;    ///< On the disk of the run folder.
  bool over = false;  ///< The run has ended, so no progress is expected.
};

class Alarms {
 public:
  static constexpr std::size_t kRecent = 10, kBefore = 50;
  static constexpr double kClear = 0.1;
  /// Chosen on other seeds than those of docs/reports/early-warning.md.
  static constexpr double kEffective = 0.45, kRecovered = 0.6;
  /// NeMo RL investigates a mean of exp(|log ratio|) above 1.05 (page "Add New Models" of its
  /// documentation), which a mean of |log ratio| above this implies.
  static constexpr double kMismatch = 0.05;
  /// Shorter waits may be caused by other load of the machine, whatever their share.
  static constexpr Duration kLeastRecent = std::chrono::seconds(5);
  static constexpr Duration kEngineWindow = std::chrono::seconds(20);
  static constexpr Duration kWarmUp = std::chrono::minutes(2);
  static constexpr Duration kLeastWait = std::chrono::seconds(30);

  explicit Alarms(AlarmsConfig config) : config_(std::move(config)) {}

  /// Call for every record, in order; measures the speed of engines and the reasons of losses.
  /// Returns the alarms that this record raises.
  std::vector<Alarm> feed(const Record& record);
  /// Returns the alarms that this step raises.
  std::vector<Alarm> on_update(const MetricsLine& line);
  /// Returns the alarms that this moment raises. Call about once a second.
  std::vector<Alarm> on_health(const Health& health);

 private:
  struct Engine {
    std::string name;
    bool generates = false;
    double tokens = 0, seconds = 0;  ///< Of its responses in this window.
  };
  struct Lease {
    Time since{};
    std::size_t owed = 0;  ///< Responses still to be generated.
  };
  using Figure = double (*)(const MetricsLine&);

  /// Raises the alarm unless it is already raised; `holds` false re-arms it.
  void judge(AlarmKind kind, bool holds, const std::string& key, std::string text);
  void take_actors(const std::vector<ActorSpec>& actors);
  void check_learning();
  void check_ratios();
  void check_engines(Time now);
  bool enough() const { return lines_.size() == kRecent + kBefore; }
  double recent(Figure figure) const;
  double before(Figure figure) const;
  std::vector<Alarm> take();

  const AlarmsConfig config_;
  std::deque<MetricsLine> lines_;  ///< The latest kRecent + kBefore lines.
  std::optional<double> best_, lowest_;
  std::vector<Engine> engines_;  ///< By actor, including actors that are not engines.
  std::map<LeaseId, Lease> leases_;
  Time engines_until_{};
  std::optional<Bytes> memory_at_first_;
  std::optional<Time> began_;     ///< In wall time.
  std::optional<Time> progress_;  ///< In wall time: the last step.
  std::uint64_t step_ = 0;
  std::deque<double> steps_;  ///< Wall seconds of the latest steps.
  Time time_{};
  bool updated_ = false;
  std::set<std::pair<AlarmKind, std::string>> standing_;
  std::vector<Alarm> raised_;
};

}  // namespace temper::orchestrator
