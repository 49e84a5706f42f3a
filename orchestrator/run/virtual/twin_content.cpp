#include "orchestrator/run/virtual/twin_content.hpp"

#include "actors/border/values.hpp"
#include "actors/protocol/catalog.hpp"
#include "orchestrator/pipeline/model_section.hpp"
#include "orchestrator/run/evaluation_source.hpp"
#include "orchestrator/run/problem_sources.hpp"
#include "orchestrator/run/role_configs.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace temper::orchestrator {
namespace {

using namespace std::chrono_literals;
using actors::RoleKind;

constexpr Duration kAnswerOfOne =
    300s;  ///< In which some worker that owes an answer has to say one.
constexpr Duration kTwinGoodbye = 3s;

constexpr ActorId kTrainer(0), kReference(1), kReward(2), kFirstSampler(3);

std::vector<std::string> worker_names(const ResolvedPipeline& pipeline) {
  std::vector<std::string> names{"twin-trainer", "twin-reference", "twin-reward"};
  for (const ActorSpec& slot : pipeline.slots) {
    if (slot.role == RoleKind::Rollout)
      names.push_back("twin-" + slot.name);
  }
  return names;
}

}  // namespace

TwinContent::TwinContent(TwinOptions options, std::unique_ptr<actors::PromptSource> prompts)
    : options_(std::move(options)),
      tokenizer_(actors::Tokenizer::for_task(options_.pipeline.config.task)),
      prompts_(std::move(prompts)),
      payloads_(options_.pipeline.config.algorithm.responses_per_group),
      lines_(worker_names(options_.pipeline).size()) {}

Result<std::unique_ptr<TwinContent>> TwinContent::create(boost::asio::io_context& io,
                                                         TwinOptions options,
                                                         const Log& log) {
  const PipelineConfig& config = options.pipeline.config;
  TEMPER_TRY(
      auto prompts,
      actors::make_prompt_source(config.task, config.seed, prompt_options(config, options.base)));
  std::unique_ptr<TwinContent> content(new TwinContent(std::move(options), std::move(prompts)));
  TEMPER_TRY_STATUS(content->open(io, log));
  return content;
}

Status TwinContent::open(boost::asio::io_context& io, const Log& log) {
  TEMPER_TRY(tokenizer_, tokenizer_of(options_.pipeline.config, options_.base));
  TEMPER_TRY(pool_,
             WorkerPool::create(
                 io,
                 {worker_names(options_.pipeline),
                  options_.worker,
                  options_.log_of,
                  options_.pipeline.config.transport},
                 [this](ActorId actor, const actors::IncomingMessage& message) {
                   return on_message(actor, message);
                 },
                 log));
  TEMPER_TRY_STATUS(start(kTrainer, RoleKind::Trainer, 0));
  TEMPER_TRY_STATUS(start(kReward, RoleKind::Reward, 0));
  if (options_.pipeline.config.reference.replicas > 0)
    TEMPER_TRY_STATUS(start(kReference, RoleKind::Reference, 0));
  return wait([this] { return !weights_.empty(); });
}

Status TwinContent::start(ActorId actor, RoleKind role, std::int32_t concurrency) {
  const ActorSpec spec{
      .name = pool_->name(actor), .role = role, .cards = {}, .concurrency = concurrency};
  actors::RoleConfig config =
      role_config(options_.pipeline.config, spec, {options_.base, {}, PolicyVersion(0)});
  config.shared_memory = true;
  pool_->assign(actor, std::move(config));
  return pool_->start(actor);
}

TwinContent::~TwinContent() {
  if (!pool_)
    return;
  pool_->let_end();
  for (std::uint32_t i = 0; i < lines_.size(); ++i)
    pool_->send(ActorId(i), actors::outgoing(actors::Stop{}));
  pool_->leave(pool_->has_loss() ? Duration(0) : kTwinGoodbye);
}

// --- Work

Status TwinContent::add_group(GroupId group, const std::optional<Draw>& draw) {
  if (payloads_.has(group))
    return {};
  return payloads_.add(group, drawn_problem(*prompts_, group, draw), tokenizer_);
}

Result<ActorId> TwinContent::sampler_at(PolicyVersion version) {
  Sampler* best = nullptr;
  for (Sampler& s : samplers_) {
    if ((!s.version || *s.version <= version) && (best == nullptr || s.version > best->version))
      best = &s;
  }
  if (best == nullptr) {
    const ActorId actor(static_cast<std::uint32_t>(kFirstSampler.value() + samplers_.size()));
    TEMPER_CHECK(actor.value() < lines_.size(), "an engine does not return to older weights");
    TEMPER_TRY_STATUS(
        start(actor, RoleKind::Rollout, options_.pipeline.config.algorithm.responses_per_group));
    best = &samplers_.emplace_back(Sampler{actor, std::nullopt});
  }
  if (best->version == version)
    return best->actor;
  const auto image = weights_.find(version);
  if (image == weights_.end())
    return invalid_input(fmt::format("version {} is not (or no longer) published", version));
  best->version = version;
  add(best->actor, {{}, [image = image->second] {
                      return actors::outgoing(actors::StageWeights{image->handle()});
                    }});
  add(best->actor, {{}, [version] { return actors::outgoing(actors::CommitWeights{version}); }});
  return best->actor;
}

