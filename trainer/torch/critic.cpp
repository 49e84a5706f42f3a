#include "trainer/torch/critic.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace temper::trainer {
namespace {

/// The tensors that both networks have are the first of both layouts; the head stays zero.
actors::Weights initial_weights(const actors::Weights& policy) {
  actors::Weights weights(policy.layout().of_critic());
  const auto& tensors = policy.layout().tensors();
  for (std::size_t i = 0; i <= policy.layout().norm(); ++i)
    std::copy_n(policy.tensor(i),
                tensors[i].elements(),
                weights.values().data() + weights.layout().tensors()[i].offset);
  return weights;
}

}  // namespace

Critic::Critic(const actors::Weights& policy,
               const CriticConfig& config,
               const actors::AdamWConfig& optimizer)
    : config_(config),
      adamw_(optimizer),
      weights_(initial_weights(policy)),
      optimizer_(weights_.layout().size()),
      network_(weights_) {}

std::vector<TokenEstimates> Critic::estimate(std::span<const TrainSample> batch,
                                             std::span<const Minibatch> minibatches,
                                             const Algorithm& algorithm) {
  sums_ = {};
  std::vector<std::vector<double>> values(batch.size());
  for (const Minibatch& minibatch : minibatches) {
    for (const MicroBatch& micro : minibatch.passes) {
      auto rest = network_.values(micro.pack, actors::Graph::Discard);
      for (const std::size_t i : micro.samples) {
        const std::size_t n = batch[i].response.size();
        values[i] = of_trained_tokens(batch[i], rest.first(n));
        rest = rest.subspan(n);
      }
    }
  }
  return token_estimates(batch, std::move(values), algorithm);
}

Status Critic::train(std::span<const TrainSample> batch,
                     const Minibatch& minibatch,
                     std::span<const TokenEstimates> estimates,
                     double rate_share) {
  network_.zero_gradients();
  for (const MicroBatch& micro : minibatch.passes)
    pass(batch, micro, estimates);
  const auto tokens = static_cast<double>(minibatch.tokens);
  const double loss = std::exchange(sums_.loss, 0) / tokens;
  actors::FloatBuffer& gradients = network_.gradients();
  gradients.scale(static_cast<float>(1 / tokens));
  const double norm = actors::gradient_norm(gradients);
  if (!std::isfinite(norm) || !std::isfinite(loss)) {
    return Error{
        ErrorCode::NotFinite,
        fmt::format("critic: gradient norm {} and loss {} are not both finite", norm, loss)};
  }
  actors::AdamWConfig adamw = adamw_;
  adamw.learning_rate *= rate_share;
  actors::adamw_step(adamw, gradients, norm, optimizer_.state(), weights_);
  sums_.mean_losses += loss;
  sums_.tokens += tokens;
  sums_.minibatches += 1;
  return {};
}

void Critic::pass(std::span<const TrainSample> batch,
                  const MicroBatch& micro,
                  std::span<const TokenEstimates> estimates) {
  const auto values = network_.values(micro.pack, actors::Graph::Keep);
  std::vector<float> derivatives;
  derivatives.reserve(values.size());
  for (const std::size_t i : micro.samples) {
    const TrainSample& sample = batch[i];
    const TokenEstimates& of = estimates[i];
    std::size_t trained = 0;
    for (std::size_t t = 0; t < sample.response.size(); ++t) {
      const auto value = static_cast<double>(values[derivatives.size()]);
      if (!sample.is_trained(t)) {
        derivatives.push_back(0);
        continue;
      }
      const ValueLoss loss = value_loss(value, of.values[trained], of.returns[trained], config_);
      derivatives.push_back(static_cast<float>(loss.d_value));
      sums_.loss += loss.loss;
      sums_.clipped += loss.clipped ? 1 : 0;
      ++trained;
    }
  }
  network_.backward(derivatives);
}

Status Critic::finish(std::span<const TokenEstimates> estimates, UpdateMetrics& metrics) const {
  if (!weights_.values().all_finite())
    return Error{ErrorCode::NotFinite, "the new weights of the critic are not finite"};
  metrics.critic_loss = sums_.mean_losses / sums_.minibatches;
  metrics.critic_value_mean = mean_value(estimates);
  metrics.critic_explained_variance = explained_variance(estimates);
  metrics.critic_clip_fraction = sums_.clipped / sums_.tokens;
  return {};
}

void Critic::load(CriticState state) {
  std::copy_n(state.values.data(), weights_.values().size(), weights_.values().data());
  optimizer_.state() = std::move(state.optimizer);
}

void Critic::add_to(TrainerMemory& memory) const {
  memory.weights += weights_.values().bytes();
  memory.gradients += network_.gradient_bytes();
  memory.optimizer += optimizer_.bytes();
  memory.host += optimizer_.offloaded_bytes();
}

}  // namespace temper::trainer
