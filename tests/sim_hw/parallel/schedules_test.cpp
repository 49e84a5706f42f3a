// Pipeline schedules with overlapping passes, run slot by slot and compared with their closed
// forms.
#include "sim_hw/catalog/catalog.hpp"
#include "sim_hw/parallel/layout_check.hpp"
#include "sim_hw/parallel/train_iteration.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <tuple>
#include <vector>

namespace temper::sim_hw {
namespace {

/// A pass of one micro-batch through one chunk of the model, of which `place` is the position in
/// the order of the forward pass. Chunks of two copies of the model have different `copy`.
struct PassOf {
  bool forward = true;
  int micro_batch = 0;
  int place = 0;
  int copy = 0;
};
/// Passes that a device works on together; with none, work that nothing waits for.
struct Slot {
  std::vector<PassOf> passes;
  double seconds = 0;
};

/// The time at which the last device has done its slots, in order, each as soon as the passes
/// before its passes are done. `places`: chunks of one copy of the model.
double run(const std::vector<std::vector<Slot>>& devices, int places) {
  std::map<std::tuple<bool, int, int, int>, double> done;
  const auto before = [&](const PassOf& p) -> std::optional<double> {
    if (p.forward && p.place == 0)
      return 0;
    const bool turn = !p.forward && p.place == places - 1;  // Its own forward pass.
    const int place = turn ? p.place : p.place + (p.forward ? -1 : 1);
    const auto found = done.find({p.forward || turn, p.micro_batch, place, p.copy});
    return found == done.end() ? std::nullopt : std::optional(found->second);
  };
  std::vector<std::size_t> next(devices.size());
  std::vector<double> time(devices.size());
  for (bool moved = true; moved;) {
    moved = false;
    for (std::size_t d = 0; d < devices.size(); ++d) {
      for (bool ready = true; ready && next[d] < devices[d].size();) {
        const Slot& slot = devices[d][next[d]];
        double start = time[d];
        for (const PassOf& p : slot.passes) {
          const std::optional<double> input = before(p);
          ready = ready && input.has_value();
          start = std::max(start, input.value_or(0));
        }
        if (!ready)
          break;
        time[d] = start + slot.seconds;
        for (const PassOf& p : slot.passes)
          done[{p.forward, p.micro_batch, p.place, p.copy}] = time[d];
        ++next[d];
        moved = true;
      }
    }
  }
  for (std::size_t d = 0; d < devices.size(); ++d)
    EXPECT_EQ(next[d], devices[d].size()) << "device " << d << " is stuck";
  return *std::ranges::max_element(time);
}

struct Seconds {
  double forward = 0, backward = 0, both = 0;
  double weight_gradient = 0;  ///< Of backward.
};

/// Interleaved, with one more forward chunk before the first backward, then in pairs.
double run_adaptive(int stages, int chunks, int micro_batches, const Seconds& s) {
  std::vector<PassOf> forwards, backwards;  // Of stage 0.
  for (int group = 0; group < micro_batches; group += stages) {
    for (int c = 0; c < chunks; ++c) {
      for (int k = 0; k < stages; ++k) {
        forwards.push_back({true, group + k, c * stages, 0});
        backwards.push_back({false, group + k, (chunks - 1 - c) * stages, 0});
      }
    }
  }
  const std::size_t all = forwards.size();
  std::vector<std::vector<Slot>> devices;
  for (int stage = 0; stage < stages; ++stage) {
    const auto ahead = std::min(
        static_cast<std::size_t>(2 * (stages - stage - 1) + (chunks - 1) * stages + 1), all);
    std::vector<Slot> slots(all + ahead);
    for (std::size_t i = 0; i < slots.size(); ++i) {
      if (i < all)
        slots[i].passes.push_back(forwards[i]);
      if (i >= ahead)
        slots[i].passes.push_back(backwards[i - ahead]);
      for (PassOf& p : slots[i].passes)
        p.place += stage;
      slots[i].seconds = slots[i].passes.size() == 2  ? s.both
                         : slots[i].passes[0].forward ? s.forward
                                                      : s.backward;
    }
    devices.push_back(std::move(slots));
  }
  return run(devices, stages * chunks);
}

/// The slots of one device of DualPipe. Direction 0 is the one whose micro-batches reach this half
/// of the devices first.
class DualPipeDevice {
 public:
  DualPipeDevice(int device, int devices, const Seconds& seconds)
      : device_(device), devices_(devices), s_(seconds) {}

  void forward(int direction) { slots_.push_back({{next(true, direction)}, s_.forward}); }
  void backward(int direction, bool put_off_weights = false) {
    const double later = put_off_weights ? s_.weight_gradient : 0;
    slots_.push_back({{next(false, direction)}, s_.backward - later});
  }
  void both(int forward, int backward) {
    slots_.push_back({{next(true, forward), next(false, backward)}, s_.both});
  }
  void weights() { slots_.push_back({{}, s_.weight_gradient}); }
  std::vector<Slot> slots() const { return slots_; }

 private:
  PassOf next(bool forward, int direction) {
    const int copy = device_ < devices_ / 2 ? direction : 1 - direction;
    int& count = count_[forward ? 0 : 1][static_cast<std::size_t>(direction)];
    return {forward, count++, copy == 0 ? device_ : devices_ - 1 - device_, copy};
  }

