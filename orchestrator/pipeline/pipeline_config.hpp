// The whole configuration of a run as one struct. docs/reference/config.md is generated from it.
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/model/pretrain_config.hpp"
#include "actors/protocol/role_config.hpp"
#include "actors/simulation/simulation_config.hpp"
#include "actors/task/task_config.hpp"
#include "orchestrator/pipeline/cost_section.hpp"
#include "orchestrator/pipeline/evaluation_section.hpp"
#include "orchestrator/pipeline/payloads_section.hpp"
#include "orchestrator/pipeline/reference_section.hpp"
#include "orchestrator/pipeline/sections.hpp"
#include "orchestrator/pipeline/watch_sections.hpp"
#include "orchestrator/scheduler/state/settings.hpp"
#include "rollout/engine.hpp"
#include "trainer/algorithm_config.hpp"

namespace temper {
class YamlReader;
class YamlWriter;
}  // namespace temper

namespace temper::orchestrator {

struct PipelineConfig {
  // Defined in pipeline_config.cpp to keep this generated code out of every user of the header.
  PipelineConfig();
  PipelineConfig(const PipelineConfig& other);
  PipelineConfig(PipelineConfig&& other) noexcept;
  PipelineConfig& operator=(const PipelineConfig& other);
  PipelineConfig& operator=(PipelineConfig&& other) noexcept;
  ~PipelineConfig();

  std::string name = "run";
  std::uint64_t seed = 1;
  std::uint64_t steps = 100;
  std::string run_dir;
  HardwareKind hardware = HardwareKind::Local;
  actors::PolicyKind policy = actors::PolicyKind::Torch;
  actors::TaskConfig task;
  actors::VerifierConfig verifier;
  actors::ModelConfig model;
  actors::PretrainConfig pretrain;
  trainer::AlgorithmConfig algorithm;
  rollout::SamplingConfig sampling;
  StalenessConfig staleness;
  StragglerConfig stragglers;
  PlacementConfig placement;
  RolloutConfig rollout;
  TrainerConfig trainer;
  ReferenceConfig reference;
  RewardConfig reward;
  SyntheticConfig synthetic;
  TransportSection transport;
  PayloadsSection payloads;
  Deadlines deadlines;
  CheckpointConfig checkpoint;
  EvaluationSection evaluation;
  SamplesConfig samples;
  TrackingConfig tracking;
  AlarmsConfig alarms;
  CostSection cost;
  actors::SimulationConfig simulation;
};

/// Sections about how a run is operated, watched and simulated.
void describe_operation(auto& v, PipelineConfig& c) {
  v.field(19,
          "transport",
          c.transport,
          {.doc = "Connections between processes, heartbeats and restarts."});
  v.field(25, "payloads", c.payloads, {.doc = "Where tensors of responses are stored."});
  v.field(20,
          "deadlines",
          c.deadlines,
          {.doc = "Time limits of each kind of request. On simulated hardware, where time is "
                  "virtual, the default of each is 24h."});
  v.field(21,
          "checkpoint",
          c.checkpoint,
          {.doc = "When checkpoints are saved, and how many are kept."});
  v.field(
      43, "evaluation", c.evaluation, {.doc = "When to evaluate the policy on held-out problems."});
  v.field(40, "samples", c.samples, {.doc = "Which responses are saved for reading."});
  v.field(41, "tracking", c.tracking, {.doc = "Metrics for other programs."});
  v.field(42, "alarms", c.alarms, {.doc = "What to watch for during the run."});
  v.field(44, "cost", c.cost, {.doc = "Prices and power of cards, for the figures of a run."});
  v.field(22,
          "simulation",
          c.simulation,
          {.doc = "The cluster, model and workload of `hardware: simulated`."});
  v.field(
      23, "stragglers", c.stragglers, {.doc = "How to finish the last groups of a step sooner."});
}

void describe(auto& v, PipelineConfig& c) {
  v.field(1,
          "name",
          c.name,
          {.doc = "Name of the run, part of the name of its folder: 1 to 64 letters, digits, `-`, "
                  "`_` or `.`."});
  v.field(2,
          "seed",
          c.seed,
          {.doc = "Seed of all random numbers: data order, sampling, initial weights."});
  v.field(3,
          "steps",
          c.steps,
          {.doc = "Number of steps. One step trains one batch (`algorithm.groups_per_update` "
                  "groups) and produces one policy version.",
           .min = 1,
           .max = std::uint64_t{1} << 40});
  v.field(4, "run_dir", c.run_dir, {.doc = "Run folder. Empty: `runs/<name>-<time>`."});
  v.field(5,
          "hardware",
          c.hardware,
          {.doc = "`local`: real processes on this machine, or on attached ones; `simulated`: a "
                  "cluster described by `simulation`, in virtual time."});
  v.field(6,
          "policy",
          c.policy,
          {.doc = "`torch`: a transformer is trained; `synthetic`: no model, only token counts and "
                  "times."});
  v.field(7, "task", c.task, {.doc = "Source of the prompts."});
  v.field(8, "verifier", c.verifier, {.doc = "How responses are rewarded."});
  v.field(9, "model", c.model, {.doc = "The policy network."});
  v.field(10, "pretrain", c.pretrain, {.doc = "How the base checkpoint is pretrained."});
  v.field(11, "algorithm", c.algorithm, {.doc = "Advantages, loss and optimizer."});
  v.field(12, "sampling", c.sampling, {.doc = "How responses are sampled."});
  v.field(13,
          "staleness",
          c.staleness,
          {.doc = "How far the trainer may be ahead of the version that began a group."});
  v.field(14, "placement", c.placement, {.doc = "Which role runs on which devices."});
  v.field(15, "rollout", c.rollout, {.doc = "Rollout engines."});
  v.field(24, "trainer", c.trainer, {.doc = "The trainer."});
  v.field(16, "reference", c.reference, {.doc = "Actors that compute reference log-probs."});
  v.field(17, "reward", c.reward, {.doc = "Actors that run the verifier."});
  v.field(18, "synthetic", c.synthetic, {.doc = "Engines of `policy: synthetic`."});
  describe_operation(v, c);
}

// Made once, in pipeline_config.cpp.
extern template void describe(YamlReader& v, PipelineConfig& c);
extern template void describe(YamlWriter& v, PipelineConfig& c);

}  // namespace temper::orchestrator
