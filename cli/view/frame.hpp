// What the terminal shows of a run at one moment, as plain data: taken from the metrics and the
// scheduler, drawn by render.hpp. Tests make frames by hand.
#pragma once

#include "orchestrator/metrics/run_metrics.hpp"
#include "orchestrator/scheduler/scheduler.hpp"

#include <string>
#include <vector>

namespace temper::cli {

struct FrameRates {
  double generated = 0, trained = 0, effective = 0;  ///< Tokens per second.
};

struct CardFrame {
  CardId card;
  std::array<double, orchestrator::kCardStates> shares{};  ///< Of the recent past; they sum to one.
  std::string host{};  ///< Of the worker that attached; empty: the orchestrator's.
};

struct ActorFrame {
  std::string name;
  actors::CardState state = actors::CardState::Idle;
  std::string on;             ///< What it waits for.
  std::int32_t load = 0;      ///< Responses it holds.
  std::int32_t capacity = 0;  ///< Of an engine; 0: no limit to speak of.
  std::int32_t restarts = 0;
  orchestrator::WaitKind cause = orchestrator::WaitKind::Work;  ///< What `on` words.
};

struct Frame {
  std::string name;
  std::string subtitle;  ///< Placement and the like.
  std::uint64_t step = 0, steps = 0;
  Duration elapsed{};
  std::optional<Duration> left;
  bool simulated = false;       ///< Both are of virtual time.
  bool drawn = false;           ///< Rewards are random numbers: nobody learns.
  std::vector<double> rewards;  ///< Of the updates (RewardHistory::curve()).
  std::string held_out;         ///< The newest evaluation and the best; empty: none yet.
  FrameRates recent;
  std::vector<CardFrame> cards;
  std::int64_t slots = 0, slots_held = 0;  ///< Of all engines; with a response now.
  double slots_mean = 0;                   ///< Share held while engines had any, so far.
  std::uint64_t bound = 0;
  double staleness_mean = 0;
  std::map<std::int64_t, std::uint64_t> staleness;  ///< Age -> groups.
  std::vector<ActorFrame> actors;
  orchestrator::QueueDepth queue;
  std::uint64_t restarts = 0, checkpoints = 0;
  std::uint64_t groups_failed = 0, responses_failed = 0;
  std::string last_failure;  ///< Which group failed last, and why; empty: none has.
  std::uint64_t lies = 0;    ///< Messages that could not be.
};

/// The state at `now`. Rates are over the last updates, shares over the last kRecent. `scheduler`
/// tells what the actors do; null: the run is over and they have ended.
Frame make_frame(std::string name,
                 const orchestrator::RunMetrics& metrics,
                 const orchestrator::Scheduler* scheduler,
                 Time now);

struct HeldOut {
  PolicyVersion version;
  double pass_1 = 0;
};
/// "pass@1 0.830 [0.77, 0.88] v300; best 0.850 v200, within noise". The interval is one of 95 %.
std::string held_out_text(const HeldOut& last, const HeldOut& best, std::uint64_t problems);

/// Rates over the last updates (at least kRecent, if there are that many).
FrameRates recent_rates(const std::vector<orchestrator::Update>& updates);
/// Time until the last update at the recent pace; none before the second update.
std::optional<Duration> time_left(const std::vector<orchestrator::Update>& updates,
                                  std::uint64_t steps,
                                  Time now);

inline constexpr Duration kRecent = std::chrono::seconds(10);

}  // namespace temper::cli
