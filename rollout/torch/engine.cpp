#include "rollout/torch/engine.hpp"

#include "actors/policy/decoder.hpp"
#include "actors/policy/sampler.hpp"
#include "rollout/torch/policy_versions.hpp"
#include "rollout/torch/sequence.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <deque>
#include <set>
#include <unordered_set>

namespace temper::rollout {
namespace {

using actors::DecoderRow;
using actors::FinishReason;

class TorchEngine final : public Engine {
 public:
  TorchEngine(const TorchEngineOptions& options,
              const actors::Layout& layout,
              PolicyVersions versions)
      : options_(options),
        versions_(std::move(versions)),
        decoder_(layout, options.concurrency),
        sampler_(options.sampling.temperature, options.sampling.top_p) {
    for (std::int32_t slot = options.concurrency; slot-- > 0;)
      free_slots_.push_back(slot);
  }

  void add(GenerationRequest request) override;
  Result<StepResult> step() override;
  std::size_t load() const override { return queue_.size() + running_.size() + settled_.size(); }
  std::vector<Generation> interrupt() override;
  std::vector<Generation> withdraw(std::span<const ResponseId> ids) override;
  void cancel(std::span<const ResponseId> ids) override;

  Status stage(PolicyVersion version, std::span<const std::byte> weights) override;
  Status commit(PolicyVersion version) override;
  PolicyVersion version() const override { return versions_.version(); }
  bool reset_for_resume() override;

  Status free_kv() override;
  Status allocate_kv() override;
  Status free_weights() override;
  EngineMemory memory() const override;

 private:
  std::size_t limit_of(const GenerationRequest& request) const;
  bool acceptable(const GenerationRequest& request) const;
  bool time_to_admit() const;
  Tokens prefill();
  Tokens recompute();
  void add_rows(const Sequence& running, std::int32_t from, std::int32_t to);
  void start(GenerationRequest request);
  void prefill_rows();
  Result<Tokens> decode(std::vector<Generation>& finished);
  std::vector<VersionRows> running_by_version() const;
  Status sample(std::span<Sequence> sequences, std::span<float> logits);
  static void append(Sequence& running, const actors::SampledToken& sampled);
  bool is_done(Sequence& running) const;
  Generation handed_back(Generation part) const;
  void drop_unused_versions();

  const TorchEngineOptions options_;

  PolicyVersions versions_;
  actors::Decoder decoder_;
  actors::Sampler sampler_;

