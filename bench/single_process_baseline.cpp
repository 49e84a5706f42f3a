// A plain synchronous training loop in one process, with the engines that the actors use: generate
// B x G responses, verify, score with the reference if kl > 0, update, load the weights. Its
// throughput is the baseline for the pipeline; its learning curves were used to choose the values
// of configs/quickstart.yaml.
//
// Prints one line per `--every` updates and one summary line per seed. `--stale N` samples with the
// weights of N updates ago, like an asynchronous run at its staleness bound. `--swap-at K` switches
// the engine to the newest weights after K tokens of every response, like a commit during
// generation.
#include "actors/policy/pretrain.hpp"
#include "actors/policy/reference.hpp"
#include "actors/policy/transformer.hpp"
#include "actors/task/prompts.hpp"
#include "actors/task/same_problems.hpp"
#include "actors/task/tokenizer.hpp"
#include "core/clock.hpp"
#include "core/files.hpp"
#include "core/hash.hpp"
#include "core/msgpack.hpp"
#include "rollout/torch/engine.hpp"
#include "trainer/torch/engine.hpp"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include <deque>
#include <filesystem>

namespace {

using namespace temper;

struct Options {
  actors::PretrainOptions base;
  trainer::AlgorithmConfig algorithm;
  rollout::SamplingConfig sampling;
  std::int32_t concurrency = 256;
  std::int32_t threads = 1;
  std::int32_t updates = 300;
  std::int32_t stale = 0;
  std::int32_t swap_at = 0;  ///< Tokens; 0: never.
  rollout::OnNewWeights on_new_weights = rollout::OnNewWeights::KeepKv;
  std::int32_t every = 20;
  std::string cache;   ///< Folder of base checkpoints; empty: no cache.
  double stop_at = 0;  ///< Mean reward of the last ten updates to stop at; 0: never.
  std::vector<std::uint64_t> seeds{1};
};

/// Seconds by phase.
struct Phases {
  double generate = 0, reference = 0, update = 0, load = 0;
};

class Loop {
 public:
  template <class F>
  static auto timed(const Clock& clock, double& sum, F f) {
    const Time start = clock.now();
    auto result = f();
    sum += seconds(clock.now() - start);
    return result;
  }

  static Result<std::unique_ptr<Loop>> make(const Options& options, const actors::Weights& base) {
    std::unique_ptr<Loop> loop(new Loop(options));
    TEMPER_TRY(loop->source_, actors::make_prompt_source(options.base.task, options.base.seed));
    const std::int32_t vocabulary = loop->tokenizer_.vocabulary();
    rollout::TorchEngineOptions r;
    r.model = options.base.model;
    r.vocabulary = vocabulary;
    r.end_tokens = {loop->tokenizer_.end()};
    r.sampling = options.sampling;
    r.seed = options.base.seed;
    r.concurrency = options.concurrency;
    r.on_new_weights = options.on_new_weights;
    TEMPER_TRY(loop->rollout_, rollout::make_torch_engine(r));
    trainer::TorchEngineOptions t;
    t.model = options.base.model;
    t.vocabulary = vocabulary;
    t.algorithm = options.algorithm;
    t.longest_response = options.sampling.max_new_tokens;
    t.temperature = options.sampling.temperature;
    t.seed = options.base.seed;
    loop->trainer_ = trainer::make_torch_engine(t, base.clone());
    actors::TorchReferenceOptions f;
    f.model = options.base.model;
    f.vocabulary = vocabulary;
    f.temperature = options.sampling.temperature;
    loop->reference_ = actors::make_torch_reference(f, base.clone());
    TEMPER_TRY_STATUS(loop->load_weights());
    return loop;
  }

  /// Runs one update; returns the mean reward of its samples.
  Result<trainer::UpdateMetrics> step() {
    TEMPER_TRY_STATUS(timed(clock_, phases_.generate, [&] { return generate(); }));
    if (options_.algorithm.kl > 0)
      TEMPER_TRY_STATUS(timed(clock_, phases_.reference, [&] { return score(); }));
    auto metrics = timed(clock_, phases_.update, [&] { return trainer_->update(batch_); });
    if (!metrics)
      return metrics;
    TEMPER_TRY_STATUS(timed(clock_, phases_.load, [&] { return load_weights(); }));
    trained_ += metrics->tokens;
    return metrics;
  }

