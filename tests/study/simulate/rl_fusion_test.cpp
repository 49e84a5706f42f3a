// RL Fusion on the shipped supernode: how fast cards are that switch one by one.
#include "orchestrator/pipeline/load.hpp"
#include "study/simulate/simulate.hpp"

#include <gtest/gtest.h>

namespace temper::study {

using namespace orchestrator;
namespace {

struct Cell {
  std::int32_t groups;  ///< Of a batch.
  double bound;
  std::uint64_t steps;
};

PipelineConfig whole_turns(PipelineConfig c, const Cell& cell) {
  c.algorithm.groups_per_update = cell.groups;
  c.staleness.bound = cell.bound;
  c.steps = cell.steps;
  return c;
}

PipelineConfig one_by_one(PipelineConfig c, const Cell& cell) {
  c = whole_turns(std::move(c), cell);
  c.placement.switching = Switching::OneByOne;
  c.stragglers.prepare = true;
  return c;
}

/// Twelve engines with a KV cache for 40 % of their slots.
PipelineConfig twelve_engines() {
  return load_config(TEMPER_CONFIGS "/cm384_pangu_fused.yaml").value();
}

/// Four engines on 64 cards, with a KV cache for a quarter of their slots: decoding is as fast as
/// it gets at every time.
PipelineConfig four_engines() {
  PipelineConfig c = load_config(TEMPER_CONFIGS "/a3_64_qwen3_235b_32k.yaml").value();
  c.rollout.replicas = 4;
  c.simulation.rollout.ep = 32;
  c.simulation.rollout.kv_share = 0.6;
  c.simulation.trainer.pp = 4;
  c.simulation.trainer.ep = 8;
  c.simulation.trainer.cp = 1;
  return c;
}

double trained_per_s(const PipelineConfig& config) {
  return simulate(config).value().whole.trained_per_s;
}

TEST(RlFusion, SwitchingOneByOneIsFasterThanWholeTurnsAtEveryBatch) {
  const PipelineConfig c = twelve_engines();
  for (const Cell& cell : {Cell{512, 0, 4}, Cell{512, 2, 8}, Cell{2048, 0, 2}, Cell{2048, 1, 3}}) {
    EXPECT_GT(trained_per_s(one_by_one(c, cell)), 1.05 * trained_per_s(whole_turns(c, cell)))
        << cell.groups << " groups at bound " << cell.bound;
  }
}

TEST(RlFusion, SwitchingOneByOneIsFasterWhereTheCacheHoldsFewerResponsesThanThereAreSlots) {
  const PipelineConfig c = four_engines();
  for (const Cell& cell : {Cell{128, 0, 4}, Cell{128, 1, 10}, Cell{512, 0, 4}, Cell{512, 2, 6}}) {
    EXPECT_GT(trained_per_s(one_by_one(c, cell)), trained_per_s(whole_turns(c, cell)))
        << cell.groups << " groups at bound " << cell.bound;
  }
}

}  // namespace
}  // namespace temper::study
