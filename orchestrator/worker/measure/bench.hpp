// Shared parts of `temper-worker measure`: the pipeline, its prompts, repeats and their medians,
// and roles that receive messages as in a run. Every failure ends the measurement: errors are those
// of the engine, the role, the verifier or the files, passed on unchanged.
#pragma once

#include "actors/protocol/lifecycle.hpp"
#include "actors/roles/reference_engine.hpp"
#include "actors/runtime/role.hpp"
#include "actors/task/prompts.hpp"
#include "actors/task/tokenizer.hpp"
#include "core/clock.hpp"
#include "core/random.hpp"
#include "orchestrator/pipeline/pipeline_config.hpp"
#include "orchestrator/run/role_configs.hpp"
#include "orchestrator/worker/timing/timing.hpp"
#include "rollout/engine.hpp"
#include "trainer/engine.hpp"

#include <memory>
#include <string>
#include <vector>

namespace temper::orchestrator {

inline constexpr int kRepeats = 9;

inline double micro(Duration d) {
  return static_cast<double>(d.count()) * 1e-3;
}

/// Durations of the repeats of one operation.
class Times {
 public:
  void add(double us) { us_.push_back(us); }
  std::size_t size() const { return us_.size(); }
  double median() const { return quantile(0.5); }
  double spread() const {
    const double m = median();
    return m > 0 ? (quantile(0.75) - quantile(0.25)) / 2 / m : 0;
  }

 private:
  double quantile(double q) const;
  std::vector<double> us_;
};

using Work = std::vector<double>;

class Bench {
 public:
  /// Error: prompts or weights cannot be read.
  static Result<Bench> make(const PipelineConfig& config,
                            const std::string& base,
                            std::int32_t threads);

  const PipelineConfig& config() const { return config_; }
  std::int32_t threads() const { return threads_; }
  const std::string& image() const { return image_; }
  const actors::Tokenizer& tokenizer() const { return tokenizer_; }
  const actors::PromptSource& prompts() const { return *prompts_; }
  const RealClock& clock() const { return clock_; }
  std::int64_t per_group() const { return config_.algorithm.responses_per_group; }
  /// Tokens of a response that has only the reference answer and the end token.
  std::int64_t usual_tokens() const { return usual_tokens_; }
  std::int32_t vocabulary() const { return tokenizer_.vocabulary(); }
  std::vector<std::int32_t> prompt(std::uint64_t group) const;
  /// As many cores as there are threads, counted from the last one.
  std::vector<CardId> cards() const;

  /// Prints a result and stores it.
  void note(std::string kind, Work work, const Times& times);
  void note(std::string kind, Work work, double us, const Times& times);
  Timings& found() { return found_; }

  /// The configuration of a role in a run, on cards().
  actors::RoleConfig role(actors::RoleKind kind, const PipelineConfig& config) const;
  Result<std::unique_ptr<actors::Role>> make_role(actors::RoleKind kind,
                                                  const PipelineConfig& config) const;
  /// A rollout engine with weights. Responses end at `longest` tokens, or as configured.
  Result<std::unique_ptr<rollout::Engine>> make_engine(std::optional<Tokens> longest) const;
  /// Adds `n` responses, `to_a_prompt` for each prompt, with `prefix` tokens each. Returns the
  /// number of tokens that are cached when they are first decoded.
  std::int64_t add(rollout::Engine& engine,
                   std::int64_t n,
                   std::int64_t to_a_prompt,
                   std::int64_t prefix = 0);

 private:
  Bench(const PipelineConfig& config,
        const std::string& base,
        actors::Tokenizer tokenizer,
        std::int32_t threads)
      : config_(config),
        threads_(threads),
        tokenizer_(std::move(tokenizer)),
        start_{base, {}, PolicyVersion(0)} {}

  PipelineConfig config_;
  std::int32_t threads_;
  actors::Tokenizer tokenizer_;
  StartingPoint start_;
  RealClock clock_;
  std::unique_ptr<actors::PromptSource> prompts_;
  std::string image_;
  std::int64_t usual_tokens_ = 1;
  std::uint64_t next_response_ = 0;
  Timings found_;
};

/// A role that receives one message at a time, and records its activity.
class MeasuredRole {
 public:
  explicit MeasuredRole(std::unique_ptr<actors::Role> role);
  /// Error: the role fails.
  template <class M>
  Status tell(const M& message) {
    return role_->on_message(actors::IncomingMessage::from(actors::outgoing(message)), out_);
  }
  Status start() { return role_->start(out_); }
  /// Returns its activity; the object cannot be used afterwards.
  Result<std::vector<actors::Span>> stop();

 private:
  std::unique_ptr<actors::Role> role_;
  std::vector<actors::Span> spans_;
  Status heard_;
  actors::Outbox out_;
};

/// Engines without a role. The trainer's policy stays nearly the same.
Result<std::unique_ptr<trainer::Engine>> make_trainer(const Bench& bench,
                                                      const actors::RoleConfig& role);
Result<std::unique_ptr<actors::ReferenceEngine>> make_reference(const Bench& bench,
                                                                const actors::RoleConfig& role);
/// A batch like that of a step of the run.
std::vector<trainer::TrainSample> train_batch(const Bench& bench);
/// `algorithm.distillation_top_k` equally likely tokens at each of `tokens` tokens.
actors::TopTokens top_tokens(const Bench& bench, std::size_t tokens);
/// Steps the engine until it has no responses. Errors: see Engine::step().
Status run_until_idle(rollout::Engine& engine);

/// The parts; each runs in its own process, because earlier allocations affect later times. Times
/// are noted in microseconds.
Status measure_rollout(Bench& bench);
Status measure_trainer(Bench& bench);
Status measure_reference(Bench& bench);
Status measure_beside(Bench& bench);
Status measure_rest(Bench& bench);

/// Samples of `groups.size()` prompts, `tokens` long.
struct AnsweredPrompt {
  GroupId group;
  std::vector<std::int32_t> prompt, response;
};
std::vector<AnsweredPrompt> answered_prompts(const Bench& bench,
                                             std::int64_t groups,
                                             std::int64_t responses,
                                             std::int64_t tokens);

}  // namespace temper::orchestrator