Status TwinContent::sample(const Sampling& work) {
  TEMPER_TRY_STATUS(add_group(work.group, work.draw));
  for (const ResponseId r : work.responses) {
    payloads_.response(r) = {};
    payloads_.response(r).first_version = work.version;
    attempts_[r] = work.lease;
  }
  TEMPER_TRY(const ActorId actor, sampler_at(work.version));
  add(actor,
      {{},
       [message = payloads_.generate(work.lease, work.group, work.responses)] {
         return actors::outgoing(message);
       },
       work.responses,
       work.responses.size()});
  return serve();
}

bool TwinContent::sampled(std::span<const ResponseId> responses) {
  return std::all_of(responses.begin(), responses.end(), [this](ResponseId r) {
    return !payloads_.response(r).tokens.empty();
  });
}

bool TwinContent::scored(std::span<const ResponseId> responses) {
  if (options_.pipeline.config.reference.replicas == 0)
    return sampled(responses);
  return std::all_of(responses.begin(), responses.end(), [this](ResponseId r) {
    const ResponsePayload& p = payloads_.response(r);
    return !p.tokens.empty() && p.reference.size() == p.tokens.size();
  });
}

Status TwinContent::score(LeaseId lease, std::span<const ResponseId> responses) {
  const std::vector<ResponseId> all(responses.begin(), responses.end());
  add(kReference,
      {[this, all] { return sampled(all); },
       [this, lease, all] { return actors::outgoing(payloads_.score(lease, all)); },
       all});
  return serve();
}

Status TwinContent::judge(LeaseId lease, std::span<const ResponseId> responses) {
  const std::vector<ResponseId> all(responses.begin(), responses.end());
  add(kReward,
      {[this, all] { return sampled(all); },
       [this, lease, all] { return actors::outgoing(payloads_.judge(lease, all)); },
       all});
  return serve();
}

Status TwinContent::train(LeaseId lease,
                          const actors::Certificate& certificate,
                          std::span<const ResponseId> responses) {
  const std::vector<ResponseId> all(responses.begin(), responses.end());
  add(kTrainer,
      {[this, all] { return scored(all); },
       [this, lease, certificate, all] {
         return actors::outgoing(actors::Train{lease, certificate, payloads_.samples(all)});
       },
       all});
  return serve();
}

Result<actors::Judged> TwinContent::judged(LeaseId lease) {
  TEMPER_TRY_STATUS(wait([&] { return judged_.contains(lease); }));
  return std::move(judged_.extract(lease).mapped());
}

Result<actors::UpdateMetrics> TwinContent::trained(LeaseId lease) {
  TEMPER_TRY_STATUS(wait([&] { return trained_.contains(lease); }));
  return trained_.extract(lease).mapped();
}

// --- One thing at a time

void TwinContent::add(ActorId actor, Job job) {
  for (const ResponseId r : job.responses)
    ++uses_[payloads_.group_id(r)];
  lines_[actor.value()].jobs.push_back(std::move(job));
  pump();
}

void TwinContent::release(GroupId group) {
  released_.insert(group);
  forget_unused(group);
}

void TwinContent::forget_unused(GroupId group) {
  if (uses_.contains(group) || released_.erase(group) == 0)
    return;
  payloads_.remove(group);
}

void TwinContent::pump() {
  for (std::uint32_t i = 0; i < lines_.size(); ++i) {
    Line& line = lines_[i];
    if (!line.up || line.busy || line.jobs.empty())
      continue;
    if (line.jobs.front().ready && !line.jobs.front().ready())
      continue;
    line.busy = true;
    pool_->send(ActorId(i), line.jobs.front().message());
  }
}

Status TwinContent::answered(ActorId actor, std::size_t answers) {
  Line& line = lines_[actor.value()];
  if (!line.busy || line.jobs.front().owed < answers)
    return invalid_input("an answer to nothing");
  if ((line.jobs.front().owed -= answers) > 0)
    return {};
  for (const ResponseId r : line.jobs.front().responses) {
    const auto use = uses_.find(payloads_.group_id(r));
    if (--use->second > 0)
      continue;
    const GroupId group = use->first;
    uses_.erase(use);
    forget_unused(group);
  }
  line.jobs.pop_front();
  line.busy = false;
  pump();
  return {};
}

Status TwinContent::wait(const std::function<bool()>& done) {
  return pool_->wait(
      {kAnswerOfOne, WorkerPool::Patience::Since::LastWord}, done, [this] { return owing(); });
}

/// A worker at work; else one that is not there yet.
ActorId TwinContent::owing() const {
  auto line = std::find_if(lines_.begin(), lines_.end(), [](const Line& l) { return l.busy; });
  if (line == lines_.end())
    line = std::find_if(
        lines_.begin(), lines_.end(), [](const Line& l) { return !l.up && !l.jobs.empty(); });
  return line == lines_.end() ? kTrainer
                              : ActorId(static_cast<std::uint32_t>(line - lines_.begin()));
}