  const Phases& phases() const { return phases_; }
  Tokens trained() const { return trained_; }
  Tokens sampled() const { return sampled_; }
  Result<std::string> weights() const { return trainer_->weights(); }

 private:
  explicit Loop(const Options& options)
      : options_(options), tokenizer_(actors::Tokenizer::for_task(options.base.task)) {}

  Status generate() {
    const auto per_group = static_cast<std::uint64_t>(options_.algorithm.responses_per_group);
    batch_.clear();
    std::vector<std::string> answers;
    const std::uint64_t first = next_group_ * per_group;
    for (std::int32_t b = 0; b < options_.algorithm.groups_per_update; ++b, ++next_group_) {
      const actors::Problem problem = source_->train(next_group_);
      TEMPER_TRY(const auto prompt, tokenizer_.encode(problem.prompt));
      for (std::uint64_t g = 0; g < per_group; ++g) {
        const ResponseId id(next_group_ * per_group + g);
        rollout_->add({id, prompt, {}});
        batch_.push_back({GroupId(next_group_), prompt, {}, {}, {}, 0});
        answers.push_back(problem.answer);
      }
    }
    std::int32_t decoded = 0;
    while (rollout_->load() > 0) {
      TEMPER_TRY(rollout::StepResult result, rollout_->step());
      decoded += result.kind == rollout::StepKind::Decode ? 1 : 0;
      if (result.kind == rollout::StepKind::Decode && decoded == options_.swap_at)
        TEMPER_TRY_STATUS(load(delayed_.back()));
      for (rollout::Generation& done : result.finished) {
        const std::size_t i = done.id.value() - first;
        trainer::TrainSample& sample = batch_[i];
        sampled_ += Tokens(static_cast<std::int64_t>(done.tokens.size()));
        const bool ended = done.finish == actors::FinishReason::End;
        sample.reward = ended && tokenizer_.decode(done.tokens) == answers[i] ? 1 : 0;
        sample.response = std::move(done.tokens);
        sample.behaviour_logprobs = std::move(done.logprobs);
      }
    }
    return {};
  }

  Status score() {
    std::vector<actors::ScoringRequest> requests;
    for (const trainer::TrainSample& sample : batch_)
      requests.push_back({sample.prompt, sample.response});
    TEMPER_TRY(auto scores, reference_->score(requests));
    for (std::size_t i = 0; i < batch_.size(); ++i)
      batch_[i].reference_logprobs = std::move(scores.logprobs[i]);
    return {};
  }

  Status load_weights() {
    TEMPER_TRY(std::string image, trainer_->weights());
    delayed_.push_back(std::move(image));
    if (delayed_.size() > static_cast<std::size_t>(options_.stale) + 1)
      delayed_.pop_front();
    return load(delayed_.front());
  }

  Status load(const std::string& image) {
    const PolicyVersion version(loaded_++);
    TEMPER_TRY_STATUS(rollout_->stage(version, std::as_bytes(std::span(image))));
    return rollout_->commit(version);
  }

