// The state of a run at one moment, as plain data for the terminal. It is filled from the metrics
// and the scheduler and drawn by render.hpp. Tests build frames by hand.
#pragma once

#include "orchestrator/metrics/run_metrics.hpp"

#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace temper::orchestrator {
struct RunTick;
}

namespace temper::cli {

struct FrameRates {
  double generated = 0, trained = 0, effective = 0;  ///< Tokens per second.
};

struct CardFrame {
  CardId card;
  std::array<double, orchestrator::kCardStates>
      shares{};        ///< Share of each state in the recent window; sum 1.
  std::string host{};  ///< Host of the attached worker; empty: the orchestrator's.
};

/// A metric of the last step that the table of metrics marks for the terminal.
struct StepFigure {
  std::string_view name;  ///< As in metrics.jsonl.
  double value = 0;
};

struct ActorFrame {
  std::string name;
  actors::CardState state = actors::CardState::Idle;
  std::string on;             ///< What the actor waits for, as text.
  std::int32_t load = 0;      ///< Responses that the actor holds.
  std::int32_t capacity = 0;  ///< Slots of an engine; 0: practically unlimited.
  std::int32_t restarts = 0;
  orchestrator::WaitKind cause = orchestrator::WaitKind::Work;  ///< The cause that `on` describes.
};

struct Frame {
  std::string name;
  std::string subtitle;  ///< Placement, number of cards, staleness bound.
  std::uint64_t step = 0, steps = 0;
  Duration elapsed{};
  std::optional<Duration> left;
  bool simulated = false;             ///< Elapsed and remaining time are virtual time.
  bool drawn = false;                 ///< Rewards are random numbers: no training takes place.
  std::vector<double> rewards;        ///< By step (RewardHistory::curve()).
  std::string held_out;               ///< Newest and best evaluation; empty: none yet.
  std::vector<StepFigure> last_step;  ///< In the order of the table; empty before the first step.
  FrameRates recent;
  std::vector<CardFrame> cards;
  std::int64_t slots = 0,
               slots_held = 0;  ///< Slots of all engines; slots that hold a response now.
  double slots_mean = 0;        ///< Mean share of held slots while engines had work.
  std::uint64_t bound = 0;
  double staleness_mean = 0;
  std::map<std::int64_t, std::uint64_t> staleness;  ///< Age in steps -> number of groups.
  std::vector<ActorFrame> actors;
  orchestrator::QueueDepth queue;
  std::uint64_t restarts = 0, checkpoints = 0;
  std::uint64_t groups_failed = 0, responses_failed = 0;
  std::string last_failure;               ///< The last failed group and its reason; empty: none.
  std::uint64_t protocol_violations = 0;  ///< Invalid messages from workers.
};

/// The state at `now`. Rates cover the last steps, shares the last kRecent. The states of actors
/// come from `tick`; null: the run is over.
Frame make_frame(std::string name,
                 const orchestrator::RunMetrics& metrics,
                 const orchestrator::RunTick* tick,
                 Time now);

/// Figures for the terminal, of all metrics of a step by name.
std::vector<StepFigure> step_figures(const std::map<std::string, double>& metrics);

struct HeldOut {
  PolicyVersion version;
  double pass_1 = 0;
};
/// "pass@1 0.830 [0.77, 0.88] v300; best 0.850 v200, within noise", with the 95 % interval.
std::string held_out_text(const HeldOut& last, const HeldOut& best, std::uint64_t problems);

/// Tokens per second over the last steps (at least kRecent, if the run is that long).
FrameRates recent_rates(const std::vector<orchestrator::Update>& updates);
/// Time until the last step at the recent pace; nullopt before the second step.
std::optional<Duration> time_left(const std::vector<orchestrator::Update>& updates,
                                  std::uint64_t steps,
                                  Time now);

inline constexpr Duration kRecent = std::chrono::seconds(10);

}  // namespace temper::cli