// --- Answers

/// The message is valid, but the run cannot continue.
Status TwinContent::fail(ActorId actor, const std::string& reason) {
  pool_->lose(actor, reason);
  return {};
}

Status TwinContent::on_message(ActorId actor, const actors::IncomingMessage& m) {
  if (m.is<actors::Ready>()) {
    lines_[actor.value()].up = true;
    pump();
    return {};
  }
  if (m.is<actors::Activity>())
    return {};  // of real cores, which a twin does not count
  const auto done = [&](const std::string& error) {
    return error.empty() ? answered(actor) : fail(actor, error);
  };
  auto answer = actors::dispatch(
      m,
      [&](const actors::TrainerReady& ready) -> Status {
        TEMPER_TRY_STATUS(publish(ready.weights));
        pump();
        return {};
      },
      [&](const actors::WeightsStaged& staged) { return done(staged.error); },
      [&](const actors::WeightsCommitted& committed) { return done(committed.error); },
      [&](actors::Generated generated) { return on_generated(actor, std::move(generated)); },
      [&](actors::ReferenceScored scored) { return on_scored(actor, std::move(scored)); },
      [&](actors::Judged judged) { return on_judged(actor, std::move(judged)); },
      [&](const actors::Trained& trained) -> Status {
        TEMPER_TRY_STATUS(publish(trained.weights));
        trained_[trained.lease] = trained.metrics;
        return answered(actor);
      });
  if (answer)
    return *std::move(answer);
  return invalid_input(fmt::format("{} is not for a twin", actors::message_name(m.envelope().tag)));
}

Status TwinContent::on_generated(ActorId actor, actors::Generated message) {
  for (auto& item : message.items) {
    if (item.finish == actors::FinishReason::Failed || item.tokens.empty())
      return fail(actor, fmt::format("cannot sample response {}: {}", item.response, item.failure));
    const Status possible =
        actors::check_response({item.tokens, item.logprobs, item.mask, item.rewards}, 0, {});
    if (!possible)
      return fail(actor, fmt::format("response {}: {}", item.response, possible.error().context));
    const auto attempt = attempts_.find(item.response);
    if (attempt == attempts_.end() || attempt->second != item.lease)
      continue;  // it has begun anew since
    attempts_.erase(attempt);
    ResponsePayload& p = payloads_.response(item.response);
    p.tokens = std::move(item.tokens);
    p.logprobs = std::move(item.logprobs);
  }
  return answered(actor, message.items.size());
}

Status TwinContent::on_scored(ActorId actor, actors::ReferenceScored message) {
  const Line& line = lines_[actor.value()];
  if (!line.busy)
    return invalid_input("an answer to nothing");
  const std::vector<ResponseId>& responses = line.jobs.front().responses;
  if (responses.size() != message.logprobs.size()) {
    return invalid_input(
        fmt::format("{} responses of {} were scored", message.logprobs.size(), responses.size()));
  }
  for (std::size_t i = 0; i < responses.size(); ++i) {
    ResponsePayload& p = payloads_.response(responses[i]);
    if (const Status possible = actors::check_scores(message.logprobs[i], p.tokens.size());
        !possible)
      return fail(actor, fmt::format("response {}: {}", responses[i], possible.error().context));
    p.reference = std::move(message.logprobs[i]);
  }
  return answered(actor);
}

Status TwinContent::on_judged(ActorId actor, actors::Judged message) {
  const Line& line = lines_[actor.value()];
  if (!line.busy)
    return invalid_input("an answer to nothing");
  const std::vector<ResponseId>& responses = line.jobs.front().responses;
  if (responses.size() != message.items.size()) {
    return invalid_input(
        fmt::format("{} responses of {} were judged", message.items.size(), responses.size()));
  }
  TEMPER_TRY_STATUS(actors::check_terms(message.terms, responses.size()));
  for (std::size_t i = 0; i < responses.size(); ++i) {
    auto& item = message.items[i];
    if (const Status possible = actors::check_reward(item.reward); !possible)
      item = {0, fmt::format("response {}: {}", responses[i], possible.error().context)};
    if (!item.failure.empty())
      continue;
    payloads_.response(responses[i]).reward = item.reward;
    payloads_.response(responses[i]).terms = actors::rewards_at(message.terms, i);
  }
  judged_[message.lease] = std::move(message);
  return answered(actor);
}

/// Keeps a copy of its own: a rollout that is started late may need an older version than the
/// trainer still has. Under the bound, none older than that is dispatched or being sampled.
Status TwinContent::publish(const actors::WeightsHandle& handle) {
  TEMPER_TRY(const auto image, actors::MappedBuffer::open(handle));
  TEMPER_TRY(auto copy, actors::SharedBuffer::create(handle.version, image.bytes()));
  weights_[handle.version] = std::make_shared<const actors::SharedBuffer>(std::move(copy));
  const auto kept = static_cast<std::size_t>(options_.pipeline.config.staleness.bound) + 2;
  while (weights_.size() > kept)
    weights_.erase(weights_.begin());
  return {};
}

}  // namespace temper::orchestrator
