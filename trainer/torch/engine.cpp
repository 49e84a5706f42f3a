#include "trainer/torch/engine.hpp"

#include "actors/policy/adamw.hpp"
#include "actors/policy/transformer.hpp"
#include "actors/roles/canary.hpp"
#include "trainer/advantages.hpp"
#include "trainer/algorithm_table.hpp"
#include "trainer/policy_loss.hpp"
#include "trainer/top_k_loss.hpp"
#include "trainer/torch/checkpoint.hpp"
#include "trainer/torch/critic.hpp"
#include "trainer/torch/minibatch.hpp"
#include "trainer/torch/movable_optimizer.hpp"
#include "trainer/torch/sample_rules.hpp"
#include "trainer/torch/update_sums.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <utility>

namespace temper::trainer {

namespace {

using actors::AdamWState;

/// A training step, or the part of one whose gradients are computed in advance.
struct Update {
  std::span<const TrainSample> batch;
  std::vector<double> advantages;         ///< By sample; empty with a critic.
  std::vector<TokenEstimates> estimates;  ///< By sample; empty without a critic.
  std::vector<Minibatch> minibatches;
  /// By sample, for samples that are not in the first minibatch; empty unless they are recomputed.
  std::vector<std::vector<double>> proximal;
  UpdateSums sums;
};

/// Groups of the next step whose gradients the network holds.
struct PreparedGradients {
  std::map<GroupId, std::size_t> responses;
  UpdateSums sums;

  bool empty() const { return responses.empty(); }
};

class TorchEngine final : public Engine {
 public:
  TorchEngine(const TorchEngineOptions& options, TrainedPolicy policy)
      : options_(options),
        algorithm_(resolve(options.algorithm, options.longest_response)),
        policy_(std::move(policy)),
        optimizer_(policy_.values().size()),
        network_(policy_.make_network()) {
    if (!has_critic(algorithm_))
      return;
    const CriticConfig& critic = algorithm_.critic;
    actors::AdamWConfig own = adamw(1);
    own.learning_rate = critic.learning_rate.value_or(options_.algorithm.learning_rate);
    critic_ = std::make_unique<Critic>(policy_.weights(), critic, own);
  }

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
  Status check(const TrainSample& sample) const {
    return check_sample(sample, {options_.model.context, options_.vocabulary}, algorithm_);
  }
  Status may_prepare(std::span<const TrainSample> groups) const;
  std::vector<SampleIndices> minibatches_of(std::span<const TrainSample> batch) const;
  /// Passes over everything without prepared gradients.
  Update begin(std::span<const TrainSample> batch, const PreparedGradients& kept) const;
  void score_proximal(Update& update);
  Status run(Update& update, UpdateMetrics& metrics);
  /// Whether the step trains the policy, not only the critic.
  bool trains_policy() const {
    return !critic_ || updates_ >= static_cast<std::uint64_t>(algorithm_.critic.warm_up_steps);
  }
  Status step(const Minibatch& minibatch, Update& update, UpdateMetrics& metrics);
  Status check_step(double norm, double loss, const UpdateSums::Ratio& largest) const;
  void pass(const MicroBatch& micro, Update& update);
  /// The learning rate of this step as a share of the configured one, for weights that the first
  /// `untrained` steps do not train.
  double rate_share(std::int64_t untrained = 0) const {
    return share_at(options_.algorithm.learning_rate_schedule, updates_, untrained);
  }
  actors::AdamWConfig adamw(double effective_samples) const;
  actors::Canary canary() const;

  const TorchEngineOptions options_;
  const Algorithm algorithm_;
  TrainedPolicy policy_;
  MovableOptimizer optimizer_;
  mutable actors::Transformer network_;  ///< Mutable because it keeps its activations.
  std::unique_ptr<Critic> critic_;       ///< Null: none.
  std::uint64_t updates_ = 0;
  bool is_between_versions_ = false;  ///< A step failed after it had changed the weights.
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
  if (optimizer_.is_offloaded())
    return Error{ErrorCode::Unavailable, fmt::format("{}: the optimizer is offloaded", what)};
  return has_version(what);
}

actors::AdamWConfig TorchEngine::adamw(double effective_samples) const {
  const AlgorithmConfig& a = options_.algorithm;
  const double scale = a.scale_by_effective_samples ? std::sqrt(effective_samples) : 1;
  return {a.learning_rate * rate_share(critic_ ? a.critic.warm_up_steps : 0) * scale,
          a.beta1,
          a.beta2,
          a.adam_epsilon,
          a.weight_decay,
          a.gradient_clip};
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
  const auto steps = [this] { return optimizer_.steps() + (critic_ ? critic_->steps() : 0); };
  const std::int64_t steps_before = steps();
  if (auto status = run(update, metrics); !status) {
    is_between_versions_ = steps() != steps_before;
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
  if (!critic_)
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
        update.proximal[i] = of_trained_tokens(update.batch[i], rest.first(n));
        rest = rest.subspan(n);
      }
    }
  }
}

