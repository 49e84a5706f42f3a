// The critic of the real policy: a network of the policy's shape whose head computes a value for
// each token, with an optimizer of its own. It starts from the base weights with a head of zero, so
// every value is 0 until it is trained. It is saved with the trainer and published nowhere.
#pragma once

#include "actors/policy/adamw.hpp"
#include "actors/policy/transformer.hpp"
#include "trainer/gae.hpp"
#include "trainer/torch/checkpoint.hpp"
#include "trainer/torch/minibatch.hpp"
#include "trainer/torch/movable_optimizer.hpp"

#include <span>
#include <vector>

namespace temper::trainer {

class Critic {
 public:
  /// Copies the weights of a policy. `optimizer` has the critic's learning rate.
  Critic(const actors::Weights& policy,
         const CriticConfig& config,
         const actors::AdamWConfig& optimizer);
  Critic(const Critic&) = delete;  // The network refers to the weights.
  Critic& operator=(const Critic&) = delete;

  /// Begins a step: the estimates of a batch under the current weights.
  std::vector<TokenEstimates> estimate(std::span<const TrainSample> batch,
                                       std::span<const Minibatch> minibatches,
                                       const Algorithm& algorithm);
  /// One step of the optimizer, with this share of the learning rate. Error: NotFinite.
  Status train(std::span<const TrainSample> batch,
               const Minibatch& minibatch,
               std::span<const TokenEstimates> estimates,
               double rate_share);
  /// Ends a step. Error: NotFinite.
  Status finish(std::span<const TokenEstimates> estimates, UpdateMetrics& metrics) const;

  std::int64_t steps() const { return optimizer_.steps(); }
  actors::Layout layout() const { return weights_.layout(); }
  void load(CriticState state);
  /// Calls `use`, which returns a Status, with a CriticView of the current state.
  template <class Use>
  Status view(Use use) const {
    return optimizer_.view([&](const actors::AdamWState& optimizer) {
      return use(CriticView{&weights_, &optimizer});
    });
  }

  Status offload() {
    network_.free_gradients();
    return optimizer_.offload();
  }
  Status onload() { return optimizer_.onload(); }
  /// Adds its own to that of the policy.
  void add_to(TrainerMemory& memory) const;

 private:
  void pass(std::span<const TrainSample> batch,
            const MicroBatch& micro,
            std::span<const TokenEstimates> estimates);

  const CriticConfig config_;
  const actors::AdamWConfig adamw_;
  actors::Weights weights_;
  MovableOptimizer optimizer_;
  actors::Transformer network_;
  /// Of the current step; the loss is that of the current minibatch, not divided yet.
  struct Sums {
    double loss = 0, mean_losses = 0, clipped = 0, tokens = 0, minibatches = 0;
  } sums_;
};

}  // namespace temper::trainer
