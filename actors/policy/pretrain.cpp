#include "actors/policy/pretrain.hpp"

#include "actors/policy/adamw.hpp"
#include "actors/policy/decoder.hpp"
#include "actors/policy/sampler.hpp"
#include "actors/policy/transformer.hpp"
#include "actors/task/prompts.hpp"
#include "actors/task/tokenizer.hpp"
#include "core/random.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::actors {

namespace {

struct TokenizedProblem {
  std::vector<TokenId> prompt;
  std::vector<TokenId> answer;  ///< Includes the end token.
  std::string text;             ///< The answer as text.
};

/// The problems of a task as token ids.
class Problems {
 public:
  static Result<Problems> make(const PretrainOptions& options) {
    TEMPER_TRY(auto source, make_prompt_source(options.task, options.seed));
    return Problems(options, std::move(source));
  }
  const Tokenizer& tokenizer() const { return tokenizer_; }
  std::uint64_t held_out_size() const { return source_->held_out_size(); }

  Result<TokenizedProblem> get(AccuracyQuery::Split split, std::uint64_t index) const {
    const Problem problem =
        split == AccuracyQuery::Split::Training ? source_->train(index) : source_->held_out(index);
    TokenizedProblem p;
    TEMPER_TRY(p.prompt, tokenizer_.encode(problem.prompt));
    TEMPER_TRY(p.answer, tokenizer_.encode(problem.answer));
    p.answer.push_back(tokenizer_.end());
    p.text = problem.answer;
    const std::size_t length = p.prompt.size() + p.answer.size();
    if (p.prompt.empty() || length > static_cast<std::size_t>(context_)) {
      return invalid_input(
          fmt::format("problem {}: has {} tokens with its answer, more than the context of {}",
                      index,
                      length,
                      context_));
    }
    return p;
  }

 private:
  Problems(const PretrainOptions& options, std::unique_ptr<PromptSource> source)
      : tokenizer_(Tokenizer::for_task(options.task)),
        source_(std::move(source)),
        context_(options.model.context.count()) {}

  Tokenizer tokenizer_;
  std::unique_ptr<PromptSource> source_;
  std::int64_t context_;
};

/// Generates answers for a batch of problems and counts those that are correct up to the end token.
class Examiner {
 public:
  Examiner(const Layout& layout, std::uint64_t seed, std::int32_t problems)
      : seed_(seed), decoder_(layout, problems), vocabulary_(layout.vocabulary()) {}

  double share_right(const Weights& weights,
                     std::span<const TokenizedProblem> problems,
                     double temperature) {
    std::vector<DecoderRow> rows = feed_prompts(weights, problems);
    std::size_t right = 0;
    // A wrong token decides an answer, so only the answers that are correct so far continue.
    for (std::size_t step = 0; !rows.empty(); ++step) {
      const auto logits = decoder_.forward(weights, rows, Decoder::Output::Logits);
      std::vector<DecoderRow> next;
      for (std::size_t r = 0; r < rows.size(); ++r) {
        const auto& answer = problems[static_cast<std::size_t>(rows[r].slot)].answer;
        const auto width = static_cast<std::size_t>(vocabulary_);
        const std::int32_t token =
            choose(logits.subspan(r * width, width), rows[r].slot, step, temperature);
        if (token != answer[step])
          continue;
        if (step + 1 == answer.size())
          ++right;
        else
          next.push_back({token, rows[r].slot, rows[r].position + 1});
      }
      rows = std::move(next);
    }
    return static_cast<double>(right) / static_cast<double>(problems.size());
  }

 private:
  /// Feeds all but the last token of each prompt to the cache and returns the rows of the last
  /// tokens.
  std::vector<DecoderRow> feed_prompts(const Weights& weights,
                                       std::span<const TokenizedProblem> problems) {
    std::vector<DecoderRow> prompts;
    std::vector<DecoderRow> last;
    for (std::size_t i = 0; i < problems.size(); ++i) {
      const auto& prompt = problems[i].prompt;
      for (std::size_t j = 0; j < prompt.size(); ++j)
        (j + 1 < prompt.size() ? prompts : last)
            .push_back({prompt[j], static_cast<std::int32_t>(i), static_cast<std::int32_t>(j)});
    }
    decoder_.forward(weights, prompts, Decoder::Output::Nothing);
    return last;
  }

  std::int32_t choose(std::span<float> logits,
                      std::int32_t problem,
                      std::size_t step,
                      double temperature) {
    if (temperature <= 0)
      return static_cast<std::int32_t>(std::max_element(logits.begin(), logits.end()) -
                                       logits.begin());
    const ResponseId id(static_cast<std::uint64_t>(problem));
    const double u = sampling_uniform(seed_, id, static_cast<std::int64_t>(step));
    return Sampler(temperature, 1.0).draw(logits, u).token;
  }

