// Measures the cost model of sim_hw on one core, in costs per second:
// - decode steps of a dense and of a mixture-of-experts model, each with another batch and context
// - one decode step on 256 dies: operators and exchanges
// - single GEMMs
// - a whole synchronous iteration of one card with given response lengths
// - complete training-step estimates (divisor checks, memory of the fullest stage, time) of a
//   mixture-of-experts model on thousands of devices, and of a dense model
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/iteration/lengths.hpp"
#include "sim_hw/iteration/one_card.hpp"
#include "sim_hw/memory/ledger.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/parallel/train_iteration.hpp"
#include "sim_hw/steps/parallel_decode.hpp"

#include <benchmark/benchmark.h>

#include <array>

namespace temper::sim_hw {
namespace {

/// Requests like those of a scheduler: each call has another batch and context, so that no result
/// can be reused.
class Shapes {
 public:
  double batch() const { return batch_; }
  double context() const { return context_; }
  void next() {
    batch_ = batch_ >= 1024 ? 1 : batch_ + 1;
    context_ = context_ >= 32768 ? 257 : context_ + 37;
  }

 private:
  double batch_ = 1;
  double context_ = 257;
};

void decode(benchmark::State& state, const char* model_name, Launch launch) {
  Catalog catalog = Catalog::shipped();
  const Device device = make_device(**catalog.hardware("nvidia-h200"));
  const StepModel model = make_step_model(**catalog.model(model_name));
  Shapes shapes;
  for (auto _ : state) {
    shapes.next();
    double seconds = decode_seconds(device, model, {shapes.batch(), shapes.context(), launch});
    benchmark::DoNotOptimize(seconds);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK_CAPTURE(decode, qwen2_5_7b, "qwen2.5-7b", Launch::Graph);
BENCHMARK_CAPTURE(decode, qwen2_5_7b_eager, "qwen2.5-7b", Launch::Eager);
BENCHMARK_CAPTURE(decode, qwen3_30b_a3b, "qwen3-30b-a3b", Launch::Graph);
BENCHMARK_CAPTURE(decode, deepseek_v3, "deepseek-v3", Launch::Graph);

void parallel_decode(benchmark::State& state) {
  Catalog catalog = Catalog::shipped();
  const HardwareSpec& hardware = **catalog.hardware("cm384");
  const Device device = make_device(hardware);
  const Fabric fabric = make_fabric(hardware);
  const RolloutLayout layout{2, 128, 256};
  const StepModel model = make_step_model(**catalog.model("deepseek-v3"), layout.tp, layout.ep);
  Shapes shapes;
  for (auto _ : state) {
    shapes.next();
    double seconds = parallel_decode_seconds(
        device, fabric, model, layout, {shapes.batch(), shapes.batch(), shapes.context()});
    benchmark::DoNotOptimize(seconds);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(parallel_decode);

void gemm(benchmark::State& state) {
  Catalog catalog = Catalog::shipped();
  const Device device = make_device(**catalog.hardware("nvidia-h200"));
  Shapes shapes;
  for (auto _ : state) {
    shapes.next();
    double seconds = gemm_seconds(device, Heat::Isolated, shapes.batch(), shapes.context(), 4096);
    benchmark::DoNotOptimize(seconds);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(gemm);

void iteration(benchmark::State& state) {
  Catalog catalog = Catalog::shipped();
  const Device device = make_device(**catalog.hardware("nvidia-h200"));
  const StepModel model = make_step_model(**catalog.model("qwen2.5-7b"));
  const Result<std::vector<double>> lengths = lognormal_lengths(512, 700, 2048, 4);
  IterationWork work{256, *lengths};
  for (auto _ : state) {
    work.prompt = work.prompt >= 4096 ? 256 : work.prompt + 1;
    double seconds = one_card_iteration(device, model, work).total();
    benchmark::DoNotOptimize(seconds);
  }
  state.SetItemsProcessed(static_cast<std::int64_t>(state.iterations()));
}
BENCHMARK(iteration);

/// Layouts of a search; each estimate has another one.
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

TrainShape with_mechanisms(TrainShape shape) {
  shape.mechanisms = {.expert_path = ExpertPath::Gathered,
                      .token_copies = TokenCopies::PerDevice,
                      .schedule = PipelineSchedule::AdaptivePipe,
                      .host_dispatch = HostDispatch::Eager,
                      .split_counts = SplitCounts::FetchedOnce,
                      .balance_loss = BalanceLoss::ExpertGroup};
  return shape;
}

// The published layout for 6,000 devices: TP8 for attention, PP16 with two chunks, EP32.
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
// The same with the mechanisms that are most expensive to estimate.
BENCHMARK_CAPTURE(estimate,
                  pangu_ultra_moe_718b_mechanisms,
                  "pangu-ultra-moe-718b",
                  "ascend-910b",
                  Layout{.tp = 8,
                         .pp = 16,
                         .vpp = 2,
                         .ep = 32,
                         .dp = 48,
                         .zero = Zero::Optimizer,
                         .sequence_parallel = SequenceParallel::On,
                         .layer_balance = LayerBalance::Counted},
                  with_mechanisms(shape_of(2, 1536, 8192)));
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