/// Requires: the gradients are zero, or the prepared ones of the first minibatch.
Status TorchEngine::run(Update& update, UpdateMetrics& metrics) {
  if (critic_)
    update.estimates = critic_->estimate(update.batch, update.minibatches, algorithm_);
  if (needs_proximal(algorithm_.objective) && algorithm_.proximal == Proximal::Recomputed)
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
    TEMPER_TRY_STATUS(step(minibatch, update, metrics));
    if (critic_)
      TEMPER_TRY_STATUS(critic_->train(update.batch, minibatch, update.estimates, rate_share()));
  }
  if (!policy_.values().all_finite())
    return Error{ErrorCode::NotFinite, "the new weights are not finite"};
  if (critic_)
    TEMPER_TRY_STATUS(critic_->finish(update.estimates, metrics));
  metrics.kl = sums.kl / sums.tokens;
  metrics.clip_fraction = sums.clipped / sums.tokens;
  metrics.behaviour_weight = sums.weight / sums.tokens;
  metrics.capped_fraction = sums.capped / sums.tokens;
  metrics.entropy = sums.negative_logprob / sums.tokens;
  metrics.micro_batches = sums.passes;
  return {};
}

/// One step of the policy's optimizer, unless only the critic is trained.
Status TorchEngine::step(const Minibatch& minibatch, Update& update, UpdateMetrics& metrics) {
  const double parts = shares(algorithm_, minibatch.tokens, minibatch.responses);
  const double loss = std::exchange(update.sums.loss, 0) / parts;
  actors::FloatBuffer& gradients = network_.gradients();
  gradients.scale(static_cast<float>(1 / parts));
  const double norm = actors::gradient_norm(gradients);
  TEMPER_TRY_STATUS(check_step(norm, loss, update.sums.largest));
  if (trains_policy()) {
    const actors::AdamWConfig config = adamw(metrics.effective_samples);
    adamw_step(config, gradients, norm, optimizer_.state(), policy_.trained());
    metrics.learning_rate = config.learning_rate;
  }
  metrics.loss += loss / static_cast<double>(update.minibatches.size());
  metrics.gradient_norm += norm / static_cast<double>(update.minibatches.size());
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
/// steps. While only the critic is trained, they stay zero.
void TorchEngine::pass(const MicroBatch& micro, Update& update) {
  const actors::Graph graph = trains_policy() ? actors::Graph::Keep : actors::Graph::Discard;
  const auto logprobs = network_.forward(micro.pack, options_.temperature, graph);
  std::vector<float> derivatives, of_candidates;
  std::vector<TokenLoss> losses;
  for (const std::size_t i : micro.samples) {
    const TrainSample& sample = update.batch[i];
    const auto own = logprobs.subspan(derivatives.size(), sample.response.size());
    const std::vector<double> current = of_trained_tokens(sample, own);
    const std::vector<double> behaviour = of_trained_tokens(sample, sample.behaviour_logprobs);
    const std::vector<double> reference = of_trained_tokens(sample, sample.reference_logprobs);
    ResponseInputs in{current, behaviour, current, reference};
    if (critic_)
      in.token_advantages = update.estimates[i].advantages;
    else
      in.advantage = update.advantages[i];
    std::vector<double> interpolated;
    if (!update.proximal.empty() && !update.proximal[i].empty())
      in.proximal = update.proximal[i];
    else if (algorithm_.proximal == Proximal::Interpolated)
      in.proximal = interpolated = interpolated_proximal(sample, current, behaviour);
    losses.resize(current.size());
    response_loss(in, algorithm_, losses);
    const double share = token_share(algorithm_, current.size());
    const auto candidates = logprobs.subspan(micro.pack.targets().size() + of_candidates.size());
    for (const double d : add_top_k_loss(sample, candidates, algorithm_, losses))
      of_candidates.push_back(static_cast<float>(d * share));
    auto next = losses.begin();
    for (std::size_t t = 0; t < own.size(); ++t)
      derivatives.push_back(sample.is_trained(t) ? static_cast<float>((next++)->d_logprob * share)
                                                 : 0.0f);
    add_losses(losses, current, behaviour, share, sample, update.sums);
  }
  derivatives.insert(derivatives.end(), of_candidates.begin(), of_candidates.end());
  if (graph == actors::Graph::Keep)
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
  const auto save_with = [&](const CriticView& critic) {
    return optimizer_.view([&](const AdamWState& optimizer) {
      return save_checkpoint(folder, policy_, optimizer, updates_, critic);
    });
  };
  return critic_ ? critic_->view(save_with) : save_with({});
}

Status TorchEngine::load(const std::filesystem::path& folder) {
  if (optimizer_.is_offloaded())
    return Error{ErrorCode::Unavailable, "load: the optimizer is offloaded"};
  const std::optional<actors::Layout> critic =
      critic_ ? std::optional(critic_->layout()) : std::nullopt;
  TEMPER_TRY(TrainerState state, load_checkpoint(folder, policy_, critic));
  std::copy_n(state.values.data(), policy_.values().size(), policy_.values().data());
  optimizer_.state() = std::move(state.optimizer);
  updates_ = state.updates;
  if (state.critic)
    critic_->load(*std::move(state.critic));
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
  if (critic_)
    TEMPER_TRY_STATUS(critic_->offload());
  return optimizer_.offload();
}

Status TorchEngine::onload() {
  if (critic_)
    TEMPER_TRY_STATUS(critic_->onload());
  return optimizer_.onload();
}

TrainerMemory TorchEngine::memory() const {
  TrainerMemory memory;
  memory.weights = policy_.bytes();
  memory.gradients = network_.gradient_bytes();
  memory.optimizer = optimizer_.bytes();
  memory.host = optimizer_.offloaded_bytes();
  if (critic_)
    critic_->add_to(memory);
  return memory;
}

}  // namespace

std::unique_ptr<Engine> make_torch_engine(const TorchEngineOptions& options, TrainedPolicy policy) {
  return std::make_unique<TorchEngine>(options, std::move(policy));
}

}  // namespace temper::trainer