  const Options options_;
  const actors::Tokenizer tokenizer_;
  RealClock clock_;
  std::unique_ptr<actors::PromptSource> source_;
  std::unique_ptr<rollout::Engine> rollout_;
  std::unique_ptr<trainer::Engine> trainer_;
  std::unique_ptr<actors::ReferenceEngine> reference_;
  std::vector<trainer::TrainSample> batch_;
  std::deque<std::string> delayed_;  ///< Weight images, oldest first; the front is sampled with.
  std::uint64_t next_group_ = 0;
  std::uint64_t loaded_ = 0;
  Phases phases_;
  Tokens trained_;
  Tokens sampled_;
};

Result<double> held_out(const Options& options, const std::string& image, double temperature) {
  actors::AccuracyQuery query;
  query.problems = 1000;
  query.temperature = temperature;
  return actors::measure_accuracy(options.base, image, query);
}

/// The same values as weights of the model that is trained, which may compute in another type.
Result<actors::Weights> weights_for(const Options& options, const std::string& image) {
  const auto tokenizer = actors::Tokenizer::for_task(options.base.task);
  TEMPER_TRY(const auto layout, actors::Layout::make(options.base.model, tokenizer.vocabulary()));
  return actors::Weights::from_image(layout, std::as_bytes(std::span(image)));
}

/// Equal options, equal name.
std::string cache_name(const actors::PretrainOptions& o) {
  actors::ModelConfig model = o.model;
  model.compute_dtype = {};  // Pretraining uses neither.
  model.lora.reset();
  const std::string inputs = encode(model) + encode(actors::same_problems(o.task)) +
                             encode(o.pretrain) + encode(o.temperature) + encode(o.seed);
  return fmt::format("{:016x}.safetensors", hash64(inputs));
}

/// The base checkpoint, from the cache if it exists there.
Result<actors::PretrainResult> make_base(const Options& options) {
  const std::filesystem::path folder = options.cache;
  const auto path = folder / cache_name(options.base);
  if (!options.cache.empty() && std::filesystem::exists(path)) {
    TEMPER_TRY(const std::string image, read_file(path));
    TEMPER_TRY(auto weights, weights_for(options, image));
    return actors::PretrainResult{std::move(weights), {}};
  }
  TEMPER_TRY(actors::PretrainResult result, actors::pretrain(options.base, {}));
  const std::string image = result.weights.to_image({});
  if (!options.cache.empty())
    TEMPER_TRY_STATUS(write_file_atomically(path, image));
  TEMPER_TRY(result.weights, weights_for(options, image));
  return result;
}

Status run_seed(Options options, std::uint64_t seed) {
  options.base.seed = seed;
  options.base.temperature = options.sampling.temperature;
  RealClock clock;
  const Time start = clock.now();
  TEMPER_TRY(const actors::PretrainResult base, make_base(options));
  const double pretrained = seconds(clock.now() - start);
  fmt::print("seed {}: pretrained to {:.3f} in {} steps, {:.1f} s\n",
             seed,
             base.last.accuracy,
             base.last.step,
             pretrained);
  TEMPER_TRY(const auto loop, Loop::make(options, base.weights));
  const Time loop_start = clock.now();
  std::vector<double> rewards;
  std::int32_t above = -1;
  double recent = 0, log_ratio = 0, clipped = 0;
  for (std::int32_t u = 0; u < options.updates; ++u) {
    TEMPER_TRY(const trainer::UpdateMetrics m, loop->step());
    rewards.push_back(m.reward_mean);
    log_ratio += m.log_ratio;
    clipped += m.clip_fraction;
    recent = 0;
    const std::size_t window = std::min<std::size_t>(10, rewards.size());
    for (std::size_t i = rewards.size() - window; i < rewards.size(); ++i)
      recent += rewards[i] / static_cast<double>(window);
    if (above < 0 && window == 10 && recent > 0.9)
      above = u + 1;
    if (options.every > 0 && (u % options.every == 0 || u + 1 == options.updates)) {
      fmt::print(
          "  update {:4}  {:6.1f} s  reward {:.3f}  entropy {:.3f}  clip {:.3f}  ratio "
          "{:.3f}  |log r| {:.4f}  effective {:.3f}  kl {:.4f}  norm {:.2f}\n",
          u,
          seconds(clock.now() - loop_start),
          m.reward_mean,
          m.entropy,
          m.clip_fraction,
          m.ratio_mean,
          m.log_ratio,
          m.effective_samples,
          m.kl,
          m.gradient_norm);
    }
    if (options.stop_at > 0 && window == 10 && recent >= options.stop_at)
      break;
  }
  const double wall = seconds(clock.now() - loop_start);
  TEMPER_TRY(const std::string image, loop->weights());
  TEMPER_TRY(const double greedy, held_out(options, image, 0));
  const Phases& p = loop->phases();
  fmt::print(
      "seed {} stale {}: first {:.3f} last10 {:.3f} held-out greedy {:.3f} | over 0.9 after {} of "
      "{} updates | wall {:.1f} s (generate {:.1f}, reference {:.1f}, update {:.1f}, load {:.1f}) "
      "| trained {:.0f} tokens/s, sampled {:.0f} tokens/s | |log r| {:.4f} "
      "clipped {:.4f} | weights {:016x}\n",
      seed,
      options.stale,
      rewards.front(),
      recent,
      greedy,
      above,
      rewards.size(),
      wall,
      p.generate,
      p.reference,
      p.update,
      p.load,
      static_cast<double>(loop->trained().count()) / wall,
      static_cast<double>(loop->sampled().count()) / p.generate,
      log_ratio / static_cast<double>(rewards.size()),
      clipped / static_cast<double>(rewards.size()),
      hash64(std::as_bytes(std::span(image))));
  std::fflush(stdout);
  return {};
}

}  // namespace

