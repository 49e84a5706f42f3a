// A whole run as one struct: what a YAML file of configs/ says. docs/config.md is made from it.
#pragma once

#include "actors/model/model_config.hpp"
#include "actors/model/pretrain_config.hpp"
#include "actors/protocol/role_config.hpp"
#include "actors/simulation/simulation_config.hpp"
#include "actors/task/task_config.hpp"
#include "orchestrator/pipeline/evaluation_section.hpp"
#include "orchestrator/pipeline/sections.hpp"
#include "orchestrator/pipeline/watch_sections.hpp"
#include "orchestrator/scheduler/state/config.hpp"
#include "rollout/engine.hpp"
#include "trainer/algorithm_config.hpp"

namespace temper {
class YamlReader;
class YamlWriter;
}  // namespace temper

namespace temper::orchestrator {

struct PipelineConfig {
  // In pipeline_config.cpp: they are long, and needed wherever a configuration is passed on.
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
  ReplicaConfig reference;
  ReplicaConfig reward;
  SyntheticConfig synthetic;
  TransportSection transport;
  Deadlines deadlines;
  CheckpointConfig checkpoint;
  EvaluationSection evaluation;
  SamplesConfig samples;
  TrackingConfig tracking;
  AlarmsConfig alarms;
  actors::SimulationConfig simulation;
};

template <class V>
void describe(V& v, PipelineConfig& c) {
  v.field(1, "name", c.name, {.doc = "Name of the run; part of its folder's name."});
  v.field(2, "seed", c.seed, {.doc = "Everything random derives from it."});
  v.field(3,
          "steps",
          c.steps,
          {.doc = "Policy updates to make.", .min = 1, .max = std::uint64_t{1} << 40});
  v.field(
      4, "run_dir", c.run_dir, {.doc = "Folder the run writes to; empty: `runs/<name>-<time>`."});
  v.field(5,
          "hardware",
          c.hardware,
          {.doc = "What the cards are: this machine's, or those of a simulated supernode."});
  v.field(6,
          "policy",
          c.policy,
          {.doc = "`torch`: a real transformer learns; `synthetic`: token counts and times only."});
  v.field(7, "task", c.task, {.doc = "Where prompts come from."});
  v.field(8, "verifier", c.verifier, {.doc = "How a response earns its reward."});
  v.field(9, "model", c.model, {.doc = "Shape of the policy network."});
  v.field(10, "pretrain", c.pretrain, {.doc = "How the base checkpoint is made."});
  v.field(11, "algorithm", c.algorithm, {.doc = "How a batch becomes an update."});
  v.field(12, "sampling", c.sampling, {.doc = "How responses are sampled."});
  v.field(13, "staleness", c.staleness, {.doc = "How far the trainer may be ahead."});
  v.field(14, "placement", c.placement, {.doc = "Which role runs on which cards."});
  v.field(15, "rollout", c.rollout, {.doc = "Rollout actors."});
  v.field(24, "trainer", c.trainer, {.doc = "The trainer."});
  v.field(16, "reference", c.reference, {.doc = "Reference actors."});
  v.field(17, "reward", c.reward, {.doc = "Reward actors."});
  v.field(18, "synthetic", c.synthetic, {.doc = "Engines of `policy: synthetic`."});
  v.field(19, "transport", c.transport, {.doc = "How processes talk and are watched."});
  v.field(
      20,
      "deadlines",
      c.deadlines,
      {.doc = "Longest time of each kind of wait; on simulated hardware, where time is virtual, "
              "24h where not given."});
  v.field(21, "checkpoint", c.checkpoint, {.doc = "What is saved to resume from."});
  v.field(43,
          "evaluation",
          c.evaluation,
          {.doc = "When the policy is held against problems that it is never trained on."});
  v.field(40, "samples", c.samples, {.doc = "Which responses are kept to be read."});
  v.field(41, "tracking", c.tracking, {.doc = "Metrics for other programs."});
  v.field(42, "alarms", c.alarms, {.doc = "What is looked out for while the run goes on."});
  v.field(22, "simulation", c.simulation, {.doc = "What `hardware: simulated` simulates."});
  v.field(23,
          "stragglers",
          c.stragglers,
          {.doc = "How the groups that an update waits for end sooner."});
}

// Made once, in pipeline_config.cpp.
extern template void describe(YamlReader& v, PipelineConfig& c);
extern template void describe(YamlWriter& v, PipelineConfig& c);

}  // namespace temper::orchestrator
