// Measures the cost model of sim_hw:
// - complete training-step estimates (divisor checks, memory of the fullest stage, time) of a
//   mixture-of-experts model on thousands of devices, per second on one core; and of a dense one
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/parallel/train_iteration.hpp"
#include "sim_hw/predict/catalog.hpp"

#include <benchmark/benchmark.h>

#include <array>

namespace temper::sim_hw {
namespace {

/// Layouts of a search: each estimate has another.
void estimate(benchmark::State& state,
              const char* model_name,
              const char* hardware_name,
              Layout layout,
              TrainShape shape) {
  Catalog catalog = Catalog::shipped();
  const ModelSpec& model = **catalog.model(model_name);
  const HardwareSpec& hardware = **catalog.hardware(hardware_name);
  const Device device = make_device(hardware);
  const Fabric fabric = make_fabric(hardware);
  const std::int64_t devices = layout.devices();
  const std::array<Recompute, 3> choices{Recompute::None, Recompute::Selective, Recompute::Full};
  std::size_t next = 0;
  for (auto _ : state) {
    shape.recompute = choices[next++ % choices.size()];
    const Status status = check_layout(model, devices, layout, shape);
    bool fits =
        status.has_value() && worst_train_ledger(model, layout, shape).total() <= device.memory;
    double seconds = train_iteration_time(model, device, fabric, layout, shape).total();
    benchmark::DoNotOptimize(fits);
    benchmark::DoNotOptimize(seconds);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}

TrainShape shape_of(std::int64_t micro_batch, std::int64_t batch, std::int64_t seq) {
  TrainShape shape;
  shape.micro_batch = micro_batch;
  shape.global_batch = batch;
  shape.seq = seq;
  shape.expert_imbalance = 1.2;
  return shape;
}

// As published for 6,000 devices: TP8 for attention, PP16 with two chunks, EP32.
BENCHMARK_CAPTURE(estimate,
                  pangu_ultra_moe_718b,
                  "pangu-ultra-moe-718b",
                  "ascend-910b",
                  Layout{.tp = 8,
                         .pp = 16,
                         .vpp = 2,
                         .ep = 32,
                         .dp = 48,
                         .zero = Zero::Optimizer,
                         .sequence_parallel = SequenceParallel::On},
                  shape_of(2, 1536, 8192));
BENCHMARK_CAPTURE(estimate,
                  gpt3_175b,
                  "gpt3-175b",
                  "nvidia-a100",
                  Layout{.tp = 8,
                         .pp = 8,
                         .vpp = 3,
                         .dp = 16,
                         .zero = Zero::Optimizer,
                         .sequence_parallel = SequenceParallel::On},
                  shape_of(1, 1024, 2048));

}  // namespace
}  // namespace temper::sim_hw

BENCHMARK_MAIN();