int main(int argc, char** argv) {
  Options o;
  std::int64_t max_new = 8;
  std::int64_t micro = o.algorithm.micro_batch_tokens.count();
  std::string algorithm(temper::name_of(o.algorithm.name)), objective, type("float32");
  CLI::App app{"A synchronous GRPO loop in one process on the torch engines."};
  app.add_option("--seed", o.seeds, "Seeds, one run each");
  app.add_option("--updates", o.updates);
  app.add_option("--stale", o.stale, "Sample with the weights of this many updates ago");
  app.add_option(
      "--swap-at", o.swap_at, "Switch to the newest weights after this many tokens; 0: never");
  app.add_flag_callback(
      "--recompute",
      [&] { o.on_new_weights = temper::rollout::OnNewWeights::Recompute; },
      "Caches are computed again then");
  app.add_option("--threads", o.threads);
  app.add_option("--every", o.every, "Updates between two lines; 0: no lines");
  app.add_option("--stop-at", o.stop_at, "Stop at this mean reward over ten updates");
  app.add_option("--cache", o.cache, "Existing folder for base checkpoints");
  app.add_option("--concurrency", o.concurrency);
  app.add_option("--hidden", o.base.model.hidden);
  app.add_option("--layers", o.base.model.layers);
  app.add_option("--heads", o.base.model.heads);
  app.add_option("--kv-heads", o.base.model.kv_heads);
  app.add_option("--ffn", o.base.model.ffn);
  app.add_option("--rope-base", o.base.model.rope_base);
  app.add_option("--algorithm", algorithm, "Row of docs/reference/algorithms.md");
  app.add_option("--objective", objective, "Objective to use instead of the row's");
  app.add_option("--compute-dtype", type, "As model.compute_dtype");
  app.add_option("--groups", o.algorithm.groups_per_update);
  app.add_option("--responses", o.algorithm.responses_per_group);
  app.add_option("--minibatches", o.algorithm.minibatches);
  app.add_option("--lr", o.algorithm.learning_rate);
  app.add_option("--beta2", o.algorithm.beta2);
  app.add_option("--weight-decay", o.algorithm.weight_decay);
  app.add_option("--kl", o.algorithm.kl);
  app.add_option("--clip-low", o.algorithm.clip_low);
  app.add_option("--clip-high", o.algorithm.clip_high);
  app.add_option("--gradient-clip", o.algorithm.gradient_clip);
  app.add_option("--micro-batch-tokens", micro);
  app.add_option("--max-new", max_new);
  app.add_option("--temperature", o.sampling.temperature);
  app.add_option("--top-p", o.sampling.top_p);
  app.add_option("--pretrain-target", o.base.pretrain.target_accuracy);
  app.add_option("--pretrain-lr", o.base.pretrain.learning_rate);
  app.add_option("--pretrain-noise", o.base.pretrain.label_noise);
  app.add_option("--pretrain-check-every", o.base.pretrain.check_every);
  app.add_option("--pretrain-batch", o.base.pretrain.batch);
  app.add_option("--pretrain-problems", o.base.pretrain.problems);
  app.add_option("--pretrain-steps", o.base.pretrain.max_steps);
  app.add_option("--digits", o.base.task.digits);
  CLI11_PARSE(app, argc, argv);
  o.sampling.max_new_tokens = temper::Tokens(max_new);
  o.algorithm.micro_batch_tokens = temper::Tokens(micro);
  const auto name = temper::from_name<temper::trainer::AlgorithmName>(algorithm);
  o.algorithm.objective = temper::from_name<temper::trainer::Objective>(objective);
  const auto compute = temper::from_name<temper::actors::ComputeType>(type);
  if (!name || !compute || (!objective.empty() && !o.algorithm.objective)) {
    fmt::print(stderr,
               "single_process_baseline: unknown algorithm `{}`, objective `{}` or type `{}`\n",
               algorithm,
               objective,
               type);
    return 1;
  }
  o.base.model.compute_dtype = *compute;
  o.algorithm.name = *name;
  temper::actors::set_compute_threads(o.threads);
  for (const std::uint64_t seed : o.seeds) {
    if (auto status = run_seed(o, seed); !status) {
      fmt::print(stderr, "seed {}: {}\n", seed, status.error().context);
      return 1;
    }
  }
  return 0;
}