  std::deque<GenerationRequest> queue_;
  std::vector<Sequence> running_;    ///< Versions never decrease.
  std::vector<Generation> settled_;  ///< Finished without a step: rejected, or a complete prefix.
  std::vector<std::int32_t> free_slots_;
  std::vector<DecoderRow> rows_;
};

std::size_t TorchEngine::limit_of(const GenerationRequest& request) const {
  const auto room = static_cast<std::size_t>(options_.model.context.count());
  const auto wanted = static_cast<std::size_t>(options_.sampling.max_new_tokens.count());
  const std::size_t whole = std::min(wanted, room - std::min(room, request.prompt.size()));
  if (!request.most)
    return whole;
  return std::min(whole, request.prefix.size() + static_cast<std::size_t>(request.most->count()));
}

bool TorchEngine::acceptable(const GenerationRequest& request) const {
  const auto in_vocabulary = [&](std::int32_t t) { return t >= 0 && t < options_.vocabulary; };
  return !request.prompt.empty() && limit_of(request) > 0 &&
         std::all_of(request.prompt.begin(), request.prompt.end(), in_vocabulary) &&
         std::all_of(request.prefix.begin(), request.prefix.end(), in_vocabulary);
}

void TorchEngine::add(GenerationRequest request) {
  Generation settled;
  settled.id = request.id;
  if (!acceptable(request)) {
    settled.finish = FinishReason::Failed;
    settled.failure =
        "its prompt is empty, leaves no space in model.context, or has tokens outside the "
        "vocabulary";
    settled_.push_back(std::move(settled));
  } else if (request.prefix.size() >= limit_of(request)) {
    settled.finish = FinishReason::Length;
    settled_.push_back(std::move(settled));
  } else {
    const auto at = options_.deadline_first
                        ? std::ranges::upper_bound(queue_, request.id, {}, &GenerationRequest::id)
                        : queue_.end();
    queue_.insert(at, std::move(request));
  }
}

Result<StepResult> TorchEngine::step() {
  StepResult result;
  result.finished = std::exchange(settled_, {});
  if (queue_.empty() && running_.empty())
    return result;
  if (!versions_.present() || decoder_.cache_bytes().count() == 0)
    return Error{ErrorCode::Unavailable, "rollout engine: step() requires weights and a KV cache"};
  result.tokens = recompute();
  if (result.tokens.count() > 0) {
    result.kind = StepKind::Prefill;
    return result;
  }
  if (time_to_admit()) {
    result.tokens = prefill();
    // A prompt of one token needs no prefill; then this step decodes.
    if (result.tokens.count() > 0) {
      result.kind = StepKind::Prefill;
      return result;
    }
  }
  TEMPER_TRY(result.tokens, decode(result.finished));
  result.kind = StepKind::Decode;
  return result;
}

/// A prefill for many responses costs about as much as for one, so it waits for a few free slots.
bool TorchEngine::time_to_admit() const {
  const std::size_t few = std::max<std::size_t>(1, options_.concurrency / 8);
  return !queue_.empty() && free_slots_.size() >= std::min(few, queue_.size());
}

Tokens TorchEngine::prefill() {
  rows_.clear();
  std::vector<std::size_t> computed;  // Indices in running_ whose own rows are in this step.
  std::vector<std::pair<std::size_t, std::size_t>> copies;
  while (!queue_.empty() && !free_slots_.empty() &&
         static_cast<std::int64_t>(rows_.size()) < options_.prefill_tokens.count()) {
    start(std::move(queue_.front()));
    queue_.pop_front();
    const std::size_t own = running_.size() - 1;
    const GenerationRequest& request = running_[own].request;
    const auto same = [&](std::size_t i) {
      return running_[i].request.prompt == request.prompt &&
             running_[i].request.prefix == request.prefix;
    };
    // Responses of a group are queued together, so the last one usually matches.
    if (!computed.empty() && same(computed.back())) {
      copies.emplace_back(computed.back(), own);
      continue;
    }
    computed.push_back(own);
    add_rows(running_[own], 0, running_[own].cached);
  }
  prefill_rows();
  for (const auto& [from, to] : copies)
    decoder_.copy_slot(running_[from].slot, running_[to].slot, running_[from].cached);
  return Tokens(static_cast<std::int64_t>(rows_.size()));
}

/// Computes the caches of rows_ under the current version.
void TorchEngine::prefill_rows() {
  if (rows_.empty())
    return;
  const VersionRows all{version(), std::ssize(rows_)};
  const PolicyPass pass = versions_.passes({&all, 1}).front();
  decoder_.forward(pass.weights, rows_, actors::Decoder::Output::Nothing);
}

void TorchEngine::add_rows(const Sequence& running, std::int32_t from, std::int32_t to) {
  for (std::int32_t i = from; i < to; ++i)
    rows_.push_back({running.token(i), running.slot, i});
}

/// Recomputes caches of outdated responses, as many as a prefill holds: each prompt once, then the
/// remainder of each response.
Tokens TorchEngine::recompute() {
  std::vector<Sequence*> chosen;
  std::vector<std::pair<Sequence*, Sequence*>> copies;  ///< From one with the same prompt.
  std::int64_t rows = 0;
  rows_.clear();
  for (Sequence& r : running_) {
    if (!r.outdated || rows >= options_.prefill_tokens.count())
      continue;
    const auto of_prompt = static_cast<std::int32_t>(r.request.prompt.size()) - 1;
    const auto same = std::find_if(chosen.begin(), chosen.end(), [&](const Sequence* other) {
      return other->request.prompt == r.request.prompt;
    });
    if (same == chosen.end())
      add_rows(r, 0, of_prompt);
    else
      copies.emplace_back(*same, &r);
    rows += r.cached - (same == chosen.end() ? 0 : of_prompt);
    chosen.push_back(&r);
  }
  prefill_rows();
  for (const auto& [from, to] : copies)
    decoder_.copy_slot(
        from->slot, to->slot, static_cast<std::int32_t>(to->request.prompt.size()) - 1);
  rows_.clear();
  for (Sequence* r : chosen) {
    add_rows(*r, static_cast<std::int32_t>(r->request.prompt.size()) - 1, r->cached);
    r->outdated = false;
  }
  prefill_rows();
  return Tokens(rows);
}

void TorchEngine::start(GenerationRequest request) {
  Sequence running;
  running.out.id = request.id;
  running.slot = free_slots_.back();
  free_slots_.pop_back();
  running.cached = static_cast<std::int32_t>(request.prompt.size() + request.prefix.size()) - 1;
  running.last_token = request.prefix.empty() ? request.prompt.back() : request.prefix.back();
  running.limit = limit_of(request);
  running.version = version();
  running.request = std::move(request);
  running_.push_back(std::move(running));
}

Result<Tokens> TorchEngine::decode(std::vector<Generation>& finished) {
  auto next = running_.begin();
  for (const PolicyPass& pass : versions_.passes(running_by_version())) {
    const std::span<Sequence> own(next, static_cast<std::size_t>(pass.rows));
    next += pass.rows;
    rows_.clear();
    for (const Sequence& r : own)
      rows_.push_back({r.last_token, r.slot, r.cached});
    TEMPER_TRY_STATUS(
        sample(own, decoder_.forward(pass.weights, rows_, actors::Decoder::Output::Logits)));
  }
  const Tokens sampled(std::ssize(running_));
  std::erase_if(running_, [&](Sequence& r) {
    if (!is_done(r))
      return false;
    free_slots_.push_back(r.slot);
    finished.push_back(std::move(r.out));
    return true;
  });
  drop_unused_versions();
  return sampled;
}

std::vector<VersionRows> TorchEngine::running_by_version() const {
  std::vector<VersionRows> out;
  for (const Sequence& r : running_) {
    if (out.empty() || out.back().version != r.version)
      out.push_back({r.version, 0});
    ++out.back().rows;
  }
  return out;
}

/// `logits` are of one row for each sequence, and are overwritten.
Status TorchEngine::sample(std::span<Sequence> sequences, std::span<float> logits) {
  std::vector<actors::Choice> choices;
  for (const Sequence& r : sequences) {
    const double uniform = actors::sampling_uniform(options_.seed, r.out.id, r.generated());
    choices.push_back({.greedy = r.request.greedy, .uniform = uniform});
  }
  const auto sampled = sampler_.sample(logits, choices);
  for (std::size_t i = 0; i < sequences.size(); ++i) {
    Sequence& r = sequences[i];
    if (sampled[i].token < 0)
      return Error{ErrorCode::NotFinite,
                   fmt::format("rollout engine: logits of version {} are not finite", r.version)};
    append(r, sampled[i]);
  }
  return {};
}

void TorchEngine::append(Sequence& running, const actors::SampledToken& sampled) {
  Generation& out = running.out;
  out.tokens.push_back(sampled.token);
  out.logprobs.push_back(sampled.logprob);
  if (out.segments.empty() || out.segments.back().version != running.version)
    out.segments.push_back({running.version, Tokens(0)});
  out.segments.back().tokens += Tokens(1);
  running.last_token = sampled.token;
  ++running.cached;
}

void TorchEngine::drop_unused_versions() {
  if (versions_.held() < 2)
    return;
  std::set<PolicyVersion> used;
  for (const VersionRows& own : running_by_version())
    used.insert(own.version);
  versions_.drop_others(used);
}

/// Also sets the reason.
bool TorchEngine::is_done(Sequence& running) const {
  const auto among = [&](const std::vector<std::int32_t>& ends) {
    return std::ranges::find(ends, running.last_token) != ends.end();
  };
  if (among(options_.end_tokens) || among(running.request.stops)) {
    running.out.finish = FinishReason::End;
    return true;
  }
  running.out.finish = FinishReason::Length;
  return static_cast<std::size_t>(running.generated()) >= running.limit;
}

/// What another attempt continues: with Finish nothing, as it may be under another version.
Generation TorchEngine::handed_back(Generation part) const {
  if (options_.on_new_weights == OnNewWeights::Finish) {
    part.tokens.clear();
    part.logprobs.clear();
    part.segments.clear();
  }
  part.finish = FinishReason::Interrupted;
  return part;
}

std::vector<Generation> TorchEngine::interrupt() {
  std::vector<Generation> all = std::exchange(settled_, {});
  for (Sequence& r : running_) {
    free_slots_.push_back(r.slot);
    all.push_back(handed_back(std::move(r.out)));
  }
  running_.clear();
  drop_unused_versions();
  for (const GenerationRequest& request : queue_) {
    Generation waiting;
    waiting.id = request.id;
    waiting.finish = FinishReason::Interrupted;
    all.push_back(std::move(waiting));
  }
  queue_.clear();
  return all;
}

std::vector<Generation> TorchEngine::withdraw(std::span<const ResponseId> ids) {
  const std::unordered_set<ResponseId> leaving(ids.begin(), ids.end());
  std::vector<Generation> out;
  for (Sequence& r : running_) {
    if (!leaving.contains(r.out.id))
      continue;
    out.push_back(handed_back(r.out));
  }
  for (const GenerationRequest& request : queue_) {
    if (!leaving.contains(request.id))
      continue;
    Generation& waiting = out.emplace_back();
    waiting.id = request.id;
    waiting.finish = FinishReason::Interrupted;
  }
  // The next step reports finished responses.
  std::vector<ResponseId> taken;
  for (const Generation& g : out)
    taken.push_back(g.id);
  cancel(taken);
  return out;
}

void TorchEngine::cancel(std::span<const ResponseId> ids) {
  const std::unordered_set<ResponseId> gone(ids.begin(), ids.end());
  std::erase_if(queue_, [&](const GenerationRequest& r) { return gone.contains(r.id); });
  std::erase_if(settled_, [&](const Generation& g) { return gone.contains(g.id); });
  std::erase_if(running_, [&](const Sequence& r) {
    if (!gone.contains(r.out.id))
      return false;
    free_slots_.push_back(r.slot);
    return true;
  });
  drop_unused_versions();
}

Status TorchEngine::stage(PolicyVersion version, std::span<const std::byte> weights) {
  return versions_.stage(version, weights);
}

Status TorchEngine::commit(PolicyVersion version) {
  TEMPER_TRY_STATUS(versions_.commit(version));
  if (options_.on_new_weights != OnNewWeights::Finish) {
    for (Sequence& r : running_) {
      r.version = version;
      r.outdated = options_.on_new_weights == OnNewWeights::Recompute;
    }
  }
  drop_unused_versions();
  return {};
}

bool TorchEngine::reset_for_resume() {
  static_cast<void>(interrupt());
  versions_.reset();
  return true;
}

Status TorchEngine::free_kv() {
  TEMPER_TRY_STATUS(require_idle(load(), "free_kv"));
  decoder_.free_cache();
  return {};
}

Status TorchEngine::allocate_kv() {
  TEMPER_TRY_STATUS(require_idle(load(), "allocate_kv"));
  decoder_.allocate_cache();
  return {};
}

Status TorchEngine::free_weights() {
  TEMPER_TRY_STATUS(require_idle(load(), "free_weights"));
  versions_.free();
  return {};
}

EngineMemory TorchEngine::memory() const {
  EngineMemory memory;
  memory.weights = versions_.bytes();
  memory.kv = decoder_.cache_bytes();
  return memory;
}

}  // namespace

Result<std::unique_ptr<Engine>> make_torch_engine(const TorchEngineOptions& options) {
  TEMPER_TRY(const actors::Layout layout, actors::Layout::make(options.model, options.vocabulary));
  if (options.concurrency < 1)
    return invalid_input(fmt::format("concurrency: must be >= 1, found {}", options.concurrency));
  if (options.sampling.max_new_tokens >= options.model.context) {
    return invalid_input(
        fmt::format("sampling.max_new_tokens: {} leaves no space for a prompt in a context "
                    "of {}",
                    options.sampling.max_new_tokens.count(),
                    options.model.context.count()));
  }
  TEMPER_TRY(PolicyVersions versions, PolicyVersions::make(layout, options.base));
  return std::unique_ptr<Engine>(new TorchEngine(options, layout, std::move(versions)));
}

}  // namespace temper::rollout