  std::uint64_t seed_;
  Decoder decoder_;
  std::int32_t vocabulary_;
};

Result<std::vector<TokenizedProblem>> fetch(const Problems& problems,
                                            AccuracyQuery::Split split,
                                            std::uint64_t first,
                                            std::int64_t count) {
  std::vector<TokenizedProblem> list;
  for (std::int64_t i = 0; i < count; ++i) {
    TEMPER_TRY(TokenizedProblem p, problems.get(split, first + static_cast<std::uint64_t>(i)));
    list.push_back(std::move(p));
  }
  return list;
}

/// Replaces each token of the answer except the end token, with the given probability, by another
/// symbol.
std::vector<TokenId> with_noise(std::vector<TokenId> answer,
                                double noise,
                                std::int32_t vocabulary,
                                Random& random) {
  constexpr TokenId kFirstSymbol = 2;  // After pad and end.
  for (std::size_t i = 0; i + 1 < answer.size(); ++i) {
    if (random.chance(noise)) {
      answer[i] =
          kFirstSymbol +
          static_cast<TokenId>(random.below(static_cast<std::uint64_t>(vocabulary - kFirstSymbol)));
    }
  }
  return answer;
}

/// One supervised step on `batch` problems drawn with `random`; returns the mean loss.
double train_step(const PretrainConfig& config,
                  std::span<const TokenizedProblem> problems,
                  Random& random,
                  Transformer& network,
                  AdamWState& optimizer,
                  Weights& weights) {
  const std::int32_t vocabulary = weights.layout().vocabulary();
  Pack pack;
  for (std::int32_t i = 0; i < config.batch; ++i) {
    const TokenizedProblem& p = problems[random.below(problems.size())];
    pack.add_prompt(p.prompt);
    pack.add_response(with_noise(p.answer, config.label_noise, vocabulary, random));
  }
  FloatBuffer& gradients = network.gradients();
  std::fill_n(gradients.data(), gradients.size(), 0.0f);
  const auto logprobs = network.forward(pack, 1.0, Graph::Keep);
  double sum = 0;
  for (const float logprob : logprobs)
    sum -= static_cast<double>(logprob);
  const auto n = static_cast<double>(logprobs.size());
  network.backward(std::vector<float>(logprobs.size(), static_cast<float>(-1 / n)));
  AdamWConfig adamw;
  constexpr std::int64_t kWarmup = 20;
  adamw.learning_rate =
      config.learning_rate *
      std::min(1.0, static_cast<double>(optimizer.steps + 1) / static_cast<double>(kWarmup));
  adamw_step(adamw, gradients, gradient_norm(gradients), optimizer, weights);
  return sum / n;
}

}  // namespace

Result<PretrainResult> pretrain(const PretrainOptions& options,
                                const std::function<void(const PretrainProgress&)>& progress) {
  using Split = AccuracyQuery::Split;
  const PretrainConfig& config = options.pretrain;
  TEMPER_TRY(const Problems source, Problems::make(options));
  ModelConfig model = options.model;
  model.compute_dtype = ComputeType::Float32;
  TEMPER_TRY(const Layout layout, Layout::make(model, source.tokenizer().vocabulary()));
  TEMPER_TRY(const auto problems, fetch(source, Split::Training, 0, config.problems));
  TEMPER_TRY(const auto exam,
             fetch(source,
                   Split::Training,
                   static_cast<std::uint64_t>(config.problems),
                   config.check_problems));
  Weights weights = Weights::random(layout, options.seed);
  Transformer network(weights);
  AdamWState optimizer(layout);
  Random random(options.seed, "pretrain");
  Examiner examiner(layout, options.seed, config.check_problems);

  PretrainProgress last;
  while (last.step < config.max_steps) {
    last.loss = train_step(config, problems, random, network, optimizer, weights);
    if (++last.step % config.check_every != 0)
      continue;
    last.accuracy = examiner.share_right(weights, exam, options.temperature);
    if (progress)
      progress(last);
    if (last.accuracy >= config.target_accuracy)
      break;
  }
  return PretrainResult{std::move(weights), last};
}

Result<double> measure_accuracy(const PretrainOptions& options,
                                std::string_view image,
                                const AccuracyQuery& query) {
  TEMPER_TRY(const Problems source, Problems::make(options));
  TEMPER_TRY(const Layout layout, Layout::make(options.model, source.tokenizer().vocabulary()));
  TEMPER_TRY(const Weights weights, Weights::from_image(layout, std::as_bytes(std::span(image))));
  if (query.split == AccuracyQuery::Split::HeldOut && source.held_out_size() == 0)
    return invalid_input("the task has no held-out problems; raise task.held_out");
  TEMPER_TRY(const auto exam, fetch(source, query.split, query.first, query.problems));
  Examiner examiner(layout, options.seed, query.problems);
  return examiner.share_right(weights, exam, query.temperature);
}

}  // namespace temper::actors
