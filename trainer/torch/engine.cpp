#include "trainer/torch/engine.hpp"

#include "actors/border/values.hpp"
#include "actors/policy/adamw.hpp"
#include "actors/policy/transformer.hpp"
#include "actors/roles/canary.hpp"
#include "trainer/advantages.hpp"
#include "trainer/algorithm_table.hpp"
#include "trainer/policy_loss.hpp"
#include "trainer/torch/checkpoint.hpp"
#include "trainer/torch/minibatch.hpp"
#include "trainer/torch/parked_optimizer.hpp"
#include "trainer/torch/update_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <utility>

namespace temper::trainer {

namespace {

using actors::AdamWState;

/// One minibatch: one step of the optimizer.
struct Minibatch {
  std::vector<MicroBatch> passes;  ///< Without prepared gradients.
  std::size_t responses = 0, tokens = 0;
};

/// A training step, or the part of one whose gradients are computed in advance.
struct Update {
  std::span<const TrainSample> batch;
  std::vector<double> advantages;
  std::vector<Minibatch> minibatches;
  /// By sample, for samples that are not in the first minibatch; empty unless the objective needs
  /// them.
  std::vector<std::vector<double>> proximal;
  UpdateSums sums;
};

/// Groups of the next step whose gradients the network holds.
struct PreparedGradients {
  std::map<GroupId, std::size_t> responses;
  UpdateSums sums;

  bool empty() const { return responses.empty(); }
};

/// Over the tokens that have a loss; empty if there are none.
std::vector<double> trained(const TrainSample& sample, std::span<const float> per_token) {
  std::vector<double> out;
  out.reserve(per_token.size());
  for (std::size_t t = 0; t < per_token.size(); ++t) {
    if (sample.is_trained(t))
      out.push_back(static_cast<double>(per_token[t]));
  }
  return out;
}

class TorchEngine final : public Engine {
 public:
  TorchEngine(const TorchEngineOptions& options, TrainedPolicy policy)
      : options_(options),
        algorithm_(resolve(options.algorithm, options.longest_response)),
        policy_(std::move(policy)),
        optimizer_(policy_.values().size()),
        network_(policy_.weights(), policy_.adapter()) {}

  Status prepare(std::span<const TrainSample> groups) override;
  Result<UpdateMetrics> update(std::span<const TrainSample> batch) override;
  Status publish(const ImageWriter& write) const override;
  Status save(const std::filesystem::path& folder) const override;
  Status load(const std::filesystem::path& folder) override;
  Status offload() override;
  Status onload() override;
  TrainerMemory memory() const override;

 private:
  Status has_version(std::string_view what) const;
  Status usable(std::string_view what) const;  ///< And the optimizer is here.
  Status check(const TrainSample& sample) const;
  Status may_prepare(std::span<const TrainSample> groups) const;
  std::vector<SampleIndices> minibatches_of(std::span<const TrainSample> batch) const;
  /// Passes over everything without prepared gradients.
  Update begin(std::span<const TrainSample> batch, const PreparedGradients& kept) const;
  void score_proximal(Update& update);
  Status run(Update& update, UpdateMetrics& metrics);
  Status check_step(double norm, double loss, const UpdateSums::Ratio& largest) const;
  void pass(const MicroBatch& micro, Update& update);
  actors::AdamWConfig adamw(double effective_samples) const;
  actors::Canary canary() const;

