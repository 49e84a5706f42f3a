#include "trainer/torch/engine.hpp"

#include "actors/policy/adamw.hpp"
#include "actors/policy/transformer.hpp"
#include "trainer/torch/checkpoint.hpp"
#include "trainer/torch/grpo.hpp"
#include "trainer/torch/minibatch.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace temper::trainer {

namespace {

using actors::AdamWState;
using actors::Weights;

/// Sums over tokens of an update, for the metrics.
struct Sums {
  double loss = 0, ratio = 0, kl = 0, clipped = 0, negative_logprob = 0, tokens = 0;
  double norm = 0;  ///< Over minibatches.
};

class TorchEngine final : public Engine {
 public:
  TorchEngine(const TorchEngineOptions& options, Weights weights)
      : options_(options),
        weights_(std::move(weights)),
        optimizer_(weights_.layout()),
        network_(weights_) {}

  Result<UpdateMetrics> update(std::span<const TrainSample> batch) override;
  Result<std::string> weights() const override {
    return weights_.to_image({{"updates", std::to_string(updates_)}});
  }
  Status save(const std::filesystem::path& folder) const override;
  Status load(const std::filesystem::path& folder) override;
  Status offload() override;
  Status onload() override;
  TrainerMemory memory() const override;

 private:
  Status check(const TrainSample& sample) const;
  Status run_minibatches(std::span<const TrainSample> batch, UpdateMetrics& metrics);
  void run_micro_batch(const MicroBatch& micro,
                       std::span<const TrainSample> batch,
                       std::span<const double> advantages,
                       double scale,
                       Sums& sums);
  actors::AdamWConfig adamw() const;

