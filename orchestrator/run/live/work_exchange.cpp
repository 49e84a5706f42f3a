#include "orchestrator/run/live/work_exchange.hpp"

#include "actors/protocol/catalog.hpp"
#include "orchestrator/pipeline/model_section.hpp"
#include "orchestrator/run/evaluation_source.hpp"
#include "orchestrator/run/problem_sources.hpp"
#include "orchestrator/run/redis_tensors.hpp"
#include "orchestrator/run/shm_tensors.hpp"
#include "orchestrator/scheduler/queue/evaluation_ids.hpp"
#include "orchestrator/scheduler/view/claims.hpp"

#include <fmt/format.h>

#include <set>
#include <type_traits>
#include <utility>

namespace temper::orchestrator {
namespace {

/// Native engines keep these limits by themselves; synthetic ones need not.
actors::ResponseLimits response_limits(const PipelineConfig& config) {
  const bool native = config.rollout.engine.kind == actors::EngineKind::Native;
  actors::ResponseLimits limits;
  limits.top_k = static_cast<std::size_t>(config.algorithm.distillation_top_k);
  if (!native)
    limits.tokens = static_cast<std::size_t>(config.sampling.max_new_tokens.count());
  if (!native || limits.top_k > 0) {
    limits.vocabulary =
        config.model.vocabulary.value_or(actors::Tokenizer::for_task(config.task).vocabulary());
  }
  return limits;
}

constexpr std::string_view kNoTensors =
    "tensors need an engine on the orchestrator's host (transport.kind: ipc, and /dev/shm), or a "
    "server (payloads.store: redis)";

/// Null: responses can have no tensors.
Result<std::unique_ptr<TensorStore>> make_tensor_store(const PipelineConfig& config,
                                                       const Log& log) {
  const PayloadsSection& payloads = config.payloads;
  if (payloads.store == TensorStoreKind::Redis) {
    TEMPER_TRY(auto store, open_redis_tensors(config, log));
    return std::unique_ptr<TensorStore>(std::move(store));
  }
  if (config.transport.kind != TransportKind::Ipc)
    return std::unique_ptr<TensorStore>();
  auto store = ShmTensors::create(payloads.wait);
  if (store)
    return std::unique_ptr<TensorStore>(*std::move(store));
  log.warning("responses cannot have tensors", {{"why", store.error().context}});
  return std::unique_ptr<TensorStore>();
}

/// The approximate size of a message with these items.
std::size_t bytes_of(const std::vector<actors::Train::Item>& items) {
  std::size_t bytes = 0;
  for (const auto& item : items) {
    bytes += 4 * (item.prompt.size() + item.response.size() + item.logprobs.size() +
                  item.reference.size() + item.rewards.size()) +
             (item.top ? 8 * item.top->ids.size() : 0) + item.mask.size() +
             24 * item.segments.size() + 64;
  }
  return bytes;
}

}  // namespace

WorkExchange::WorkExchange(RunCore& core,
                           ActorLinks& links,
                           const PipelineConfig& config,
                           const Log& log)
    : core_(core),
      links_(links),
      config_(config),
      log_(log),
      limits_(response_limits(config)),
      tokenizer_(actors::Tokenizer::for_task(config.task)),
      payloads_(core.config().responses_per_group),
      evaluated_(core.config().evaluation.samples) {}

Status WorkExchange::open(const std::filesystem::path& base) {
  TEMPER_TRY(prompts_,
             actors::make_prompt_source(config_.task, config_.seed, prompt_options(config_, base)));
  if (core_.config().evaluation.every > 0) {
    TEMPER_TRY(problems_, make_evaluation_source(config_, base));
  }
  TEMPER_TRY(tokenizer_, tokenizer_of(config_, base));
  TEMPER_TRY(tensors_, make_tensor_store(config_, log_));
  return {};
}

actors::TensorPlace WorkExchange::tensors() const {
  return tensors_ ? tensors_->place() : actors::TensorPlace();
}

void WorkExchange::refresh_tensors(Time now) {
  if (tensors_)
    tensors_->refresh(now);
}

std::vector<ResponseId> WorkExchange::restore(std::map<GroupId, GroupPayload> payloads) {
  payloads_.restore(std::move(payloads));
  const DistQueue& queue = core_.state().saved.queue;
  std::vector<ResponseId> lost;
  std::vector<actors::Tensor> kept;
  for (const auto& [group, payload] : payloads_.all()) {
    for (std::size_t k = 0; k < payload.responses.size(); ++k) {
      const ResponseId id = queue.ids().at(group, k);
      const auto& tensors = payload.responses[k].tensors;
      const Row* row = queue.row(id);
      if (tensors.empty() || (tensors_ && tensors_->has(tensors)))
        kept.insert(kept.end(), tensors.begin(), tensors.end());
      else if (row != nullptr && !row->failed)
        lost.push_back(id);
    }
  }
  for (const ResponseId id : lost)
    payloads_.response(id) = {};
  if (tensors_)
    tensors_->keep_only(kept);
  return lost;
}

// --- Commands

void WorkExchange::execute(const command::Dispatch& c) {
  if (is_evaluation(c.lease)) {
    if (Status begun = start_problem(c); !begun)
      return core_.fail(begun.error().context);
    actors::Generate work = evaluated_.generate(c.lease, c.group, c.responses);
    work.greedy = config_.evaluation.greedy;
    return links_.send(c.actor, work);
  }
  if (!payloads_.has(c.group)) {
    const Status added =
        payloads_.add(c.group, drawn_problem(*prompts_, c.group, c.draw), tokenizer_);
    if (!added)
      return core_.fail(added.error().context);
  }
  links_.send(c.actor, payloads_.generate(c.lease, c.group, c.responses));
}

/// Forgets the payloads of responses in an earlier evaluation.
Status WorkExchange::start_problem(const command::Dispatch& c) {
  if (!evaluated_.has(c.group)) {
    TEMPER_TRY_STATUS(
        evaluated_.add(c.group, problems_->held_out(problem_of(c.group)), tokenizer_));
  }
  for (const ResponseId r : c.responses) {
    if (core_.state().table_of(c.lease).row(r)->tokens == Tokens(0))
      evaluated_.response(r) = {};
  }
  return {};
}

void WorkExchange::execute(const command::ScoreReference& c) {
  links_.send(c.actor, payloads_.score(c.lease, c.responses));
}

void WorkExchange::execute(const command::Judge& c) {
  const PayloadStore& payloads = is_evaluation(c.lease) ? evaluated_ : payloads_;
  links_.send(c.actor, payloads.judge(c.lease, c.responses));
}

/// Of a step, only the groups that were not prepared before: the others are with the trainer.
bool WorkExchange::take_back_without_tensors(LeaseId lease, const std::vector<ResponseId>& batch) {
  std::vector<actors::Tensor> tensors;
  std::vector<ResponseId> owners;
  for (const ResponseId r : batch) {
    if (!core_.state().saved.queue.holds(lease, r))
      continue;
    const auto& own = payloads_.response(r).tensors;
    tensors.insert(tensors.end(), own.begin(), own.end());
    owners.insert(owners.end(), own.size(), r);
  }
  if (!tensors_ || tensors.empty())
    return false;
  const std::vector<bool> found = tensors_->find(tensors);
  event::TensorsLost event{lease, {}};
  for (std::size_t i = 0; i < owners.size(); ++i) {
    if (!found[i] && (event.lost.empty() || event.lost.back() != owners[i]))
      event.lost.push_back(owners[i]);
  }
  if (event.lost.empty())
    return false;
  log_.warning("tensors of a batch are gone; their responses are generated again",
               {{"responses", event.lost.size()}});
  if (++taken_back_ == kMostTakenBack) {
    core_.fail(
        fmt::format("payloads: tensors of {} batches in a row were gone before they were "
                    "sent; give the store more memory, or set the maxmemory-policy of the Redis "
                    "server to noeviction",
                    kMostTakenBack));
  }
  for (const ResponseId r : event.lost) {
    tensors_->remove(payloads_.response(r).tensors);
    payloads_.response(r) = {};
  }
  core_.post(std::move(event));
  return true;
}

void WorkExchange::execute(const command::Prepare& c) {
  if (take_back_without_tensors(c.lease, c.responses))
    return;
  const actors::Prepare groups{c.lease, c.step, payloads_.samples(c.responses)};
  links_.send_message(c.actor, actors::outgoing_large(groups, bytes_of(groups.items)));
}

void WorkExchange::execute(const command::Train& c) {
  if (take_back_without_tensors(c.lease, c.responses))
    return;
  taken_back_ = 0;
  const actors::Train batch{c.lease, c.certificate, payloads_.samples(c.responses)};
  const std::size_t bytes = 32 * c.certificate.groups.size() + bytes_of(batch.items);
  links_.send_message(c.actor, actors::outgoing_large(batch, bytes));
}

void WorkExchange::execute(const command::Release& c) {
  if (c.outcome != Outcome::Trained)
    log_.warning("group given up", {{"group", c.group}, {"why", core_.text(c.reason)}});
  const RunObserver& observer = core_.observer();
  if (observer.on_release && payloads_.has(c.group))
    observer.on_release({c, payloads_.group(c.group), tokenizer_});
  if (tensors_ && payloads_.has(c.group)) {
    std::vector<actors::Tensor> tensors;
    for (const ResponsePayload& response : payloads_.group(c.group).responses)
      tensors.insert(tensors.end(), response.tensors.begin(), response.tensors.end());
    tensors_->remove(tensors);
  }
  payloads_.remove(c.group);
}

// --- Answers

Status WorkExchange::receive(ActorId actor, actors::Generated message) {
  return answer(actor, std::move(message));
}

Status WorkExchange::receive(ActorId actor, actors::ReferenceScored message) {
  return answer(actor, std::move(message));
}

Status WorkExchange::receive(ActorId actor, actors::Judged message) {
  return answer(actor, std::move(message));
}

template <class M>
Status WorkExchange::answer(ActorId actor, M message) {
  const RunState& run = core_.state();
  const AnswerContext evaluation{run.evaluation.table(), evaluated_, limits_, nullptr};
  const Sender sender{actor, run.fleet.spec(actor).name};
  auto told = to_event(sender, message, {run.saved.queue, payloads_, limits_, &evaluation});
  if constexpr (requires { told.error(); }) {
    if (!told)
      return std::move(told).error();
    return accept(sender, std::move(message), *std::move(told));
  } else {
    screen(sender, message, told);
    return accept(sender, std::move(message), std::move(told));
  }
}

/// Fails single responses whose claims do not hold, where that suffices.
void WorkExchange::screen(const Sender& sender,
                          actors::Generated& message,
                          CheckedAnswer<event::Generated>& told) const {
  for (std::size_t i = 0; i < message.items.size(); ++i) {
    const auto violation = find_invalid_claim(core_.state(), sender.id, told.event.items[i]);
    if (violation && actors::costs_the_response(violation->claim))
      fail_response(sender, message, i, violation->what, told);
  }
  screen_tensors(sender, message, told);
}

void WorkExchange::screen_tensors(const Sender& sender,
                                  actors::Generated& message,
                                  CheckedAnswer<event::Generated>& told) const {
  const auto fail = [&](std::size_t i, std::string_view why) {
    const std::string text = fmt::format("response {}: {}", message.items[i].response, why);
    fail_response(sender, message, i, text, told);
  };
  std::set<std::string> named;
  std::vector<actors::Tensor> tensors;
  std::vector<std::size_t> owners;
  for (std::size_t i = 0; i < message.items.size(); ++i) {
    const actors::Generated::Item& item = message.items[i];
    if (item.tensors.empty() || item.finish == actors::FinishReason::Failed)
      continue;
    const Status possible =
        tensors_ ? tensors_->check(item.tensors, named) : invalid_input(std::string(kNoTensors));
    if (!possible) {
      fail(i, possible.error().context);
      continue;
    }
    tensors.insert(tensors.end(), item.tensors.begin(), item.tensors.end());
    owners.insert(owners.end(), item.tensors.size(), i);
  }
  if (tensors.empty())
    return;
  const std::vector<bool> found = tensors_->find(tensors);
  for (std::size_t k = 0; k < tensors.size(); ++k) {
    if (!found[k] && message.items[owners[k]].finish != actors::FinishReason::Failed) {
      fail(owners[k],
           fmt::format("tensor \"{}\": the store has no {} bytes under the name it gives",
                       tensors[k].name,
                       tensors[k].bytes));
    }
  }
}

void WorkExchange::keep_tensors(actors::Generated& message) {
  if (!tensors_) {  // screen() has failed each response that names some
    for (actors::Generated::Item& item : message.items)
      item.tensors.clear();
    return;
  }
  const DistQueue& queue = core_.state().saved.queue;
  const auto is_done = [&](const actors::Generated::Item& item) {
    return (item.finish == actors::FinishReason::End ||
            item.finish == actors::FinishReason::Length) &&
           queue.holds(item.lease, item.response);
  };
  // These first: another response may name their files.
  for (actors::Generated::Item& item : message.items) {
    if (is_done(item))
      tensors_->take(item.tensors);
  }
  for (actors::Generated::Item& item : message.items) {
    if (!is_done(item)) {
      tensors_->refuse(item.tensors);
      item.tensors.clear();
    }
  }
}

template <class M, class E>
Status WorkExchange::accept(const Sender& sender, M message, CheckedAnswer<E> told) {
  Event said = std::move(told.event);
  TEMPER_TRY_STATUS(core_.validate(said));
  if constexpr (std::is_same_v<M, actors::Generated>)
    keep_tensors(message);
  for (const FailedResponse& f : told.failed)
    log_.warning("response failed", {{"actor", sender.name}, {"why", f.why}});
  const DistQueue& queue = core_.state().saved.queue;
  const DistQueue& table = core_.state().evaluation.table();
  if (core_.state().evaluation.under_way()) {  // each table holds its own
    keep(told.failed, table, evaluated_);
    keep(message, table, evaluated_);
  }
  keep(told.failed, queue, payloads_);
  keep(std::move(message), queue, payloads_);
  core_.post(std::move(said));
  return {};
}

}  // namespace temper::orchestrator