  const TorchEngineOptions options_;
  const Algorithm algorithm_;
  TrainedPolicy policy_;
  AdamWState optimizer_;
  mutable actors::Transformer network_;  ///< Mutable because it keeps its activations.
  std::uint64_t updates_ = 0;
  bool is_between_versions_ = false;       ///< A step failed after it had changed the weights.
  std::optional<ParkedOptimizer> parked_;  ///< The optimizer, while it is offloaded.
  PreparedGradients kept_;
};

Status TorchEngine::has_version(std::string_view what) const {
  if (!is_between_versions_)
    return {};
  return Error{
      ErrorCode::NotFinite,
      fmt::format("{}: a step failed after it had changed the weights; load a checkpoint", what)};
}

Status TorchEngine::usable(std::string_view what) const {
  if (parked_)
    return Error{ErrorCode::Unavailable, fmt::format("{}: the optimizer is offloaded", what)};
  return has_version(what);
}

Status TorchEngine::check(const TrainSample& s) const {
  const auto bad = [&](std::string_view what) {
    return invalid_input(fmt::format("response {} of group {}: {}", s.id, s.group, what));
  };
  const auto outside = [&](std::int32_t t) { return t < 0 || t >= options_.vocabulary; };
  if (s.prompt.empty() || static_cast<std::int64_t>(s.prompt.size() + s.response.size()) >
                              options_.model.context.count()) {
    return bad(fmt::format("a prompt of {} and a response of {} tokens exceed the context of {}",
                           s.prompt.size(),
                           s.response.size(),
                           options_.model.context.count()));
  }
  if (std::any_of(s.prompt.begin(), s.prompt.end(), outside) ||
      std::any_of(s.response.begin(), s.response.end(), outside))
    return bad("it has a token outside the vocabulary");
  if (s.behaviour_logprobs.size() != s.response.size()) {
    return bad(fmt::format("it has {} behaviour log-probs for {} response tokens",
                           s.behaviour_logprobs.size(),
                           s.response.size()));
  }
  if (!s.reference_logprobs.empty() && s.reference_logprobs.size() != s.response.size())
    return bad("the number of reference log-probs differs from the number of response tokens");
  if (s.reference_logprobs.empty() && !s.response.empty() && needs_reference(algorithm_))
    return bad("it has no reference log-probs, which algorithm.kl and .distillation require");
  if (!s.mask.empty() && s.mask.size() != s.response.size())
    return bad(fmt::format(
        "it has a mask of {} entries for {} response tokens", s.mask.size(), s.response.size()));
  if (!s.stale.empty() && s.stale.size() != s.response.size())
    return bad("the versions of its segments do not cover its tokens");
  using actors::LogprobOf;
  for (const Status& possible :
       {actors::check_logprobs(s.behaviour_logprobs, LogprobOf::SampledToken),
        actors::check_logprobs(s.reference_logprobs, LogprobOf::ScoredToken),
        actors::check_reward(s.reward)}) {
    if (!possible)
      return bad(possible.error().context);
  }
  return {};
}

actors::AdamWConfig TorchEngine::adamw(double effective_samples) const {
  const AlgorithmConfig& a = options_.algorithm;
  const double scale = a.scale_by_effective_samples ? std::sqrt(effective_samples) : 1;
  return {
      a.learning_rate * scale, a.beta1, a.beta2, a.adam_epsilon, a.weight_decay, a.gradient_clip};
}

Status TorchEngine::may_prepare(std::span<const TrainSample> groups) const {
  TEMPER_TRY_STATUS(usable("prepare"));
  if (options_.algorithm.minibatches != 1) {
    return invalid_input(
        fmt::format("prepare: expected 1 minibatch per step, found {}; gradients of a second one "
                    "depend on the first",
                    options_.algorithm.minibatches));
  }
  if (needs_whole_batch(algorithm_))
    return invalid_input("prepare: advantages of this algorithm depend on the whole batch");
  for (const TrainSample& sample : groups) {
    TEMPER_TRY_STATUS(check(sample));
    if (kept_.responses.contains(sample.group))
      return invalid_input(fmt::format("prepare: group {} is already prepared", sample.group));
  }
  return {};
}

/// The same passes and sums as in a step of these groups.
Status TorchEngine::prepare(std::span<const TrainSample> groups) {
  TEMPER_TRY_STATUS(may_prepare(groups));
  if (kept_.empty()) {
    kept_.sums = {};
    network_.zero_gradients();
  }
  Update part = begin(groups, {});
  part.sums = kept_.sums;
  for (const Minibatch& minibatch : part.minibatches) {
    for (const MicroBatch& micro : minibatch.passes)
      pass(micro, part);
  }
  kept_.sums = part.sums;
  kept_.responses.merge(responses_by_group(groups));
  return {};
}

Result<UpdateMetrics> TorchEngine::update(std::span<const TrainSample> batch) {
  const PreparedGradients kept = std::exchange(kept_, {});
  TEMPER_TRY_STATUS(usable("step"));
  const auto of_batch = responses_by_group(batch);
  for (const auto& [group, responses] : kept.responses) {
    const auto found = of_batch.find(group);
    if (found == of_batch.end() || found->second != responses) {
      return invalid_input(
          fmt::format("step: {} responses of group {} are prepared, but the batch has {}",
                      responses,
                      group,
                      found == of_batch.end() ? 0 : found->second));
    }
  }
  UpdateMetrics metrics;
  std::int64_t response_tokens = 0;
  std::size_t trained_tokens = 0;
  for (const TrainSample& sample : batch) {
    TEMPER_TRY_STATUS(check(sample));
    metrics.reward_mean += sample.reward / static_cast<double>(batch.size());
    metrics.tokens += Tokens(static_cast<std::int64_t>(sample.prompt.size()));
    response_tokens += static_cast<std::int64_t>(sample.response.size());
    trained_tokens += sample.trained_tokens();
  }
  metrics.tokens += Tokens(response_tokens);
  if (trained_tokens == 0)
    return invalid_input("step: the batch has no response token that the policy sampled");

  Update update = begin(batch, kept);
  if (kept.empty())
    network_.zero_gradients();
  const std::int64_t steps_before = optimizer_.steps;
  if (auto status = run(update, metrics); !status) {
    is_between_versions_ = optimizer_.steps != steps_before;
    return std::move(status).error().within(fmt::format("step {}", updates_));
  }
  ++updates_;
  return metrics;
}

/// A single minibatch is the whole batch in its order.
std::vector<SampleIndices> TorchEngine::minibatches_of(std::span<const TrainSample> batch) const {
  if (options_.algorithm.minibatches > 1)
    return split_minibatches(batch, options_.algorithm.minibatches, options_.seed, updates_);
  std::vector<SampleIndices> one(1, SampleIndices(batch.size()));
  std::iota(one.front().begin(), one.front().end(), std::size_t{0});
  return one;
}

Update TorchEngine::begin(std::span<const TrainSample> batch, const PreparedGradients& kept) const {
  Update update;
  update.batch = batch;
  update.advantages = advantages(batch, algorithm_);
  update.sums = kept.sums;
  for (SampleIndices& samples : minibatches_of(batch)) {
    Minibatch minibatch;
    minibatch.responses = samples.size();
    for (const std::size_t i : samples)
      minibatch.tokens += batch[i].trained_tokens();
    if (minibatch.tokens == 0)
      continue;
    std::erase_if(samples, [&](std::size_t i) { return kept.responses.contains(batch[i].group); });
    minibatch.passes =
        pack_micro_batches(batch, samples, options_.algorithm.micro_batch_tokens.count());
    update.minibatches.push_back(std::move(minibatch));
  }
  return update;
}

/// The first minibatch needs none: its own forward passes use the same weights.
void TorchEngine::score_proximal(Update& update) {
  update.proximal.resize(update.batch.size());
  for (std::size_t m = 1; m < update.minibatches.size(); ++m) {
    for (const MicroBatch& micro : update.minibatches[m].passes) {
      auto rest = network_.forward(micro.pack, options_.temperature, actors::Graph::Discard);
      for (const std::size_t i : micro.samples) {
        const std::size_t n = update.batch[i].response.size();
        update.proximal[i] = trained(update.batch[i], rest.first(n));
        rest = rest.subspan(n);
      }
    }
  }
}

/// Requires: the gradients are zero, or the prepared ones of the first minibatch.
Status TorchEngine::run(Update& update, UpdateMetrics& metrics) {
  if (needs_proximal(algorithm_.objective))
    score_proximal(update);
  UpdateSums& sums = update.sums;
  for (const Minibatch& minibatch : update.minibatches) {
    const bool first = &minibatch == &update.minibatches.front();
    if (!first)
      network_.zero_gradients();
    for (const MicroBatch& micro : minibatch.passes)
      pass(micro, update);
    if (first)
      set_ratio_metrics(sums, metrics);
    const double parts = shares(algorithm_, minibatch.tokens, minibatch.responses);
    const double loss = std::exchange(sums.loss, 0) / parts;
    actors::FloatBuffer& gradients = network_.gradients();
    gradients.scale(static_cast<float>(1 / parts));
    const double norm = actors::gradient_norm(gradients);
    TEMPER_TRY_STATUS(check_step(norm, loss, sums.largest));
    adamw_step(adamw(metrics.effective_samples), gradients, norm, optimizer_, policy_.trained());
    metrics.loss += loss / static_cast<double>(update.minibatches.size());
    metrics.gradient_norm += norm / static_cast<double>(update.minibatches.size());
  }
  if (!policy_.values().all_finite())
    return Error{ErrorCode::NotFinite, "the new weights are not finite"};
  metrics.kl = sums.kl / sums.tokens;
  metrics.clip_fraction = sums.clipped / sums.tokens;
  metrics.behaviour_weight = sums.weight / sums.tokens;
  metrics.capped_fraction = sums.capped / sums.tokens;
  metrics.entropy = sums.negative_logprob / sums.tokens;
  metrics.micro_batches = sums.passes;
  return {};
}

Status TorchEngine::check_step(double norm, double loss, const UpdateSums::Ratio& largest) const {
  if (std::isfinite(norm) && std::isfinite(loss))
    return {};
  return Error{ErrorCode::NotFinite,
               fmt::format("gradient norm {} and loss {} are not both finite; the largest "
                           "importance ratio is exp({:.4g}), in response {} of group {}",
                           norm,
                           loss,
                           largest.log,
                           largest.response,
                           largest.group)};
}

/// Accumulates the gradients of the sum of a minibatch; the divisor is known when the optimizer
/// steps.
void TorchEngine::pass(const MicroBatch& micro, Update& update) {
  const auto logprobs = network_.forward(micro.pack, options_.temperature, actors::Graph::Keep);
  std::vector<float> derivatives;
  derivatives.reserve(logprobs.size());
  std::vector<TokenLoss> losses;
  for (const std::size_t i : micro.samples) {
    const TrainSample& sample = update.batch[i];
    const auto own = logprobs.subspan(derivatives.size(), sample.response.size());
    const std::vector<double> current = trained(sample, own);
    const std::vector<double> behaviour = trained(sample, sample.behaviour_logprobs);
    const std::vector<double> reference = trained(sample, sample.reference_logprobs);
    ResponseInputs in{current, behaviour, current, reference, update.advantages[i]};
    if (!update.proximal.empty() && !update.proximal[i].empty())
      in.proximal = update.proximal[i];
    losses.resize(current.size());
    response_loss(in, algorithm_, losses);
    const double share = token_share(algorithm_, current.size());
    auto next = losses.begin();
    for (std::size_t t = 0; t < own.size(); ++t)
      derivatives.push_back(sample.is_trained(t) ? static_cast<float>((next++)->d_logprob * share)
                                                 : 0.0f);
    add_losses(losses, current, behaviour, share, sample, update.sums);
  }
  network_.backward(derivatives);
  ++update.sums.passes;
}

Status TorchEngine::publish(const ImageWriter& write) const {
  TEMPER_TRY_STATUS(has_version("weights"));
  return policy_.publish(
      {{"updates", std::to_string(updates_)}, {actors::kCanaryKey, actors::canary_text(canary())}},
      write);
}

actors::Canary TorchEngine::canary() const {
  actors::Canary canary{actors::canary_tokens(options_.vocabulary, options_.model.context), {}};
  actors::Pack pack;
  pack.add_prompt(std::span(canary.tokens).first(1));
  pack.add_response(std::span(canary.tokens).subspan(1));
  const auto logprobs = network_.forward(pack, 1.0, actors::Graph::Discard);
  canary.logprobs.assign(logprobs.begin(), logprobs.end());
  return canary;
}

Status TorchEngine::save(const std::filesystem::path& folder) const {
  TEMPER_TRY_STATUS(has_version("save"));
  if (!parked_)
    return save_checkpoint(folder, policy_, optimizer_, updates_);
  TEMPER_TRY(const AdamWState optimizer, parked_->map());
  return save_checkpoint(folder, policy_, optimizer, updates_);
}

Status TorchEngine::load(const std::filesystem::path& folder) {
  if (parked_)
    return Error{ErrorCode::Unavailable, "load: the optimizer is offloaded"};
  TEMPER_TRY(TrainerState state, load_checkpoint(folder, policy_));
  std::copy_n(state.values.data(), policy_.values().size(), policy_.values().data());
  optimizer_ = std::move(state.optimizer);
  updates_ = state.updates;
  kept_ = {};
  is_between_versions_ = false;
  return {};
}

Status TorchEngine::offload() {
  if (!kept_.empty()) {
    return Error{ErrorCode::Unavailable,
                 fmt::format("offload: gradients are prepared for the next step ({} groups)",
                             kept_.responses.size())};
  }
  network_.free_gradients();
  if (parked_)
    return {};
  TEMPER_TRY(parked_, ParkedOptimizer::park(optimizer_));
  optimizer_.first_moment.release();
  optimizer_.second_moment.release();
  return {};
}

Status TorchEngine::onload() {
  if (!parked_)
    return {};
  TEMPER_TRY(optimizer_, parked_->map());
  parked_.reset();
  return {};
}

TrainerMemory TorchEngine::memory() const {
  TrainerMemory memory;
  memory.weights = policy_.bytes();
  memory.gradients = network_.gradient_bytes();
  memory.optimizer = optimizer_.first_moment.bytes() + optimizer_.second_moment.bytes();
  if (parked_)
    memory.host = parked_->bytes();
  return memory;
}

}  // namespace

std::unique_ptr<Engine> make_torch_engine(const TorchEngineOptions& options, TrainedPolicy policy) {
  return std::make_unique<TorchEngine>(options, std::move(policy));
}

}  // namespace temper::trainer