  const TorchEngineOptions options_;
  Weights weights_;
  AdamWState optimizer_;
  actors::Transformer network_;
  std::uint64_t updates_ = 0;
  bool offloaded_ = false;
};

Status TorchEngine::check(const TrainSample& s) const {
  const auto bad = [&](std::string_view what) {
    return invalid_input(fmt::format("a sample of group {}: {}", s.group, what));
  };
  const auto outside = [&](std::int32_t t) { return t < 0 || t >= options_.vocabulary; };
  const auto finite = [](float x) { return std::isfinite(x); };
  if (s.prompt.empty() || static_cast<std::int64_t>(s.prompt.size() + s.response.size()) >
                              options_.model.context.count())
    return bad(fmt::format("prompt of {} and response of {} tokens in a context of {}",
                           s.prompt.size(),
                           s.response.size(),
                           options_.model.context.count()));
  if (std::any_of(s.prompt.begin(), s.prompt.end(), outside) ||
      std::any_of(s.response.begin(), s.response.end(), outside))
    return bad("a token outside the vocabulary");
  if (s.behaviour_logprobs.size() != s.response.size())
    return bad(fmt::format("{} behaviour log-probs for {} response tokens",
                           s.behaviour_logprobs.size(),
                           s.response.size()));
  if (!s.reference_logprobs.empty() && s.reference_logprobs.size() != s.response.size())
    return bad("reference log-probs of another length than its response");
  if (s.reference_logprobs.empty() && !s.response.empty() && options_.algorithm.kl > 0)
    return bad("no reference log-probs, but kl > 0 needs them");
  if (!std::all_of(s.behaviour_logprobs.begin(), s.behaviour_logprobs.end(), finite) ||
      !std::all_of(s.reference_logprobs.begin(), s.reference_logprobs.end(), finite) ||
      !std::isfinite(s.reward))
    return bad("a log-prob or reward that is not finite");
  return {};
}

actors::AdamWConfig TorchEngine::adamw() const {
  const AlgorithmConfig& a = options_.algorithm;
  return {a.learning_rate, a.beta1, a.beta2, a.adam_epsilon, a.weight_decay, a.gradient_clip};
}

Result<UpdateMetrics> TorchEngine::update(std::span<const TrainSample> batch) {
  if (offloaded_)
    return Error{ErrorCode::Unavailable, "update: the optimizer is offloaded"};
  UpdateMetrics metrics;
  std::int64_t response_tokens = 0;
  for (const TrainSample& sample : batch) {
    TEMPER_TRY_STATUS(check(sample));
    metrics.reward_mean += sample.reward / static_cast<double>(batch.size());
    metrics.tokens += Tokens(static_cast<std::int64_t>(sample.prompt.size()));
    response_tokens += static_cast<std::int64_t>(sample.response.size());
  }
  metrics.tokens += Tokens(response_tokens);
  if (response_tokens == 0)
    return invalid_input("update: a batch without a response token");

  const Weights weights_before = weights_.clone();
  const AdamWState optimizer_before = optimizer_.clone();
  if (auto status = run_minibatches(batch, metrics); !status) {
    std::copy_n(weights_before.values().data(), weights_.values().size(), weights_.values().data());
    optimizer_ = optimizer_before.clone();
    return std::move(status).error().within(fmt::format("update {}", updates_));
  }
  ++updates_;
  return metrics;
}

Status TorchEngine::run_minibatches(std::span<const TrainSample> batch, UpdateMetrics& metrics) {
  const std::vector<double> advantages =
      group_advantages(batch, options_.algorithm.advantage_epsilon);
  const auto minibatches =
      split_minibatches(batch, options_.algorithm.minibatches, options_.seed, updates_);
  actors::FloatBuffer& gradients = network_.gradients();
  Sums sums;
  double steps = 0;
  for (const SampleIndices& minibatch : minibatches) {
    std::size_t tokens = 0;
    for (const std::size_t i : minibatch)
      tokens += batch[i].response.size();
    if (tokens == 0)
      continue;
    std::fill_n(gradients.data(), gradients.size(), 0.0f);
    const auto micro_batches =
        pack_micro_batches(batch, minibatch, options_.algorithm.micro_batch_tokens.count());
    for (const MicroBatch& micro : micro_batches) {
      run_micro_batch(micro, batch, advantages, 1.0 / static_cast<double>(tokens), sums);
      ++metrics.micro_batches;
    }
    if (steps == 0)
      metrics.ratio_mean = sums.ratio / sums.tokens;
    const double norm = actors::gradient_norm(gradients);
    if (!std::isfinite(norm) || !std::isfinite(sums.loss))
      return Error{
          ErrorCode::Internal,
          fmt::format("gradient norm {} and loss {} are not both finite", norm, sums.loss)};
    sums.norm += norm;
    adamw_step(adamw(), gradients, norm, optimizer_, weights_);
    ++steps;
  }
  const auto finite = [](float x) { return std::isfinite(x); };
  if (!std::all_of(weights_.values().span().begin(), weights_.values().span().end(), finite))
    return Error{ErrorCode::Internal, "the new weights are not finite"};
  metrics.loss = sums.loss / sums.tokens;
  metrics.kl = sums.kl / sums.tokens;
  metrics.clip_fraction = sums.clipped / sums.tokens;
  metrics.entropy = sums.negative_logprob / sums.tokens;
  metrics.gradient_norm = sums.norm / steps;
  return {};
}

void TorchEngine::run_micro_batch(const MicroBatch& micro,
                                  std::span<const TrainSample> batch,
                                  std::span<const double> advantages,
                                  double scale,
                                  Sums& sums) {
  const auto logprobs = network_.forward(micro.pack, options_.temperature, actors::Graph::Keep);
  std::vector<float> derivatives(logprobs.size());
  std::size_t target = 0;
  for (const std::size_t i : micro.samples) {
    const TrainSample& sample = batch[i];
    for (std::size_t t = 0; t < sample.response.size(); ++t, ++target) {
      TokenInputs in;
      in.logprob = static_cast<double>(logprobs[target]);
      in.behaviour = static_cast<double>(sample.behaviour_logprobs[t]);
      in.advantage = advantages[i];
      if (!sample.reference_logprobs.empty())
        in.reference = static_cast<double>(sample.reference_logprobs[t]);
      const TokenLoss out = token_loss(in, options_.algorithm);
      derivatives[target] = static_cast<float>(out.d_logprob * scale);
      sums.loss += out.loss;
      sums.kl += out.kl;
      sums.clipped += out.clipped ? 1 : 0;
      sums.negative_logprob -= in.logprob;
      sums.ratio += out.ratio;
      sums.tokens += 1;
    }
  }
  network_.backward(derivatives);
}

Status TorchEngine::save(const std::filesystem::path& folder) const {
  return save_checkpoint(folder, weights_, optimizer_, updates_);
}

Status TorchEngine::load(const std::filesystem::path& folder) {
  if (offloaded_)
    return Error{ErrorCode::Unavailable, "load: the optimizer is offloaded"};
  TEMPER_TRY(TrainerState state, load_checkpoint(folder, weights_.layout()));
  std::copy_n(state.weights.values().data(), weights_.values().size(), weights_.values().data());
  optimizer_ = std::move(state.optimizer);
  updates_ = state.updates;
  return {};
}

// Card and host memory are one here, so the move is a copy into fresh pages and a release of the
// old ones: the same work and the same peak as on a card.
Status TorchEngine::offload() {
  if (!offloaded_)
    optimizer_ = optimizer_.clone();
  network_.free_gradients();
  offloaded_ = true;
  return {};
}

Status TorchEngine::onload() {
  if (offloaded_)
    optimizer_ = optimizer_.clone();
  offloaded_ = false;
  return {};
}

TrainerMemory TorchEngine::memory() const {
  TrainerMemory memory;
  memory.weights = weights_.values().bytes();
  memory.gradients = network_.gradient_bytes();
  const Bytes moments = optimizer_.first_moment.bytes() + optimizer_.second_moment.bytes();
  (offloaded_ ? memory.host : memory.optimizer) = moments;
  return memory;
}

}  // namespace

Result<std::unique_ptr<Engine>> make_torch_engine(const TorchEngineOptions& options,
                                                  std::span<const std::byte> weights) {
  TEMPER_TRY(const actors::Layout layout, actors::Layout::make(options.model, options.vocabulary));
  TEMPER_TRY(Weights loaded, Weights::from_image(layout, weights));
  return std::unique_ptr<Engine>(new TorchEngine(options, std::move(loaded)));
}

}  // namespace temper::trainer