  int device_, devices_;
  Seconds s_;
  std::vector<Slot> slots_;
  std::array<std::array<int, 2>, 2> count_{};
};

/// In the order of the published code (deepseek-ai/DualPipe).
double run_dual(int stages, int micro_batches, const Seconds& s) {
  std::vector<std::vector<Slot>> devices;
  for (int device = 0; device < stages; ++device) {
    const int half = stages / 2;
    const int rank = std::min(device, stages - 1 - device);
    const int outer = half - rank - 1;
    DualPipeDevice d(device, stages, s);
    for (int i = 0; i < 2 * outer; ++i)
      d.forward(0);
    for (int i = 0; i < rank + 1; ++i) {
      d.forward(0);
      d.forward(1);
    }
    for (int i = 0; i < outer; ++i) {
      d.backward(1, true);
      d.weights();
      d.forward(1);
    }
    for (int i = 0; i < micro_batches / 2 - stages + rank + 1; ++i) {
      if (i == 0 && outer == 0) {
        d.forward(0);
        d.backward(1);
      } else {
        d.both(0, 1);
      }
      d.both(1, 0);
    }
    for (int i = 0; i < outer; ++i) {
      d.backward(1);
      d.both(1, 0);
    }
    // From the middle on, the last backward passes defer their weight gradients.
    for (int i = 0; i < 2 * (rank + 1); ++i)
      d.backward(1 - i % 2, i > rank);
    for (int i = 0; i < outer; ++i) {
      d.weights();
      d.backward(0, true);
    }
    for (int i = 0; i < rank + 1; ++i)
      d.weights();
    devices.push_back(d.slots());
  }
  return run(devices, stages);
}

class Schedules : public testing::Test {
 protected:
  /// Equal stages: no embedding, no head, no modules, only expert layers.
  Schedules() : model_(**catalog_.model("pangu-ultra-moe-718b")) {
    model_.layers = 64;
    model_.vocabulary = 0;
    model_.mtp_layers = 0;
    model_.moe->dense_layers = 0;
    layout_.tp = 8;
    layout_.pp = 16;
    layout_.ep = 32;
    layout_.dp = 4;
    layout_.sequence_parallel = SequenceParallel::On;
    shape_.seq = 8192;
  }
  /// Of a chunk of `layers` layers in a step of that time; transfers and the accumulation of
  /// gradients count as backward.
  Seconds seconds(const TrainTime& t, double layers, double chunks) const {
    const LayerCost layer =
        layer_cost({model_, device_, fabric_, layout_, shape_}, LayerKind::Experts);
    const double around = (t.stage.accumulation + t.stage.pipeline_transfer) / chunks;
    Seconds s;
    s.both = layers * layer.time.total() + around;
    s.forward = layers * (layer.forward + layer.hidden_forward);
    s.backward = s.both + layers * layer.hidden - s.forward;
    s.weight_gradient = layers * layer.weight_gradient;
    return s;
  }
  TrainTime time(int micro_batches, PipelineSchedule schedule) {
    shape_.mechanisms.schedule = schedule;
    shape_.global_batch = micro_batches * layout_.dp;
    const Status status = check_layout(model_, layout_.devices(), layout_, shape_);
    EXPECT_TRUE(status) << (status ? "" : status.error().context);
    return train_iteration_time(model_, device_, fabric_, layout_, shape_);
  }

  Catalog catalog_ = Catalog::shipped();
  ModelSpec model_;
  const Device device_ = make_device(**catalog_.hardware("ascend-910b"));
  const Fabric fabric_ = make_fabric(**catalog_.hardware("ascend-910b"));
  Layout layout_;
  TrainShape shape_;
};

TEST_F(Schedules, AdaptivePipeMatchesItsSlots) {
  layout_.vpp = 2;
  for (const int micro_batches : {16, 32, 64, 96}) {
    const TrainTime t = time(micro_batches, PipelineSchedule::AdaptivePipe);
    const double slots = run_adaptive(16, 2, micro_batches, seconds(t, 2, 2.0 * micro_batches));
    EXPECT_NEAR((t.stage.total() + t.bubble) / slots, 1, 1e-6) << micro_batches;
  }
}

TEST_F(Schedules, DualPipeNearlyMatchesItsSlots) {
  for (const int micro_batches : {32, 40, 64, 96}) {
    const TrainTime t = time(micro_batches, PipelineSchedule::DualPipe);
    const double slots = run_dual(16, micro_batches, seconds(t, 4, micro_batches));
    EXPECT_NEAR((t.stage.total() + t.bubble) / slots, 1, 0.012) << micro_batches;
  }
}

TEST_F(Schedules, DualPipeHasThePublishedBubble) {
  const TrainTime t = time(64, PipelineSchedule::DualPipe);
  const Seconds s = seconds(t, 4, 64);
  // 2412.19437, table 2: (PP / 2 - 1) (F&B + B - 3 W).
  EXPECT_NEAR(t.bubble / (7 * (s.both + s.backward - 3 * s.weight_gradient)), 1, 1e-9);
}

TEST_F(Schedules, AdaptivePipeTakesLessThanInterleavedOneForwardOneBackward) {
  layout_.vpp = 2;
  EXPECT_LT(time(64, PipelineSchedule::AdaptivePipe).total(),
            time(64, PipelineSchedule::OneForwardOneBackward).total());
}

}  // namespace
}  // namespace temper::sim_hw
