// The sections of a pipeline that say what is kept of a run for people to look at, and what they
// are told of while it goes on: samples, tracking, alarms.
#pragma once

#include "core/describe.hpp"

namespace temper {
namespace orchestrator {

/// Other systems whose metric names are written beside ours.
enum class AliasTable { Trl, Verl, PrimeRl };

/// What people set an alarm on by hand elsewhere; orchestrator/watch/alarms.hpp defines each.
enum class AlarmKind {
  RewardCollapse,
  EntropyCollapse,
  KlBlowUp,
  NotFinite,
  GrowingWait,
  SlowEngine,
  MemoryGrowth,
  DiskAlmostFull,
  NoProgress
};

struct SamplesConfig {
  double share = 0.05;
  Bytes budget{Bytes::rep{32} << 20};
};

struct TrackingConfig {
  bool tensorboard = true;
  std::vector<AliasTable> aliases;
  Bytes timeline{Bytes::rep{64} << 20};
};

struct AlarmsConfig {
  bool enabled = true;
  std::vector<std::string> on_alarm;
  std::vector<AlarmKind> stop_on;
  Bytes disk_free{Bytes::rep{1} << 30};
  double no_progress = 20;
};

template <class V>
void describe(V& v, SamplesConfig& c) {
  v.field(
      1,
      "share",
      c.share,
      {.doc = "Share of the groups whose responses are written to samples.jsonl, but at least one "
              "group of each update; 1: all, 0: none.",
       .min = 0.0,
       .max = 1.0});
  v.field(2,
          "budget",
          c.budget,
          {.doc = "Most bytes of samples kept; the oldest half goes first.",
           .min = Bytes(Bytes::rep{1} << 16)});
}

template <class V>
void describe(V& v, TrackingConfig& c) {
  v.field(1, "tensorboard", c.tensorboard, {.doc = "Write event files for TensorBoard."});
  v.field(2,
          "aliases",
          c.aliases,
          {.doc = "Write each metric under the names of these systems as well, so that dashboards "
                  "made for them show something: `trl`, `verl`, `prime-rl`.",
           .example = "[trl]"});
  v.field(3,
          "timeline",
          c.timeline,
          {.doc = "Most bytes of the time line kept for the page; its finest parts go first.",
           .min = Bytes(Bytes::rep{1} << 16)});
}

template <class V>
void describe(V& v, AlarmsConfig& c) {
  v.field(1, "enabled", c.enabled, {.doc = "Look for what usually goes wrong (docs/watch.md)."});
  v.field(2,
          "on_alarm",
          c.on_alarm,
          {.doc = "Program and arguments, started for every alarm; it gets the kind and the text "
                  "as two more arguments.",
           .example = "[/usr/local/bin/notify]"});
  v.field(3,
          "stop_on",
          c.stop_on,
          {.doc = "Alarms that stop the run as Ctrl-C does, so that it can be resumed.",
           .example = "[not_finite, disk_almost_full]"});
  v.field(
      4,
      "disk_free",
      c.disk_free,
      {.doc = "Less free space than this under the run's folder is an alarm.", .min = Bytes(0)});
  v.field(5,
          "no_progress",
          c.no_progress,
          {.doc = "No update for so many times the usual step is an alarm.", .min = 2.0});
}

}  // namespace orchestrator

template <>
struct EnumNames<orchestrator::AliasTable> {
  using A = orchestrator::AliasTable;
  static constexpr std::array<std::pair<A, std::string_view>, 3> value{
      {{A::Trl, "trl"}, {A::Verl, "verl"}, {A::PrimeRl, "prime-rl"}}};
};
template <>
struct EnumNames<orchestrator::AlarmKind> {
  using A = orchestrator::AlarmKind;
  static constexpr std::array<std::pair<A, std::string_view>, 9> value{
      {{A::RewardCollapse, "reward_collapse"},
       {A::EntropyCollapse, "entropy_collapse"},
       {A::KlBlowUp, "kl_blow_up"},
       {A::NotFinite, "not_finite"},
       {A::GrowingWait, "growing_wait"},
       {A::SlowEngine, "slow_engine"},
       {A::MemoryGrowth, "memory_growth"},
       {A::DiskAlmostFull, "disk_almost_full"},
       {A::NoProgress, "no_progress"}}};
};

}  // namespace temper
