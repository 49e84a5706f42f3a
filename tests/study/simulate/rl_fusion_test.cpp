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

PipelineConfig whole_turns(const Cell& cell) {
  PipelineConfig c = load_config(TEMPER_CONFIGS "/cm384_pangu_fused.yaml").value();
  c.algorithm.groups_per_update = cell.groups;
  c.staleness.bound = cell.bound;
  c.steps = cell.steps;
  return c;
}

PipelineConfig one_by_one(const Cell& cell) {
  PipelineConfig c = whole_turns(cell);
  c.placement.switching = Switching::OneByOne;
  c.stragglers.prepare = true;
  return c;
}

double trained_per_s(const PipelineConfig& config) {
  return simulate(config).value().whole.trained_per_s;
}

TEST(RlFusion, SwitchingOneByOneIsFasterThanWholeTurnsAtEveryBatch) {
  for (const Cell& cell : {Cell{512, 0, 4}, Cell{512, 2, 8}, Cell{2048, 0, 2}, Cell{2048, 1, 3}}) {
    EXPECT_GT(trained_per_s(one_by_one(cell)), 1.05 * trained_per_s(whole_turns(cell)))
        << cell.groups << " groups at bound " << cell.bound;
  }
}

}  // namespace
}  // namespace temper::study
