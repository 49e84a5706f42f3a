#include "orchestrator/worker/measure/bench.hpp"

#include "actors/model_folder/adapter_layout.hpp"
#include "actors/model_folder/stored_tensors.hpp"
#include "actors/runtime/process.hpp"
#include "orchestrator/pipeline/model_section.hpp"
#include "orchestrator/worker/roles/engines.hpp"
#include "orchestrator/worker/roles/role_factory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdio>

namespace temper::orchestrator {
namespace {

/// The image of version 0, as an engine reads it.
Result<std::string> first_image(const PipelineConfig& config,
                                const actors::ModelFolder& folder,
                                const actors::Layout& layout) {
  if (!config.model.lora)
    return actors::read_image(folder, layout);
  TEMPER_TRY(const auto adapter, actors::AdapterLayout::make(layout, *config.model.lora));
  const std::vector<float> zeros(static_cast<std::size_t>(adapter.size()));
  return actors::write_safetensors(actors::tensors_to_write(adapter, zeros), {});
}

}  // namespace

double Times::quantile(double q) const {
  std::vector<double> sorted = us_;
  std::ranges::sort(sorted);
  if (sorted.empty())
    return 0;
  return sorted[static_cast<std::size_t>(std::lround(q * static_cast<double>(sorted.size() - 1)))];
}

Result<Bench> Bench::make(const PipelineConfig& config,
                          const std::string& base,
                          std::int32_t threads) {
  TEMPER_TRY(auto tokenizer, tokenizer_of(config, base));
  Bench bench(config, base, std::move(tokenizer), threads);
  TEMPER_TRY(bench.prompts_, actors::make_prompt_source(config.task, config.seed, {.model = base}));
  TEMPER_TRY(const auto folder, actors::ModelFolder::open(base, config.model.ignore));
  TEMPER_TRY(const auto layout, actors::Layout::make(config.model, bench.vocabulary()));
  TEMPER_TRY(bench.image_, first_image(config, folder, layout));
  TEMPER_TRY(const auto answer, bench.tokenizer_.encode(bench.prompts_->train(0).answer));
  bench.usual_tokens_ =
      std::clamp<std::int64_t>(std::ssize(answer) + 1, 1, config.sampling.max_new_tokens.count());
  return bench;
}

std::vector<std::int32_t> Bench::prompt(std::uint64_t group) const {
  auto tokens = tokenizer_.encode(prompts_->train(group).prompt);
  return tokens ? *std::move(tokens) : std::vector<std::int32_t>{};
}

std::vector<CardId> Bench::cards() const {
  std::vector<CardId> cards;
  const auto cores = actors::usable_cores();
  const std::size_t n = std::min(cores.size(), static_cast<std::size_t>(threads_));
  for (std::size_t i = cores.size() - n; i < cores.size(); ++i)
    cards.push_back(CardId(cores[i]));
  return cards;
}

void Bench::note(std::string kind, Work work, const Times& times) {
  note(std::move(kind), std::move(work), times.median(), times);
}

void Bench::note(std::string kind, Work work, double us, const Times& times) {
  fmt::print("{}, {} thread(s): {:.1f} us\n", kind, threads_, us);
  std::fflush(stdout);
  found_.timings.push_back({std::move(kind),
                            threads_,
                            std::move(work),
                            us,
                            static_cast<std::int64_t>(times.size()),
                            times.spread()});
}

actors::RoleConfig Bench::role(actors::RoleKind kind, const PipelineConfig& config) const {
  ActorSpec spec;
  spec.role = kind;
  spec.concurrency = config.rollout.concurrency;
  spec.cards = cards();
  return role_config(config, spec, start_);
}

Result<std::unique_ptr<actors::Role>> Bench::make_role(actors::RoleKind kind,
                                                       const PipelineConfig& config) const {
  actors::Welcome welcome;
  welcome.role = role(kind, config);
  welcome.epoch_monotonic_ns = clock_.epoch_monotonic_ns();
  return orchestrator::make_role(welcome);
}

Result<std::unique_ptr<rollout::Engine>> Bench::make_engine(std::optional<Tokens> longest) const {
  const actors::RoleConfig own = role(actors::RoleKind::Rollout, config_);
  rollout::RolloutSettings settings;
  settings.sampling = config_.sampling;
  settings.sampling.max_new_tokens = longest.value_or(config_.sampling.max_new_tokens);
  settings.concurrency = config_.rollout.concurrency;
  TEMPER_TRY(auto engine, make_torch_rollout(own, settings));
  TEMPER_TRY_STATUS(engine->stage(PolicyVersion(0), std::as_bytes(std::span(image_))));
  TEMPER_TRY_STATUS(engine->commit(PolicyVersion(0)));
  return engine;
}

std::int64_t Bench::add(rollout::Engine& engine,
                        std::int64_t n,
                        std::int64_t to_a_prompt,
                        std::int64_t prefix) {
  std::int64_t cached = 0;
  for (std::int64_t i = 0; i < n; ++i) {
    // The same prompts each time, so that repeats do the same work.
    auto tokens = prompt(static_cast<std::uint64_t>(i / to_a_prompt));
    cached += std::ssize(tokens) + prefix - 1;
    engine.add({ResponseId(next_response_++),
                std::move(tokens),
                std::vector<std::int32_t>(static_cast<std::size_t>(prefix), 2)});
  }
  return cached;
}

MeasuredRole::MeasuredRole(std::unique_ptr<actors::Role> role)
    : role_(std::move(role)), out_([this](actors::OutgoingMessage sent) {
        const auto message = actors::IncomingMessage::from(std::move(sent));
        if (!message.is<actors::Activity>())
          return;
        const auto activity = message.decode<actors::Activity>();
        if (!activity)
          heard_ = activity.error();
        else
          spans_.insert(spans_.end(), activity->spans.begin(), activity->spans.end());
      }) {}

Result<std::vector<actors::Span>> MeasuredRole::stop() {
  TEMPER_TRY_STATUS(role_->stop(out_));
  TEMPER_TRY_STATUS(std::exchange(heard_, Status()));
  return std::exchange(spans_, {});
}

std::vector<AnsweredPrompt> answered_prompts(const Bench& bench,
                                             std::int64_t groups,
                                             std::int64_t responses,
                                             std::int64_t tokens) {
  Random random(1, "answers");
  std::vector<AnsweredPrompt> out;
  for (std::int64_t g = 0; g < groups; ++g) {
    const auto prompt = bench.prompt(static_cast<std::uint64_t>(g));
    for (std::int64_t i = 0; i < responses; ++i) {
      AnsweredPrompt a{GroupId(static_cast<std::uint64_t>(g)), prompt, {}};
      for (std::int64_t t = 0; t < tokens; ++t) {
        const auto drawn = random.below(static_cast<std::uint64_t>(bench.vocabulary() - 2));
        a.response.push_back(2 + static_cast<std::int32_t>(drawn));
      }
      out.push_back(std::move(a));
    }
  }
  return out;
}

Result<std::unique_ptr<trainer::Engine>> make_trainer(const Bench& bench,
                                                      const actors::RoleConfig& role) {
  trainer::TrainerSettings settings{bench.config().algorithm,
                                    bench.config().sampling.temperature,
                                    {},
                                    bench.config().sampling.max_new_tokens};
  settings.algorithm.learning_rate = 1e-7;
  return make_torch_trainer(role, settings);
}

Result<std::unique_ptr<actors::ReferenceEngine>> make_reference(const Bench& bench,
                                                                const actors::RoleConfig& role) {
  return make_torch_reference(role,
                              {bench.config().algorithm,
                               bench.config().sampling.temperature,
                               {},
                               bench.config().sampling.max_new_tokens});
}

actors::TopTokens top_tokens(const Bench& bench, std::size_t tokens) {
  const std::int32_t k = bench.config().algorithm.distillation_top_k;
  actors::TopTokens top;
  for (std::size_t t = 0; t < tokens; ++t) {
    for (std::int32_t i = 0; i < k; ++i)
      top.ids.push_back(i);
  }
  top.logprobs.assign(top.ids.size(), -std::log(static_cast<float>(k + 1)));
  return top;
}

std::vector<trainer::TrainSample> train_batch(const Bench& bench) {
  std::vector<trainer::TrainSample> batch;
  for (AnsweredPrompt& a : answered_prompts(bench,
                                            bench.config().algorithm.groups_per_update,
                                            bench.per_group(),
                                            bench.usual_tokens())) {
    const std::vector<float> logprobs(a.response.size(), -2.6F);
    trainer::TrainSample sample{
        a.group, std::move(a.prompt), std::move(a.response), logprobs, {}, 0};
    if (bench.config().reference.replicas > 0)
      sample.reference_logprobs = logprobs;
    sample.top = top_tokens(bench, logprobs.size());
    sample.reward = static_cast<double>(batch.size() % 2);
    batch.push_back(std::move(sample));
  }
  return batch;
}

Status run_until_idle(rollout::Engine& engine) {
  while (engine.load() > 0) {
    TEMPER_TRY([[maybe_unused]] const auto step, engine.step());
  }
  return {};
}

}  // namespace temper::orchestrator
