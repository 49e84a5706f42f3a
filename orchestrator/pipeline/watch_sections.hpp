// Sections for observing a run: samples, tracking and alarms.
#pragma once

#include "core/describe.hpp"

namespace temper {
namespace orchestrator {

/// Systems whose metric names can be written in addition to Temper's.
enum class AliasTable { Trl, Verl, PrimeRl };

/// orchestrator/watch/alarms.hpp defines the condition of each.
enum class AlarmKind {
  RewardCollapse,
  EntropyCollapse,
  KlBlowUp,
  FewEffectiveSamples,
  EngineMismatch,
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

void describe(auto& v, SamplesConfig& c) {
  v.field(1,
          "share",
          c.share,
          {.doc = "Share of the groups whose responses are written to `samples.jsonl`; at least "
                  "one group of each step. 1: all groups; 0: none.",
           .min = 0.0,
           .max = 1.0});
  v.field(2,
          "budget",
          c.budget,
          {.doc = "Size limit of the samples. When it is reached, the oldest half is deleted.",
           .min = Bytes(Bytes::rep{1} << 16)});
}

void describe(auto& v, TrackingConfig& c) {
  v.field(
      1, "tensorboard", c.tensorboard, {.doc = "Write TensorBoard event files to the run folder."});
  v.field(2,
          "aliases",
          c.aliases,
          {.doc = "Also write each metric under its name in these systems, so that dashboards made "
                  "for them keep working: `trl`, `verl`, `prime-rl`.",
           .example = "[trl]"});
  v.field(3,
          "timeline",
          c.timeline,
          {.doc = "Size limit of the time line that the dashboard shows. When it is reached, the "
                  "finest detail is deleted first.",
           .min = Bytes(Bytes::rep{1} << 16)});
}

void describe(auto& v, AlarmsConfig& c) {
  v.field(1,
          "enabled",
          c.enabled,
          {.doc = "Watch the run for common failures (docs/how-to/watch.md)."});
  v.field(2,
          "on_alarm",
          c.on_alarm,
          {.doc = "Command to run for each alarm, as a list of program and arguments. Temper "
                  "appends two arguments: the kind of alarm and its text.",
           .example = "[/usr/local/bin/notify]"});
  v.field(3,
          "stop_on",
          c.stop_on,
          {.doc = "Alarms that stop the run as Ctrl-C does. It can be resumed.",
           .example = "[not_finite, disk_almost_full]"});
  v.field(
      4,
      "disk_free",
      c.disk_free,
      {.doc = "Raise `disk_almost_full` when less than this is free on the disk of the run folder.",
       .min = Bytes(0)});
  v.field(5,
          "no_progress",
          c.no_progress,
          {.doc = "Raise `no_progress` when a step takes this many times as long as usual.",
           .min = 2.0});
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
  static constexpr std::array<std::pair<A, std::string_view>, 11> value{
      {{A::RewardCollapse, "reward_collapse"},
       {A::EntropyCollapse, "entropy_collapse"},
       {A::KlBlowUp, "kl_blow_up"},
       {A::FewEffectiveSamples, "few_effective_samples"},
       {A::EngineMismatch, "engine_mismatch"},
       {A::NotFinite, "not_finite"},
       {A::GrowingWait, "growing_wait"},
       {A::SlowEngine, "slow_engine"},
       {A::MemoryGrowth, "memory_growth"},
       {A::DiskAlmostFull, "disk_almost_full"},
       {A::NoProgress, "no_progress"}}};
};

}  // namespace temper
